"""What a notebook of the course calls: `begin`, `task`, `check`, `progress`, `report`, `keep`."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..support.errors import MinigradError
from ..support.source import notebook_shell
from .attempts import ATTEMPTS, NEAR, Attempts, Stop, watch_cells
from .compare import plain
from .feedback import Feedback, Misused, NotWritten, Stopped, place, stopped, unreadable, written
from .limits import TimeIsUp, at_most
from .results import FILE, Progress, found
from .unit import HIDDEN_ROUNDS, ROUNDS, Prediction, Task, Unit, units

watch_cells()
UNSET = object()
NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}  # instructions of an empty function


class Session:
    """Whose notebook this is, and of which unit."""

    def __init__(self) -> None:
        self.unit: Unit | None = None
        self.progress = Progress()

    @property
    def student(self) -> str:
        return self.progress.student

    @property
    def author(self) -> str:
        """The name that a student's code is shown under."""
        return self.student or "you"


SESSION = Session()


def begin(unit: str, student: str = "") -> None:
    """Begin a unit, under a name: the tasks' numbers depend on it, and the report bears it.

    >>> begin("00_start")
    00 · ...
    """
    known = units()
    if unit not in known:
        raise Misused(unit, "there is no such unit", "one of " + ", ".join(known))
    SESSION.unit = known[unit]
    SESSION.progress = _kept(found())
    _store(SESSION.progress.name, student.strip())
    _explain_stubs()
    each = SESSION.unit
    print(f"{each.number:02} · {each.title}: {each.minutes} minutes, {len(each.tasks)} tasks, {each.points} points")
    print(f"for {SESSION.student or 'nobody in particular: with a name, the numbers are yours'}")
    if SESSION.progress.path is None:
        print("progress is forgotten with the kernel; course.keep() keeps it in this folder")


def keep(folder: str = ".") -> None:
    """Keep progress in a folder from now on: for hosts where nobody has made a workspace."""
    path = Path(folder) / FILE
    now = SESSION.progress
    SESSION.progress = _kept(path)
    _store(SESSION.progress.take_in, now)


def task(name: str) -> Shown:
    """A task in this student's variant; a notebook shows its text.

    >>> task("mul_grad")
    <task mul_grad, ... points>
    """
    return Shown(_task(name))


class Shown:
    """A task that shows itself in a notebook; what it gives away is an attribute, and the answer is not."""

    def __init__(self, of: Task) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        given = {} if name.startswith("_") else self._of.given()
        if name not in given:
            raise AttributeError(f"task {self._of.name} gives nothing called {name!r}")
        return given[name]

    def __repr__(self) -> str:
        return f"<task {self._of.name}, {self._of.points} points>"

    def _repr_markdown_(self) -> str:
        return self._of.text()


def check(name: str, answer: Any = UNSET, hidden: bool = False) -> None:
    """Check an answer: what the notebook calls `name`, or the one that is given.

    What is wrong is said in words, with a hint where the mistake is a known one.  `hidden` tries more cases.

    >>> check("mul_grad", lambda g, out, a, b: (g * b, g * a))
    ✓ mul_grad: right...
    >>> check("mul_grad", lambda g, out, a, b: (g * a, g * b))
    Traceback (most recent call last):
    minigrad.course.feedback.Wrong: ✗ mul_grad: the gradient of a is wrong: yours 15.0, measured -10.0...
    """
    _open()
    which = _task(name)
    frame = sys._getframe(1)
    namespace = frame.f_globals
    attempts = ATTEMPTS.at((frame.f_code, frame.f_lasti), namespace)
    newer = _newer(which, namespace, attempts) if answer is UNSET else None
    given = UNSET
    try:
        given = _lookup(which, namespace, attempts) if answer is UNSET else answer
        said = _run(which, given, HIDDEN_ROUNDS if hidden else ROUNDS)
    except Feedback as feedback:
        if newer is not None and which.name in namespace and not isinstance(feedback, Misused):
            feedback.hint = f"{newer} is newer and was not checked. If it is your answer, call it {which.name}"
        elif not isinstance(feedback, NotWritten | Misused):
            _store(SESSION.progress.note, which, False, said=_said(which, given))
        if which.strict:
            raise feedback from None
        return print(feedback)
    _store(SESSION.progress.note, which, True, _source(given), _said(which, given))
    print(said if newer is None else f"{said}\n  {newer}, which is newer, was not checked.")


