"""Finds the line of the user's code that made a node.

A node stores the code object and the offset of the instruction, not the frame, which would keep all its variables
alive.  The line number is computed only when it is shown.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import os
import sys
import warnings
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from threading import RLock
from types import CodeType, TracebackType
from typing import Any

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
EXAMPLES = os.path.join(HOME, "examples", "")
OURS = {"minigrad": HOME}  # packages whose lines are not the user's, with their folders

Where = tuple[CodeType, int]
ON_BEHALF_OF: ContextVar[Where | None] = ContextVar("line", default=None)  # the caller for whom a worker thread runs


class Files(dict[str, bool]):
    """Whether a file belongs to minigrad, by its name; computed at the first look-up.

    The examples are programs like a user's, so their lines are shown.
    """

    def __missing__(self, filename: str) -> bool:
        path = filename if filename.startswith("<") else os.path.abspath(filename)  # of an import by "../minigrad"
        inside = self[filename] = path.startswith((*OURS.values(),)) and not path.startswith(EXAMPLES)
        return inside


# minigrad calls itself through these.
LIBRARY = Files(dict.fromkeys((functools.__file__, contextlib.__file__, "<frozen importlib._bootstrap>"), True))
in_library = LIBRARY.__getitem__  # hot paths use `LIBRARY[filename]`, which is faster


PARSING = RLock()


def parsed(text: str, mode: str = "exec", filename: str = "<unknown>") -> Any:
    """The syntax tree of a text, made by one thread at a time.

    In Python 3.11, a finaliser that runs meanwhile may let another thread in, and two trees at once are a SystemError.

    >>> parsed("1 + 2", "eval").body.right.value
    2
    """
    with PARSING:
        return ast.parse(text, filename, mode)


def add_package(package: str, file: str) -> None:
    """Count a package that stands on minigrad as a part of it: its lines are not shown as the user's.

    The package calls this first, with its `__name__` and its `__file__`.
    """
    OURS[package] = os.path.dirname(os.path.abspath(file)) + os.sep


@functools.lru_cache(maxsize=256)
def installed_in(folder: str) -> tuple[str, ...]:
    """The packages and modules that pip has put into a folder, by their paths."""
    place = os.path.abspath(folder)
    records = [path.read_text(encoding="utf-8") for path in Path(place).glob("*.dist-info/RECORD")]
    names = {line.split(",")[0].split("/")[0] for record in records for line in record.splitlines()}
    return tuple([f"{place}/{name}/".replace("\\", "/") for name in names])


def caller(depth: int = 1) -> Where:
    """The nearest caller outside minigrad, at least `depth` frames up.

    >>> code, offset = caller()
    >>> code.co_name
    '<module>'
    """
    frame = sys._getframe(depth)
    code = frame.f_code
    while LIBRARY[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    return code, frame.f_lasti


def variables() -> dict[str, Any]:
    """The variables of the nearest caller outside minigrad.

    >>> one = 1
    >>> variables()["one"]
    1
    """
    frame = sys._getframe(1)
    while LIBRARY[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def warn_caller(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, once for each line."""
    level, frame = 1, sys._getframe()
    while LIBRARY[frame.f_code.co_filename] and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def line_of(where: Where | None) -> tuple[str, int]:
    """The file and the line number of an instruction."""
    if where is None:
        return "unknown file", 0
    code, offset = where
    lines = [line for start, stop, line in code.co_lines() if start <= offset < stop]
    return code.co_filename, (lines[0] if lines else None) or code.co_firstlineno


def span_of(where: Where) -> tuple[int, int, int, int] | None:
    """The first and last line of an instruction's expression, and its first and last column, counted in bytes.

    >>> line, last_line, column, end = span_of(caller())
    >>> (end - column) == len("caller()")
    True
    """
    code, offset = where
    span = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    return None if None in span else span  # type: ignore[return-value]


def show(where: Where | None) -> str:
    """`file:line` and the text of the line, for messages."""
    if where is None:
        return "an unknown line"
    filename, line = line_of(where)
    text = linecache.getline(filename, line).strip()
    return f"{_called(filename)}:{line}" + (f"  {text}" if text else "")


def text_of(error: Exception) -> str:
    """The line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return show((trace.tb_frame.f_code, trace.tb_lasti)) if trace is not None else ""


def _called(filename: str) -> str:
    """The name of a file in messages.  The file of a notebook's cell has a meaningless name: its cell is named."""
    naming = getattr(getattr(notebook_shell(), "compile", None), "format_code_name", None)  # since IPython 8
    cell = naming and naming(filename)
    return " ".join(cell) if cell else filename


PAGES: list[Any] = []  # the cells of a web page, where there is no IPython


def notebook_shell() -> Any:
    """What runs the cells: the IPython shell of a notebook, or a page; None elsewhere."""
    return PAGES[-1] if PAGES else getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def outside(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of minigrad and of the notebook's shell."""
    kept = []
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if not (in_library(filename) or filename.endswith("interactiveshell.py")):
            kept.append(trace)
        trace = trace.tb_next
    rest = None
    for each in reversed(kept):
        rest = TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest
