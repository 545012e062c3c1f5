"""The functions that a notebook of the course calls: `begin`, `task`, `check`, `progress`, `report`, `keep`."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import update_wrapper
from pathlib import Path
from typing import Any

from minigrad.core.programs import PROGRAMS
from minigrad.support.errors import MinigradError
from minigrad.support.host import how_to_stop
from minigrad.support.source import notebook_shell
from minigrad.support.table import counted

from .answers import is_count
from .attempts import ATTEMPTS, NEAR, Attempts, Stop, missed, watch_cells
from .boxes import Box
from .compare import plain
from .feedback import Feedback, Misused, NotWritten, Stopped, place, stopped, unreadable, written
from .limits import TimeIsUp, at_most
from .results import FILE, Progress, found
from .source_code import line_of, source_of
from .tasks import HIDDEN_ROUNDS, ROUNDS, Bet, Prediction, Task, ValueTask
from .unit import Unit, names_in_use, parts, task_names, task_of

watch_cells()
UNSET = object()
PLAIN = "use numbers, not names that this notebook does not have; words need quotation marks"
NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}  # instructions of an empty function


class Session:
    """The student and the unit of this notebook."""

    def __init__(self) -> None:
        self.unit: Unit | None = None
        self.progress = Progress()

    @property
    def student(self) -> str:
        return self.progress.student

    @property
    def author(self) -> str:
        """The name of the student in pictures and reports."""
        return self.student or "you"


SESSION = Session()


def begin(unit: str, student: str | None = None) -> None:
    """Begin a unit.  The numbers of the tasks depend on the student's name, which is kept with the progress.

    From now on each operation of eager mode runs on its own, as the course explains it: see `mg.eager_programs`.

    >>> begin("00_start")
    00 · ...
    """
    known = parts()
    if unit not in known:
        raise Misused(unit, "there is no such unit", "one of " + ", ".join(known))
    PROGRAMS.on = False
    SESSION.unit = each = known[unit]
    SESSION.progress = _kept(found())
    _store(SESSION.progress.name, (student or "").strip())
    _explain_stubs()
    counts = counted(len(each.tasks), "task"), counted(each.points, "point")
    print(f"{each.heading}: {each.takes}, {counts[0]}, {counts[1]}")
    if student is not None:
        print(f"for {SESSION.student}" if SESSION.student else "No name given. Enter one to get your own numbers.")
    if SESSION.progress.path is None:
        print("Progress is lost when the kernel stops. course.keep() keeps it in this folder.")


def keep(folder: str = ".") -> None:
    """Keep progress in a folder from now on, where the launcher has not made a workspace."""
    path = Path(folder) / FILE
    now = SESSION.progress
    SESSION.progress = _kept(path)
    _store(SESSION.progress.take_in, now)


def task(name: str) -> Shown:
    """This student's variant of a task; a notebook shows its text.

    >>> task("mul_grad")
    <task mul_grad, ... points>
    """
    opened()
    return Shown(_task(name))


class Shown:
    """A task as a notebook shows it.  `given` decides which attributes can be read."""

    def __init__(self, of: Task) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        given = {} if name.startswith("_") else self._of.given()
        if name not in given:
            raise AttributeError(f"task {self._of.name} has no attribute {name!r} for the notebook")
        return given[name]

    def __repr__(self) -> str:
        return f"<task {self._of.name}, {counted(self._of.points, 'point')}>"

    def _repr_markdown_(self) -> str:
        return self._of.text()


def check(name: str, answer: Any = UNSET, hidden: bool = False) -> None:
    """Check an answer: the notebook's variable or function `name`, or the answer that is given.

    The feedback says what is wrong, with a hint where the mistake is known.  `hidden` tries more cases.

    >>> check("mul_grad", lambda g, out, a, b: (g * b, g * a))
    ✓ mul_grad: right...
    >>> check("mul_grad", lambda g, out, a, b: (g * a, g * b))
    Traceback (most recent call last):
    minigrad_course.feedback.Wrong: ✗ mul_grad: the gradient of a is wrong
      Expected: -10.0, by finite differences
      Got: 15.0...
    """
    opened()
    which = _task(name)
    frame = sys._getframe(1)
    namespace = frame.f_globals
    attempts = ATTEMPTS.at(frame.f_lineno if frame.f_code.co_name == "<module>" else None, namespace)
    newer = _newer(which, namespace, attempts) if answer is UNSET else None
    given = answer
    try:
        given = _lookup(which, namespace, attempts) if answer is UNSET else answer
        said = _run(which, given, HIDDEN_ROUNDS if hidden else ROUNDS)
    except Feedback as feedback:
        if newer is not None and which.name in namespace and not isinstance(feedback, Misused):
            feedback.hint = f"{newer} is newer and was not checked. If it is your answer, rename it to {which.name}"
        elif not isinstance(feedback, NotWritten | Misused):
            _store(SESSION.progress.note, which, False, said=_said(which, given))
        if which.strict:
            raise feedback from None
        feedback.box.tell()
        return _show_picture(which, given)
    _store(SESSION.progress.note, which, True, _source(given), _said(which, given), _uses(which, given))
    more = "" if newer is None else f"\n  {newer} is newer and was not checked."
    said._replace(message=said.message + more).tell()
    _show_picture(which, given)


def progress() -> Progress:
    """The student's progress: the tasks of this notebook's unit, then the points of the other units."""
    record = opened()
    record.unit = SESSION.unit
    return record


def report() -> Path:
    """Write `report.html`, to print or to hand in, and print where it is."""
    path = opened().report()
    print(f"The report is {path.name}, in {path.parent.name}/: open it from the list of files.")
    return path


def opened() -> Progress:
    """The student's progress, from the file of the workspace also in a notebook that has not called `begin`."""
    path = found()
    if path is not None and SESSION.progress.path is None:
        SESSION.progress = _kept(path)
        _report_damage()

    return SESSION.progress