def progress() -> Progress:
    """How far the student is, over all units."""
    _open()
    return SESSION.progress


def report() -> Path:
    """Write `report.html`, to print or to hand in, and say where."""
    _open()
    path = SESSION.progress.report()
    print(f"The report is {path.name}, in {path.parent.name}/: open it from the list of files.")
    return path


def _open() -> None:
    """Go on in the workspace that we are in, where nothing was begun: notebooks ask before their exercises."""
    path = found()
    if path is not None and SESSION.progress.path is None:
        SESSION.progress = _kept(path)
        _report_damage()


def _kept(path: Path | None) -> Progress:
    """The progress in a file; where it cannot be read, progress without a file."""
    try:
        return Progress(path)
    except (OSError, MinigradError) as error:
        print(f"! {FILE} cannot be read: {_first_line(error)}. Progress is forgotten with the kernel.")
        return Progress()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _store(change: Callable[..., None], *args: Any, **more: Any) -> None:
    """Change the student's progress.  A check still answers where the file cannot be written, and says so."""
    try:
        change(*args, **more)
    except (OSError, MinigradError) as error:
        print(f"! progress is not saved: {_first_line(error)}. The kernel keeps it, and the next check saves it.")
    _report_damage()


def _report_damage() -> None:
    """Say where a damaged file has been put, once."""
    aside, SESSION.progress.aside = SESSION.progress.aside, None
    if aside is not None:
        print(f"! {FILE} was damaged. It is kept as {aside.name}, and progress begins anew.")


def _said(which: Task, given: Any) -> str:
    return written(given) if which.kind == "value" and given is not UNSET else ""


# ---- running an answer -----------------------------------------------------------------------------------------------


def _run(which: Task, given: Any, rounds: int) -> str:
    """What to say of a right answer; feedback is raised on any other."""
    if which.kind == "value" and _is_open(given):
        raise NotWritten(which.name, "not answered yet", _how(which))
    if which.kind == "function" and not callable(given):
        raise Misused(which.name, f"{which.name} is {written(given)}, and should be a function", "def, not =")
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
        hint = "does the loop come closer to its end each time round? (A cell that does not end is stopped by ■, above)"
        raise Stopped(which.name, where, hint) from None
    except Exception as error:
        raise stopped(which.name, error) from None
    points = f"{which.points} {'point' if which.points == 1 else 'points'}"
    return f"✓ {which.name}: right" + (f", {points}" if which.points else "") + (f"\n  {said}" if said else "")


def _is_open(given: Any) -> bool:
    """Whether there is no answer, or one with dots in it."""
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, list | tuple) else [given]
    return any(part is None or part is ... for part in parts)


def _how(which: Task) -> str:
    example = getattr(which, "example", "")
    form = f", in the form {which.name} = {example}" if example else ""
    return f"put your answer in the place of the dots{form}"


def _noted(which: Prediction, given: Any, feedback: Feedback) -> str:
    hint = f"\n  {feedback.hint}" if feedback.hint else ""
    return f"○ {which.name}: {written(given)} is noted, and it is otherwise.{hint}"


def _kind(which: Task, given: Any) -> Any:
    """The answer, in whose results a forgotten `return` is told apart from a wrong number."""
    if which.kind != "function":
        return given

    def answer(*args: Any, **more: Any) -> Any:
        result = given(*args, **more)
        if result is None and not inspect.isgeneratorfunction(given) and _is_empty(given):
            raise NotImplementedError
        return result

    return answer


