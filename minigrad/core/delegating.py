"""The bases of interpreters inside another mode: `Nested` (vmap, jvp), and `Delegating` (autocast, `offload`)."""

from __future__ import annotations

from copy import copy

from .emit import EAGER, Interpreter
from .mode import Mode, current_mode
from .tensor import Tensor


class Nested(Interpreter):
    """Computes with operations of the mode outside, `outer`."""

    outer: Mode

    def on(self, other: Interpreter) -> Interpreter:
        below = self.outer.interpreter
        return other if below is None else below.on(other)


class Delegating(Nested):
    """Changes inputs or results, and passes operations on to the mode outside."""

    def __init__(self, outer: Mode) -> None:
        self.outer = outer
        self.below = outer.interpreter or EAGER

    def lift(self, tensor: Tensor) -> Tensor:
        return self.below.lift(tensor)

    def on(self, other: Interpreter) -> Interpreter:
        changed = copy(self)
        Delegating.__init__(changed, self.outer.but(interpreter=super().on(other)))
        return changed


def recorder() -> Interpreter | None:
    """The interpreter that operations arrive at, below those that only pass them on; None in eager mode."""
    interpreter = current_mode().interpreter
    while isinstance(interpreter, Delegating):
        interpreter = interpreter.outer.interpreter
    return interpreter
