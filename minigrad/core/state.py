"""State that outlives an operation, and control flow: Python's own, or a trace's.

A mode has a `State` and a `Control` beside its interpreter.  jvp and autocast replace
the interpreter only, vmap also the control; a trace replaces all three.  The classes
here are those of eager mode; others are subclasses and say what they do differently.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .primitive import Attrs, Primitive

Tensor = Any  # `tensor` imports this module


class State:
    """How tensors, gradients and generators are read and written: here, directly."""

    seals_generators = False  # whether reading a generator's state is an error
    arrays: dict[int, Tensor] | None = None  # in a trace: tensors that stand for arrays
    models: Any = None  # in a trace: of each name of a model, whose it is, by id

    def stand_in(self, tensor: Tensor) -> Tensor:
        """The tensor to read and write in place of `tensor`."""
        return tensor

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        """The value of `tensor.grad`."""
        return tensor._grad

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        """Run `tensor.grad = gradient`."""
        tensor._grad = gradient

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """The tensor to use for one that was just made from host memory."""
        return tensor

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int] | None:
        """The random numbers of a draw; None if the generator makes them."""
        return None

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        """Whether this state stores a new seed; else the generator stores it."""
        return False

    def before_write(self, tensor: Tensor) -> None:
        """Raise an error if the tensor cannot be written in place."""

    def look_ahead(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> None:
        """Raise an error if `op(*values)` must not be written into the first value."""

    def hunting(self, hunter: Any) -> Any:
        """The block in which `hunter`, an interpreter, checks every value.

        A trace returns a block that only notes the hunter: the program checks values
        when it runs.  None (eager mode): the caller makes `hunter` the interpreter.
        """
        return None


class Control:
    """How branches and loops run: here, as Python runs them."""

    flow: Any = None  # records `cond`, `while_loop` and `scan`; None: Python runs them

    def outcomes(self, test: Tensor) -> tuple[bool, bool]:
        """Whether any value of the tensor is true, and whether all are.

        The two differ inside vmap, where the tensor has a value for each example.
        """
        holds = bool(behind(test))
        return holds, holds

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        """Call `check` on the values of integers that are indices of rows."""
        check(behind(indices)._data)

    def taken_by(self, test: Tensor) -> Any:
        """A block whose results are used only for examples where `test` is true."""
        return nullcontext()

    def sealed(self, what: str) -> Any:
        """A block that must not write to tensors from outside; `what` names it."""
        return nullcontext()  # Python runs one branch, once

    def before_change(self, tensor: Tensor) -> None:
        """Raise an error if a sealed block must not write to the tensor."""


def behind(tensor: Tensor) -> Tensor:
    """The tensor without its tangents (see jvp)."""
    while (inner := getattr(tensor._data, "behind", None)) is not None:
        tensor = inner
    return tensor


PYTHON_STATE = State()
PYTHON_CONTROL = Control()
