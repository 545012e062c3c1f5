"""A writer of statements, for operations that are written out in simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ir import BOOL, FLOAT, INT, Let

BIAS, MANTISSA = 127, 23  # of a float32: the exponent's offset, and the bits below it


class Writer:
    """Writes statements one after the other and names their values: `w.add(a, b)` is a sum, of the writer's dtype."""

    def __init__(self, prefix: str, dtype: Any = FLOAT) -> None:
        self.prefix, self.dtype = prefix, dtype
        self.statements: list[Let] = []

    def let(self, op: str, args: tuple[Any, ...], dtype: Any) -> str:
        """Write a statement; the name of its value."""
        name = f"{self.prefix}_{len(self.statements)}"
        self.statements.append(Let(name, op, args, dtype))
        return name

    def __getattr__(self, op: str) -> Callable[..., str]:
        return lambda *args: self.let(op, args, self.dtype)

    def logic(self, op: str, *args: Any) -> str:
        """An operation whose result is a bool."""
        return self.let(op, args, BOOL)

    def lt(self, x: Any, y: Any) -> str:
        """Whether x < y."""
        return self.logic("lt", x, y)

    def eq(self, x: Any, y: Any) -> str:
        """Whether x == y."""
        return self.logic("eq", x, y)

    def whole(self, op: str, *args: Any) -> str:
        """An operation on int32; "whole" is the int32 that a float in its range stands for."""
        return self.let(op, args, INT)

    def polynomial(self, x: str, terms: tuple[Any, ...]) -> Any:
        """The value of a polynomial at x; the coefficients come highest power first.

        Of many terms, pairs make a polynomial in x² of half the length: fewer sums wait for each other than where one
        power is taken out after the other.
        """
        if len(terms) > 3:
            odd = len(terms) % 2
            pairs = zip(terms[odd::2], terms[odd + 1 :: 2])
            return self.polynomial(self.mul(x, x), (*terms[:odd], *[self.add(self.mul(x, a), b) for a, b in pairs]))
        value = terms[0]
        for term in terms[1:]:
            value = self.add(self.mul(value, x), term)
        return value

    def power(self, exponent: str) -> str:
        """2^exponent, the exponent being an int32 for which that is a normal number."""
        bits = self.whole("lshift", self.whole("add", exponent, BIAS), MANTISSA)
        return self.let("bitcast", (bits,), FLOAT)

    def ending(self, last: str, name: str) -> list[Let]:
        """The statements, of which the last one, so far named `last`, is given the name of the result."""
        result = self.statements[-1]
        assert result.name == last
        result.name = name
        return self.statements
