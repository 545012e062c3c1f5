"""Functions made from source text, for the variants of students: the engine treats them as the user's code."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any

from ..ops import elementwise

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
