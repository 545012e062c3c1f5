"""`Passing`: the base of interpreters that change inputs or results of operations, such as autocast and `offload`."""

from __future__ import annotations

from copy import copy

from .emit import EAGER, Interpreter
from .mode import Mode
from .tensor import Tensor


class Passing(Interpreter):
    """Changes inputs or results, and passes operations on to the mode outside."""

    def __init__(self, outer: Mode) -> None:
        self.outer = outer
        self.below = outer.interpreter or EAGER

    def lift(self, tensor: Tensor) -> Tensor:
        return self.below.lift(tensor)

    def on(self, other: Interpreter) -> Interpreter:
        changed = copy(self)
        Passing.__init__(changed, self.outer.but(interpreter=super().on(other)))
        return changed
