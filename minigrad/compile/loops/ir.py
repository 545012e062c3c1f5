"""The loop language: what a fused kernel is before it is LLVM, C, CUDA or NumPy.

Five statements are enough.  A kernel works on a domain of `rows` × `columns` elements; its values are named once and
never change, except for the accumulators of a loop and what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HALF, FLOAT, DOUBLE = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
INT, LONG, BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.bool_)

# A whole number that is known when the kernel runs: a constant, the name of a loop variable or of a parameter
# (`lo`, `hi`), or (operator, left, right) with + * // % or min.
Index = int | str | tuple[str, Any, Any]
# What a statement computes with: the name of a value, or a number.
Operand = str | float | int | bool

@dataclass
class Let:
    """`name = op(args)`, a value of type `dtype`.

    The operation is "load" (of a buffer at an index), "index" (an index as a number), or one of `OPERATIONS`.
    """

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


def statements(body: list[Statement]) -> Iterator[Statement]:
    """All statements of a body, those in loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)


class Walk:
    """The walk over statements that printers, the verifier and changes of a kernel share.

    A subclass has a method for each kind of statement: `let`, `store`, `accumulate`, `loop` and `prefetch`.  It returns
    what the statement becomes, lines of text or other statements.  A kind without a method stays as it is.
    """

    def block(self, body: list[Statement]) -> list[Any]:
        """What the statements of a body become, one after the other."""
        made: list[Any] = []
        for statement in body:
            made += self.visit(statement) or ()
        return made

    def visit(self, statement: Statement) -> Any:
        """What a statement becomes."""
        method = getattr(self, METHODS[statement.__class__], None)
        return [statement] if method is None else method(statement)


METHODS = {Let: "let", Store: "store", Accumulate: "accumulate", For: "loop", Prefetch: "prefetch"}
