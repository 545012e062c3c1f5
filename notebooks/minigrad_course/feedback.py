"""The feedback of a check: what is wrong, at the student's line, without the library's own traceback."""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from minigrad.support.errors import MinigradError
from minigrad.support.source import in_library, parsed

from .boxes import Box
from .texts import texts_of

INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
OWN_PLACES = ("<frozen", "<string>", "<unknown>")


class Feedback(MinigradError):
    """A check of the course has not passed.  A notebook shows the text alone, without a traceback.

    >>> import minigrad_course as course
    >>> course.begin("99_nothing")
    Traceback (most recent call last):
    minigrad_course.feedback.Misused: ! 99_nothing: there is no such unit
    ...

    Hint: the text names the task and the line of your code.  There are four kinds: `NotWritten`, `Wrong`, `Stopped`
    and `Misused`.
    """

    kind = "wrong"
    lines: list[str] = []  # of the traceback: IPython asks for them twice, and the box is shown once

    def __init__(self, task: str, message: str, hint: str | None = None) -> None:
        self.task, self.message, self.hint = task, message, hint
        Exception.__init__(self, task, message, hint)  # the text names the student's line, not the caller's

    @property
    def box(self) -> Box:
        """What is said, as a box."""
        return Box(self.kind, self.task, self.message, self.hint)

    def __str__(self) -> str:
        return str(self.box)

    def _render_traceback_(self) -> list[str]:
        if not self.lines:
            self.lines = ["This cell stopped here: see above."] if self.box.show() else str(self).splitlines()
        return self.lines


class NotWritten(Feedback):
    """There is no answer yet."""

    kind = "open"


class Wrong(Feedback):
    """The answer is wrong."""


class Stopped(Feedback):
    """The student's code raised an exception, or took too long."""

    kind = "stopped"


class Misused(Feedback):
    """Something other than the answer is wrong: an unknown task or unit, for example."""

    kind = "misused"


def stopped(task: str, error: BaseException, known: Mapping[str, str] = {}, call: str = "") -> Stopped:
    """The feedback on an exception in the student's code: the error, the call, the line, and a hint.

    `known` has the task's own hints, each for a part of an error's message.
    """
    kind = type(error).__name__
    first, *rest = str(error.msg if isinstance(error, SyntaxError) else error).splitlines() or [""]
    if isinstance(error, MinigradError):  # its last line repeats the place
        rest = [line for line in rest if not line.startswith("  Line:")]
    own = next((hint for part, hint in known.items() if part in str(error)), None)
    if own is not None:  # instead of the library's
        rest = [line for line in rest if not line.startswith("  Hint:")]
    lines = [f"stopped with {kind}: {first}", *rest, *([f"  in {call}"] if call else []), *place(error)]
    return Stopped(task, "\n".join(lines), own or advice(error))


@contextmanager
def at_its_line(task: str, call: str = "") -> Iterator[None]:
    """Show an error of a student's function, which the engine calls in this block, at the student's line."""
    try:
        yield
    except Feedback:
        raise
    except NotImplementedError:
        raise NotWritten(task, "not written yet", "write it first, and run its cell") from None
    except Exception as error:
        raise stopped(task, error, call=call) from None


def place(error: BaseException) -> list[str]:
    """The last line of the student's code that an exception came through; empty if it came through none."""
    if isinstance(error, SyntaxError):
        return _syntax(error)
    frame = innermost(error.__traceback__)
    if frame is None:
        return []
    filename, number = frame
    text = linecache.getline(filename, number).strip()
    return [f"  line {number} of {shown(filename)}: {text}"]


def innermost(trace: TracebackType | None) -> tuple[str, int] | None:
    """The file and number of the last line of a traceback that is neither minigrad's nor Python's own."""
    found = None
    for frame, number in traceback.walk_tb(trace):
        filename = frame.f_code.co_filename
        if is_students(filename):
            found = filename, number
    return found


def is_students(filename: str) -> bool:
    """Whether the code in a file is neither minigrad's nor that of an installed package.

    >>> is_students(__file__), is_students("/anywhere/ipykernel_1/2.py")
    (False, True)
    """
    return not (in_library(filename) or filename.startswith(INSTALLED) or filename.startswith(OWN_PLACES))


def shown(filename: str) -> str:
    """The name of a file in messages; the files of notebook cells have generated names."""
    is_cell = "ipykernel_" in filename or filename.startswith("<")
    return "the cell" if is_cell else filename.replace("\\", "/").rpartition("/")[2]


def _syntax(error: SyntaxError) -> list[str]:
    text = (error.text or "").rstrip("\n")
    lines = [f"  line {error.lineno} of the cell: {text.strip()}"]
    if error.offset and text.strip():
        lead = len(lines[0]) - len(text.strip())
        column = error.offset - 1 - (len(text) - len(text.lstrip()))
        lines.append(" " * (lead + max(column, 0)) + "^")
    return lines


def advice(error: BaseException) -> str | None:
    """The hint for such an exception."""
    texts = texts_of(Path(__file__).parent)
    rows = texts.data["errors"] if texts is not None else ()
    mine = [row for row in rows if row[0] == type(error).__name__]
    return next((words for _, pattern, words in mine if re.search(pattern, str(error))), None)


def unreadable(source: str, filename: str = "<cell>") -> SyntaxError | None:
    """The error that stops Python from reading a cell, if there is one.

    >>> unreadable("def f(x)\\n    return x").lineno
    1
    """
    try:
        parsed(source, filename=filename)
    except SyntaxError as error:
        return error
    return None


def written(number: Any) -> str:
    """A value as a student would write it, in at most 100 characters.

    >>> import numpy as np
    >>> written(np.float32(0.1)), written(mg.asarray([1.0, 2.0])), written((1, mg.asarray(2.5)))
    ('0.1', '[1.0, 2.0]', '(1, 2.5)')
    """
    if hasattr(number, "numpy"):
        number = number.detach().numpy()
    if hasattr(number, "tolist"):
        rounded = number.item() if not number.shape else number.tolist()
        return written(rounded) if not number.shape else _short(rounded)
    if isinstance(number, float):
        text = f"{number:.6g}"
        return text if set(text) & set(".en") else f"{text}.0"
    if isinstance(number, tuple):
        inside = ", ".join(map(written, number))
        return f"({inside},)" if len(number) == 1 else f"({inside})"
    return _short(number)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, list) else "[" + ", ".join(map(written, value)) + "]"
    return text if len(text) <= 100 else f"{text[:97]}..."
