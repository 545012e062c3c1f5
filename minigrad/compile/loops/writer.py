"""A writer of statements, for operations that are written as simpler operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .ir import BOOL, DOUBLE, FLOAT, INT, LONG, Let


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
        """A writer in another dtype, which continues the same statements."""
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
