"""What outlives an operation, and which code runs: Python's own, or a trace's.

A mode carries a `State` and a `Control` beside its interpreter.  vmap, jvp and autocast
are interpreters only: inside of them, both stay what they were outside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .primitive import Attrs, Primitive
    from .tensor import Tensor


class State:
    """Tensors, gradients and generators, as Python keeps them."""

    seals_generators = False  # whether it is an error to read a generator's state

    def stand_in(self, tensor: Tensor) -> Tensor:
        """The tensor that is read and written in place of `tensor`."""
        return tensor

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        """What `tensor.grad` is."""
        return tensor._grad

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        """What `tensor.grad = gradient` does."""
        tensor._grad = gradient

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """What takes the place of a tensor that was just made from host memory."""
        return tensor

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int] | None:
        """The random numbers of a draw; None leaves them to the generator."""
        return None

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        """Whether this state keeps a new seed; else it is the generator's at once."""
        return False

    def before_write(self, tensor: Tensor) -> None:
        """Refuse a write in place, where it cannot be made."""

    def look_ahead(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> None:
        """Refuse to write `op(*values)` into the first value, if that is wrong."""

    def hunting(self, hunter: Any) -> Any:
        """A block in which `hunter` checks every value; None: Python computes by it."""
        return None


class Control:
    """Branches and loops, as Python runs them."""

    flow: Any = None  # records `cond`, `while_loop` and `scan`; None: Python runs them

    def outcomes(self, test: Tensor) -> tuple[bool, bool]:
        """Whether a bool is true of any, and of all, that the tensor stands for."""
        holds = bool(behind(test))
        return holds, holds

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        """Let `check` look at the values of integers that name rows."""
        check(behind(indices)._data)

    def taken_by(self, test: Tensor) -> Any:
        """A block for the examples where `test` holds, although all of them run it."""
        return nullcontext()

    def sealed(self, what: str) -> Any:
        """A block that must not write to tensors from outside; `what` names it."""
        return nullcontext()  # Python runs one branch, once: what it writes is written

    def before_change(self, tensor: Tensor) -> None:
        """Refuse a write in place inside of a sealed block."""


def behind(tensor: Tensor) -> Tensor:
    """The tensor without the tangents that it carries along."""
    while (inner := getattr(tensor._data, "behind", None)) is not None:
        tensor = inner
    return tensor


PYTHON_STATE = State()
PYTHON_CONTROL = Control()