def _kept(path: Path | None) -> Progress:
    """The progress in a file; where it cannot be read, progress without a file."""
    try:
        return Progress(path)
    except (OSError, MinigradError) as error:
        print(f"! {FILE} cannot be read: {_first_line(error)}. Progress is lost when the kernel stops.")
        return Progress()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _store(change: Callable[..., None], *args: Any, **more: Any) -> None:
    """Change the student's progress.  Where the file cannot be written, a warning is printed and the check goes on."""
    try:
        change(*args, **more)
    except (OSError, MinigradError) as error:
        print(f"! progress is not saved: {_first_line(error)}. The kernel keeps it, and the next check saves it.")
    _report_damage()


def _report_damage() -> None:
    """Report once where a damaged file has been moved to."""
    aside, SESSION.progress.aside = SESSION.progress.aside, None
    if aside is not None:
        print(f"! {FILE} was damaged. It is kept as {aside.name}, and a new file begins without progress.")


def _said(which: Task, given: Any) -> str:
    return written(given) if which.kind == "value" and given is not UNSET else ""


def _show_picture(which: Task, given: Any) -> None:
    """Show the picture of an answer below its feedback, in a notebook."""
    shell = notebook_shell()
    picture = which.illustration(given) if hasattr(shell, "kernel") else None
    if picture is not None:
        shell.display_pub.publish(picture._repr_mimebundle_())


# ---- running an answer -----------------------------------------------------------------------------------------------


def _run(which: Task, given: Any, rounds: int) -> Box:
    """The feedback on a right answer; for any other, feedback is raised."""
    if which.kind == "value" and _is_open(given):
        raise NotWritten(which.name, "not answered yet", _how(which, given))
    if which.kind == "function" and not callable(given):
        raise Misused(which.name, f"{which.name} is {written(given)}, but it should be a function", "def, not =")
    try:
        with at_most(which.seconds):
            said = which.check(_kind(which, given), rounds)
    except Feedback as feedback:
        if isinstance(which, Prediction) and not isinstance(feedback, Misused):
            return _noted(which, given, feedback)
        raise
    except NotImplementedError as error:
        raise NotWritten(which.name, "not written yet", _where_stub(error)) from None
    except TimeIsUp as error:
        what = f"not done after {which.seconds:g} seconds"
        where = "\n".join([what, *place(error)])
        hint = f"does each turn of the loop come closer to its end? ({how_to_stop()})"
        raise Stopped(which.name, where, hint) from None
    except Exception as error:
        raise stopped(which.name, error, which.advice) from None
    if isinstance(which, Bet):
        return Box("noted", which.name, f"noted, {written(given)}. {said}")
    points = f", {counted(which.points, 'point')}" if which.points else ""
    return Box("right", which.name, f"right{points}" + (f"\n  {said}" if said else ""))


def _is_open(given: Any) -> bool:
    """Whether an answer is missing, or contains dots."""
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, list | tuple) else [given]
    return any(part is None or part is ... for part in parts)


def _how(which: Task, given: Any) -> str:
    if given is None and isinstance(which, ValueTask) and is_count(which.right()):
        return "None stands for an answer that is missing. If you mean that there are none, write 0"
    example = getattr(which, "example", "")
    form = f", in the form {which.name} = {example}" if example else ""
    return f"put your answer in the place of the dots{form}"


def _noted(which: Prediction, given: Any, feedback: Feedback) -> Box:
    hint = f"\n  {feedback.hint}" if feedback.hint else ""
    return Box("noted", which.name, f"noted, {written(given)}. {which.turned_out(given)}{hint}")


