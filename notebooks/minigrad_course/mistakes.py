"""Known mistakes that are written in the texts of a unit: what a student writes, and the hint.

`mistakes` of a task is a list of rows.  A row with a part of the right program and what stands in its place is a slip:
`["a * b", "a + b", "multiply"]`; there may be several such pairs.  A row with one expression has the whole result:
`["g * a", "..."]`.  Its names are the parameters of the function that the student writes too: see `expressions.py`.
"""

from __future__ import annotations
import __future__

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from textwrap import dedent
from typing import Any

from minigrad.support.errors import DeclarationError
from minigrad.support.table import counted

from .expressions import KNOWN, value


def program_of(cls: Any, row: Sequence[str]) -> Callable[..., Any]:
    """The program of a row without its hint, as a method of the task.  A slip is made when it is used."""
    made = cache(lambda: slipped(cls, row) if len(row) > 1 else _expression(row[0]))
    return lambda task, *args: made()(task, *args)


def slipped(cls: Any, changes: Sequence[str]) -> Callable[..., Any]:
    """The right program of a task with some changes of its text: each part, and what stands in its place."""
    function = getattr(cls, cls.slips_of)
    text = dedent(inspect.getsource(function))
    for right, slip in zip(changes[::2], changes[1::2]):
        if text.count(right) != 1:
            times = counted(text.count(right), "time")
            raise DeclarationError(f"{cls.__name__}.{cls.slips_of}: {right!r} of a slip is there {times}, not once")
        text = text.replace(right, slip)
    names = {**KNOWN, **function.__globals__}
    flags = __future__.annotations.compiler_flag  # those of the signature are not evaluated
    exec(compile(text, "<slip>", "exec", flags), names)
    program: Callable[..., Any] = names[function.__name__]
    return program


def _expression(text: str) -> Callable[..., Any]:
    return lambda task, *args: value(text, task, dict(zip(task.parameters(), args)) if args else {})
