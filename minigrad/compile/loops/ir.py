"""The loop language: what a fused kernel is before it is LLVM, C, CUDA or NumPy.

Five statements are enough.  A kernel works on a domain of `rows` × `columns` elements; its values are named once and
never change, except for the accumulators of a loop and what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# A whole number that is known when the kernel runs: a constant, the name of a loop variable or of a parameter
# (`lo`, `hi`), or (operator, left, right) with + * // % or min.
Index = int | str | tuple[str, Any, Any]
# What a statement computes with: the name of a value, or a number.
Operand = str | float | int | bool

# The scalar operations that a `Let` may apply, besides "load" (buffer, index), "index" (index: a position as a number)
# and "cast" (value).  The printers have one entry for each.
OPERATIONS = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "neg": 1, "abs": 1, "max": 2, "min": 2, "pow": 2, "floordiv": 2, "mod": 2,
    "exp": 1, "expm1": 1, "log": 1, "log1p": 1, "sqrt": 1, "sin": 1, "cos": 1, "tanh": 1, "erf": 1, "atan2": 2,
    "floor": 1, "rint": 1, "lt": 2, "le": 2, "eq": 2, "and": 2, "or": 2, "xor": 2, "invert": 1, "lshift": 2,
    "rshift": 2, "select": 3, "cast": 1, "bitcast": 1,
}  # fmt: skip


@dataclass
class Let:
    """`name = op(args)`, a value of type `dtype`."""

    name: str
    op: str
    args: tuple[Any, ...]
    dtype: Any


@dataclass
class Store:
    """`buffer[index] = value`."""

    buffer: str
    index: Index
    value: Operand


@dataclass
class Accumulate:
    """`buffer[index] = op(buffer[index], value)`, where op is one of `REDUCTIONS`."""

    op: str
    buffer: str
    index: Index
    value: Operand


@dataclass
class Accumulator:
    """A running sum, product, maximum or minimum in a register, which may be read after its loop."""

    name: str
    op: str
    value: Operand
    dtype: Any


@dataclass
class For:
    """`for variable in range(low, high): body`, then each accumulator takes in its value of this round.

    `steps` says of how many neighbours in memory a round takes care.
    """

    variable: str
    low: Index
    high: Index
    body: list[Statement]
    accumulators: list[Accumulator] = field(default_factory=list)
    steps: int = 1


@dataclass
class Prefetch:
    """Ask for `buffer[index]` before it is needed."""

    buffer: str
    index: Index


Statement = Let | Store | Accumulate | For | Prefetch

REDUCTIONS = ("sum", "prod", "max", "min")


@dataclass
class Parameter:
    """A pointer that a kernel is given.

    `role`: "in" and "out" as they say, "inout" for what is written where it was read, "partial" for the results of
    each chunk, "scratch" for a row of one's own.
    """

    name: str
    dtype: Any
    size: int  # elements
    role: str


@dataclass
class Kernel:
    """A function of pointers and of a range `lo` to `hi` of its units, which several threads may share."""

    name: str
    parameters: list[Parameter]
    body: list[Statement]
    units: int  # how far `hi` goes: the number of elements, rows or chunks
    parallel: str  # what a unit is: "elements", "rows" or "chunks"

    def computes_in(self, dtype: Any) -> bool:
        """Whether it has values of this type, in memory or on the way."""
        listed = [*statements(self.body)]
        sums = [a for s in listed if isinstance(s, For) for a in s.accumulators]
        return any(s.dtype == dtype for s in (*self.parameters, *listed, *sums) if hasattr(s, "dtype"))

    @property
    def vectorisable(self) -> bool:
        """Whether it computes anything that wide vectors gain from."""
        dear = {"exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow", "atan2"}
        return any(isinstance(s, Let) and s.op in dear for s in statements(self.body))


def statements(body: list[Statement]) -> Iterator[Statement]:
    """All statements of a body, those in loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)
