"""The loop language: kernels as data, before they are printed as LLVM, C or CUDA, or run by NumPy.

There are six kinds of statements.  A value is named once and never changes; only accumulators and memory change.  A
`Writer` writes statements for an operation that is composed of simpler ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

HALF, FLOAT, DOUBLE = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
INT, LONG, BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.bool_)

# A position: a number, the name of a loop variable, of a "position" or of `lo` or `hi`, or (operator, left, right) with
# + * // % or min.
Index = int | str | tuple[str, Any, Any]
# An operand: the name of a value, or a number; of a vector, numbers for its lanes, too.
Operand = str | float | int | bool

@dataclass
class Let:
    """`name = op(args)`, a value of type `dtype`, or a vector of as many values as there are lanes.

    The operation is "load" (args: a buffer, an index), "index" (args: an index), or one of `OPERATIONS`.  Transforms
    write further ones, see `widen` and `legalise`.
    """

    name: str
    op: str
    args: tuple[Any, ...]
    dtype: Any
    lanes: int = 1


@dataclass
class Store:
    """`buffer[index] = value`; a value with several lanes is stored in neighbours, the first one at the index."""

    buffer: str
    index: Index
    value: Operand
    lanes: int = 1


@dataclass
class Accumulate:
    """`buffer[index] = op(buffer[index], value)`, where op is one of `REDUCTIONS`."""

    op: str
    buffer: str
    index: Index
    value: Operand
    lanes: int = 1


@dataclass
class Accumulator:
    """A running sum, product, maximum or minimum in a register, which statements after its loop may read."""

    name: str
    op: str
    value: Operand
    dtype: Any
    lanes: int = 1
    start: Operand | None = None  # the first value; without it, the number that changes nothing


@dataclass
class Running(Accumulator):
    """`name = op(name, value)`: a running total of the loop around it, with the values of all rounds up to this one."""


@dataclass
class For:
    """`for variable in range(low, high): body`; at the end of each round, the accumulators take in their values.

    `steps` is the number of neighbours in memory that a round computes.  A loop with a `stride` runs while a whole
    stride is left; afterwards `variable.end` is the first round that is left.
    """

    variable: str
    low: Index
    high: Index
    body: list[Statement]
    accumulators: list[Accumulator] = field(default_factory=list)
    steps: int = 1
    stride: int = 1  # rounds of the original loop that a round computes

    @property
    def totals(self) -> list[Running]:
        """The running totals of its body."""
        return [statement for statement in self.body if isinstance(statement, Running)]


@dataclass
class Lanes(For):
    """A loop from 0 to a fixed number, whose rounds run at the same time, each in a lane of vectors.

    A position that is read moves by one element per round, or not at all; one that is written moves by one.  Loops
    inside run for all lanes together.
    """


Statement = Let | Store | Accumulate | Running | For


@dataclass
class Parameter:
    """A pointer that a kernel takes.

    `role`: "in" is read, "out" is written, "inout" is overwritten where it was read, "partial" takes the results of
    each chunk, "scratch" is memory for one row.
    """

    name: str
    dtype: Any
    size: int  # elements
    role: str


@dataclass
class Kernel:
    """A function of pointers and of the range `lo` to `hi`, which is a part of the units: threads share all units."""

    name: str
    parameters: list[Parameter]
    body: list[Statement]
    units: int  # the largest `hi`: the number of elements, rows or chunks
    parallel: str  # the kind of units: "elements", "rows" or "chunks"

    @cached_property
    def digest(self) -> str:
        """A name that kernels with equal parameters and bodies share, whatever their own names."""
        pointers = [(parameter.name, parameter.dtype) for parameter in self.parameters]
        return "k_" + hashlib.sha256(repr((pointers, self.body)).encode()).hexdigest()[:32]

    def computes_in(self, dtype: Any) -> bool:
        """Whether a parameter, a value or an accumulator has this dtype."""
        listed = statements(self.body)
        sums = [a for s in listed if isinstance(s, For) for a in s.accumulators]
        return dtype in [s.dtype for s in (*self.parameters, *listed, *sums) if hasattr(s, "dtype")]


def statements(body: list[Statement]) -> list[Statement]:
    """All statements of a body, also those in inner loops."""
    found, left = list[Statement](), body[::-1]
    while left:
        statement = left.pop()
        found.append(statement)
        if isinstance(statement, For):
            left += statement.body[::-1]
    return found


class Walk:
    """A walk over statements, the base of printers and the legaliser.

    A subclass has a method per kind of statement: `let`, `store`, `accumulate`, `running`, `loop`.  It returns the
    replacement of the statement: lines of text or other statements.  A kind without a method stays unchanged.
    """

    def block(self, body: list[Statement]) -> list[Any]:
        """The replacements of the statements of a body, in order."""
        made: list[Any] = []
        for statement in body:
            made += self.visit(statement) or ()
        return made

    def visit(self, statement: Statement) -> Any:
        """The replacement of a statement."""
        method = getattr(self, METHODS[statement.__class__], None)
        return [statement] if method is None else method(statement)


METHODS = {Let: "let", Store: "store", Accumulate: "accumulate", Running: "running", For: "loop", Lanes: "loop"}


# The writer -----------------------------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """The bits of a float: an integer dtype of equal size, the exponent's offset, and the bits below the exponent."""

    bits: Any
    bias: int
    mantissa: int


