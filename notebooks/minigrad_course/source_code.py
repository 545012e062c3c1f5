"""Functions made from source text, for the variants of students, and source text made from a student's functions."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from itertools import count
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

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


class Source(NamedTuple):
    """The source of functions: the lines that import or set what they use, and the code of each, by its name."""

    head: list[str]
    code: dict[str, str]  # the notebook's own functions that they call come first

    def __str__(self) -> str:
        return "\n".join([*self.head, "", *self.code.values()])


def source_of(*functions: Callable[..., Any]) -> Source:
    """The source of a student's functions, with all that they use from the notebook.

    >>> from minigrad_course.source_code import run_code
    >>> notebook = {}
    >>> run_code("from math import pi, sin\\nhalf = 0.5\\ndef wave(x):\\n    return half * sin(pi * x)\\n", notebook)
    >>> print(source_of(notebook["wave"]))
    import numpy as np
    import minigrad as mg
    half = 0.5
    from math import sin
    pi = 3.141592653589793
    <BLANKLINE>
    def wave(x):
        return half * sin(pi * x)
    <BLANKLINE>
    """
    found = Source(["import numpy as np", "import minigrad as mg"], {})
    for function in functions:
        if not isinstance(function, FunctionType):
            raise Misused(written(function), "it is not a function", "write it above, and run its cell")
        _add(found, function.__name__, function, set())
    return found


def _add(found: Source, name: str, function: FunctionType, adding: set[str]) -> None:
    """Add a function, after everything that it reads by name."""
    adding.add(name)
    for other in _names(function.__code__):
        value = function.__globals__.get(other, found)
        if isinstance(value, FunctionType) and is_students(value.__code__.co_filename):
            if other not in adding and other not in found.code:
                _add(found, other, value, adding)
        elif value is not found and (line := line_of(other, value)) and line not in found.head:
            found.head.append(line)
    try:
        found.code[name] = dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise Misused(name, "its source was not found", "write it with def, in a cell of this notebook") from None


def _names(code: CodeType) -> Iterator[str]:
    """The names that code reads, also in the functions inside of it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def line_of(name: str, value: Any) -> str:
    """The line that makes a module, an object of a package, or a plain value; empty for anything else."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    if isinstance(value, int | float | str | bool | tuple | list) and _is_literal(value):
        return f"{name} = {value!r}"
    own = getattr(value, "__name__", None)
    for place in ("minigrad_course", getattr(value, "__module__", None)):
        if place in sys.modules and own and getattr(sys.modules[place], own, None) is value:
            return f"from {place} import {own}" + (f" as {name}" if name != own else "")
    return ""


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False
