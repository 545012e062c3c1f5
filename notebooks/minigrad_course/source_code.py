"""Functions made from source text, for the variants of students, and source text made from a student's functions."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator
from itertools import count
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import Any

from minigrad.ops import elementwise

from .feedback import Misused, is_students, written

NUMBERS = count(1)


class Library:
    """`mg` in the programs."""

    tanh, exp = staticmethod(elementwise.tanh), staticmethod(elementwise.exp)


class Program:
    """A function with the names that it reads, and a line that changes one of these.

    >>> program = Program("scale = 2\\n\\ndef f(x):\\n    return scale * x\\n", "scale = 5")
    >>> program.function(1), program.run(), program.function(1), program.fresh()(1)
    (2, None, 5, 2)
    """

    def __init__(self, code: str, change: str = "") -> None:
        self.code, self.change = code, change
        self.fresh()

    def fresh(self) -> Callable[..., Any]:
        """The function, with the first values of all names."""
        self.names: dict[str, Any] = {"__name__": "__main__", "mg": Library}
        run_code(self.code, self.names)
        self.function: Callable[..., Any] = list(self.names.values())[-1]
        return self.function

    def run(self) -> None:
        """Run the line that changes a name."""
        run_code(self.change, self.names)


def run_code(code: str, names: dict[str, Any]) -> None:
    """Run code with these names.  Messages can show its lines, like those of a notebook's cell."""
    file = f"<ipython-course-{next(NUMBERS)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)


def as_file(*functions: Callable[..., Any]) -> str:
    """The source of functions, and before it that of the notebook's functions and modules that they use."""
    head, bodies, seen = ["import numpy as np", "import minigrad as mg"], list[str](), set[str]()

    def names(code: CodeType) -> Iterator[str]:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from names(inner)

    def add(name: str, function: FunctionType) -> None:
        seen.add(name)
        for other in names(function.__code__):
            value = function.__globals__.get(other)
            if isinstance(value, ModuleType):
                head.append(f"import {value.__name__} as {other}")
            elif isinstance(value, int | float | str):
                head.append(f"{other} = {value!r}")
            elif isinstance(value, FunctionType) and is_students(value.__code__.co_filename) and other not in seen:
                add(other, value)
        try:
            bodies.append(dedent(inspect.getsource(function)))
        except (OSError, TypeError):
            raise Misused(name, "its source was not found", "write it with def, in a cell of this notebook") from None

    for function in functions:
        if not isinstance(function, FunctionType):
            raise Misused(written(function), "it is not a function", "write it above, and run its cell")
        add(function.__name__, function)
    return "\n".join([*head, "", *bodies])
