"""Context variables that `with` blocks set, and the cells of a notebook that set them back after an error."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Any, Self

from .source import notebook_shell

SWITCHED: list[ContextVar[Any]] = []


def switched_variable(name: str, default: Any) -> ContextVar[Any]:
    """A context variable that blocks set.  A cell that ends in an error sets it back."""
    variable = ContextVar(name, default=default)
    SWITCHED.append(variable)
    return variable


class Block:
    """A `with` block in which a context variable has the value that `value()` returns.

    Ctrl-C raises KeyboardInterrupt between any two instructions, and only the code inside `__enter__` and `__exit__`
    can handle that.  If `__exit__` is interrupted before its first line, the block outside sets the variable back, or
    `__del__` does when the exception is deleted; in a notebook, the end of the cell does.
    """

    variable: ContextVar[Any]
    entered: tuple[Token[Any], Any, Any] | None = None  # the token, the value, the previous value of `entered`

    def value(self) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        value, before, outer = self.value(), self.variable.get(), self.entered
        try:
            self.entered = self.variable.set(value), value, outer
            return self
        except BaseException:
            self.entered = outer
            self.variable.set(before)
            raise

    def __exit__(self, *error: object) -> None:
        token, _, outer = self.entered  # type: ignore[misc]
        try:
            self.variable.reset(token)
            self.entered = outer
        except BaseException:
            self.entered = outer
            with suppress(RuntimeError, ValueError):  # it is reset already, or belongs to another thread
                self.variable.reset(token)
            raise

    def __del__(self) -> None:
        while self.entered is not None:
            token, value, self.entered = self.entered
            if self.variable.get() is value:
                with suppress(RuntimeError, ValueError):
                    self.variable.reset(token)


class setting(Block):
    """A block in which `variable` is `value`."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self.variable, self._value = variable, value

    def value(self) -> Any:
        return self._value


class Cells:
    """Sets the variables back when a cell ends in an error.

    A `with` block does this too, unless Ctrl-C stops it before the first line of `__exit__`.  Then later cells would
    run without gradients, for example.
    """

    def __init__(self) -> None:
        self.begun: list[list[Any]] = []  # a stack: a cell may run another cell

    def begin(self, info: Any = None) -> None:
        """Store the variables' values when a cell begins."""
        self.begun.append([variable.get() for variable in SWITCHED])

    def end(self, result: Any) -> None:
        """Set the variables back if the cell failed."""
        if self.begun:  # else the cell began before minigrad was imported
            for variable, before in zip(SWITCHED, self.begun.pop()):
                if not result.success and variable.get() is not before:
                    variable.set(before)


def watch_cells() -> None:
    """Register `Cells` with the notebook that this code runs in, if any."""
    shell = notebook_shell()
    if shell is not None:
        cells = Cells()
        shell.events.register("pre_run_cell", cells.begin)
        shell.events.register("post_run_cell", cells.end)