def _is_empty(function: Callable[..., Any]) -> bool:
    """Whether there is nothing in a function but `pass`, dots or a docstring."""
    code = getattr(function, "__code__", None)
    return code is not None and {each.opname for each in dis.get_instructions(code)} <= NOTHING


def _where_stub(error: BaseException) -> str:
    words = place(error)
    return "write it in the place of `raise NotImplementedError()`" + (f",{words[0].rstrip(':')}" if words else "")


def _task(name: str) -> Task:
    for unit in units().values():
        if name in unit.tasks:
            return unit.tasks[name](SESSION.student)
    within = SESSION.unit.tasks if SESSION.unit is not None else {}
    names = [*within, *(task for unit in units().values() for task in unit.tasks)]
    near = get_close_matches(str(name).lower(), names, 1)
    if near:
        raise Misused(name, "there is no task of that name", f'course.check("{near[0]}")?')
    form = 'the name of the task, in quotation marks, as in course.check("rise")'
    hint = "one of " + ", ".join(within) if within else form
    raise Misused(name, "there is no task of that name", hint)


# ---- finding an answer -----------------------------------------------------------------------------------------------


def _lookup(which: Task, namespace: Mapping[str, Any], attempts: Attempts) -> Any:
    """What the notebook calls so; if its newest cell stopped before it had made it, that is what is wrong."""
    stop = attempts.stops.get(which.name)
    if stop is not None:
        raise _after_stop(which, stop)
    if which.name not in namespace:
        near = get_close_matches(which.name, [key for key in namespace if not key.startswith("_")], 1, NEAR)
        hint = f"is it {near[0]} that you mean?" if near else "run the cell that defines it"
        raise NotWritten(which.name, f"nothing here is called {which.name} yet", hint)
    return namespace[which.name]


def _after_stop(which: Task, stop: Stop) -> Feedback:
    """The feedback on a cell that stopped before it had made the answer: what is there is an older one."""
    name, again = which.name, "put that right and run the cell again: what was there before is not your answer"
    if issubclass(stop.kind, SyntaxError):
        error = unreadable(stop.source)
        return stopped(name, error if error is not None else SyntaxError(stop.words))
    if issubclass(stop.kind, NotImplementedError):
        return NotWritten(name, "not written yet", "write it in the place of `raise NotImplementedError()`")
    if issubclass(stop.kind, KeyboardInterrupt):
        return Misused(name, "the cell of your answer was interrupted before it had made one", "run it to its end")
    if issubclass(stop.kind, Feedback):
        return Misused(name, "the cell of your answer stopped at a check above it", again)
    if issubclass(stop.kind, NameError):
        again = "write numbers for names that this notebook does not have; words stand in quotation marks"
    return Misused(name, f"the cell of your answer stopped with {stop.kind.__name__}: {stop.words}", again)


def _newer(which: Task, namespace: Mapping[str, Any], attempts: Attempts) -> str | None:
    """A name that looks like the task's, of something made later, which may be the answer that is meant."""
    tasks = {name for unit in units().values() for name in unit.tasks}
    used = getattr(getattr(namespace.get(which.name), "__code__", None), "co_names", ())  # by the answer: a helper
    is_function = which.kind == "function"
    others = [name for name, value in namespace.items() if callable(value) == is_function]
    return attempts.newer(which.name, [name for name in others if name not in tasks and name not in used])


def _source(given: Any) -> str:
    if not callable(given):
        return written(plain(given))
    try:
        return inspect.getsource(given)
    except (OSError, TypeError):
        return ""


def _explain_stubs() -> None:
    """Let a notebook say in words what it means that a cell has not been written yet."""
    shell = notebook_shell()
    if shell is None:
        return

    def explain(shell: Any, kind: Any, error: BaseException, trace: Any, tb_offset: Any = None) -> list[str]:
        what = "○ not written yet: write your answer, and delete the line `raise NotImplementedError()`"
        words = [what, *place(error)]
        print("\n".join(words), file=sys.stderr)
        return words

    shell.set_custom_exc((NotImplementedError,), explain)