def _kind(which: Task, given: Any) -> Any:
    """The answer; as a function, it raises NotImplementedError while it is empty."""
    if which.kind != "function":
        return given

    def answer(*args: Any, **more: Any) -> Any:
        result = given(*args, **more)
        if result is None and not inspect.isgeneratorfunction(given) and _is_empty(given):
            raise NotImplementedError
        return result

    return update_wrapper(answer, given)  # a task may need the function itself, to read its source


def _is_empty(function: Callable[..., Any]) -> bool:
    """Whether a function contains only `pass`, dots or a docstring."""
    code = getattr(function, "__code__", None)
    return code is not None and {each.opname for each in dis.get_instructions(code)} <= NOTHING


def _where_stub(error: BaseException) -> str:
    words = place(error)
    return "write it in the place of `raise NotImplementedError()`" + (f",{words[0].rstrip(':')}" if words else "")


def _task(name: str) -> Task:
    found = task_of(name)
    if found is not None:
        return found(SESSION.student)
    within = list(SESSION.unit.tasks) if SESSION.unit is not None else []
    near = get_close_matches(str(name).lower(), [*within, *task_names()], 1)
    hint = 'the name of the task, in quotation marks, as in course.check("rise")'
    hint = f'course.check("{near[0]}")?' if near else "one of " + ", ".join(within) if within else hint
    raise Misused(name, "there is no task of that name", hint)


# ---- finding an answer -----------------------------------------------------------------------------------------------


def _lookup(which: Task, namespace: Mapping[str, Any], attempts: Attempts) -> Any:
    """The notebook's value of that name; feedback is raised if the newest cell that assigns it stopped before."""
    stop = attempts.stops.get(which.name)
    if stop is not None:
        raise _after_stop(which, stop)
    if which.name not in namespace:
        near = get_close_matches(which.name, [key for key in namespace if not key.startswith("_")], 1, NEAR)
        hint = f"do you mean {near[0]}?" if near else "run the cell that defines it"
        raise NotWritten(which.name, f"there is no {which.name} here yet", hint)
    return namespace[which.name]


def _after_stop(which: Task, stop: Stop) -> Feedback:
    """The feedback on a cell that stopped before it made the answer: the value in the notebook is older."""
    name, again = which.name, "put that right and run the cell again: the older value is not your answer"
    if issubclass(stop.kind, SyntaxError):
        error = unreadable(stop.source)
        return stopped(name, error if error is not None else SyntaxError(stop.words))
    if issubclass(stop.kind, NotImplementedError):
        return NotWritten(name, "not written yet", "write it in the place of `raise NotImplementedError()`")
    if issubclass(stop.kind, KeyboardInterrupt):
        return Misused(name, "the cell of your answer was interrupted too early", "run it to its end")
    if issubclass(stop.kind, Feedback):
        return Misused(name, "the cell of your answer stopped at a check above it", again)
    if issubclass(stop.kind, NameError):
        again = PLAIN
    return Misused(name, f"the cell of your answer stopped with {stop.kind.__name__}: {stop.words}", again)


def _newer(which: Task, namespace: Mapping[str, Any], attempts: Attempts) -> str | None:
    """A name that looks like the task's and was made later: perhaps the answer that the student means."""
    helpers = getattr(getattr(namespace.get(which.name), "__code__", None), "co_names", ())
    others = [name for name, value in namespace.items() if callable(value) == (which.kind == "function")]
    return attempts.newer(which.name, [name for name in others if name not in {*names_in_use(), *helpers}])


def _source(given: Any) -> str:
    if not callable(given):
        return written(plain(given))
    try:
        return inspect.getsource(given)
    except (OSError, TypeError):
        return ""


def _uses(which: Task, given: Any) -> dict[str, Any]:
    """The source of an answer with all that it uses, for `my_framework`; empty where there is none."""
    try:
        if callable(given):
            return source_of(given)._asdict()
        return {"head": [line_of(which.name, plain(given))], "code": {}}
    except Misused:
        return {}


def _explain_stubs() -> None:
    """Let a notebook explain the error of a cell that has not been written yet."""
    shell = notebook_shell()
    if shell is None:
        return

    def explain(shell: Any, kind: Any, error: BaseException, trace: Any, tb_offset: Any = None) -> list[str]:
        answers = names_in_use() & missed(shell.user_ns.get("In", [""])[-1], error, shell.user_ns)
        if isinstance(error, NotImplementedError):
            what = "not written yet: write your answer, and delete the line `raise NotImplementedError()`"
            Box("open", "this cell", "\n".join([what, *place(error)])).tell()
        elif answers:
            Box("stopped", min(answers), "\n".join([f"stopped with NameError: {error}", *place(error)]), PLAIN).tell()
        else:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
        return []

    shell.set_custom_exc((NotImplementedError, NameError), explain)