LAYOUTS = {FLOAT: Layout(INT, 127, 23), DOUBLE: Layout(LONG, 1023, 52)}


class Writer:
    """Writes statements one after the other and names their values: `w.add(a, b)` is a sum in the writer's dtype.

    `fused`: the processor has an instruction for `fma(x, y, z)`, which is x y + z, rounded once.
    """

    def __init__(self, prefix: str, dtype: Any = FLOAT, fused: bool = True) -> None:
        self.prefix, self.dtype, self.fused = prefix, dtype, fused
        self.statements: list[Let] = []

    def of(self, dtype: Any) -> Writer:
        """A writer in a different dtype, which continues the same statements."""
        other = Writer(self.prefix, dtype, self.fused)
        other.statements = self.statements
        return other

    @property
    def layout(self) -> Layout:
        """The layout of the writer's dtype, a float."""
        return LAYOUTS[self.dtype]

    def let(self, op: str, args: tuple[Any, ...], dtype: Any) -> str:
        """Write a statement, and return the name of its value."""
        name = f"{self.prefix}_{len(self.statements)}"
        self.statements.append(Let(name, op, args, dtype))
        return name

    def __getattr__(self, op: str) -> Callable[..., str]:
        return lambda *args: self.let(op, args, self.dtype)

    def logic(self, op: str, *args: Any) -> str:
        """An operation with a bool as result."""
        return self.let(op, args, BOOL)

    def lt(self, x: Any, y: Any) -> str:
        """Whether x < y."""
        return self.logic("lt", x, y)

    def eq(self, x: Any, y: Any) -> str:
        """Whether x == y."""
        return self.logic("eq", x, y)

    def both(self, x: Any, y: Any) -> str:
        """Whether two bools are true."""
        return self.logic("and", x, y)

    def whole(self, op: str, *args: Any) -> str:
        """An operation with an integer as result, which has the size of the writer's floats."""
        return self.let(op, args, self.layout.bits)

    def mul_add(self, x: Any, y: Any, z: Any) -> str:
        """x y + z, rounded once if the processor can: written here, because nothing fuses a product and a sum later."""
        return self.fma(x, y, z) if self.fused else self.add(self.mul(x, y), z)

    def sub_mul(self, z: Any, x: Any, y: Any) -> str:
        """z - x y, rounded once if the processor can."""
        return self.fma(self.neg(x), y, z) if self.fused else self.sub(z, self.mul(x, y))

    def polynomial(self, x: str, terms: tuple[Any, ...]) -> Any:
        """The value at x of a polynomial with these coefficients, highest power first.

        Pairs of terms form a polynomial in x² of half the length, in which fewer sums wait for each other.
        """
        if len(terms) > 3:
            odd = len(terms) % 2
            pairs = zip(terms[odd::2], terms[odd + 1 :: 2])
            return self.polynomial(self.mul(x, x), (*terms[:odd], *[self.mul_add(x, a, b) for a, b in pairs]))
        value = terms[0]
        for term in terms[1:]:
            value = self.mul_add(value, x, term)
        return value

    def power(self, exponent: str) -> str:
        """2^exponent for an integer exponent, if that is a normal number."""
        _, bias, mantissa = self.layout
        return self.bitcast(self.whole("lshift", self.whole("add", exponent, bias), mantissa))

    def ending(self, last: str, name: str) -> list[Let]:
        """The statements, with the last one, so far named `last`, renamed to the name of the result."""
        result = self.statements[-1]
        assert result.name == last
        result.name = name
        return self.statements
