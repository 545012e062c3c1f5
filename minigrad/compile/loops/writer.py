"""A writer of statements, for operations that are written as simpler operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ir import BOOL, FLOAT, INT, Let

BIAS, MANTISSA = 127, 23  # of a float32: the exponent's offset, and the bits below it


class Writer:
    """Writes statements one after the other and names their values: `w.add(a, b)` is a sum in the writer's dtype."""

    def __init__(self, prefix: str, dtype: Any = FLOAT) -> None:
        self.prefix, self.dtype = prefix, dtype
        self.statements: list[Let] = []

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

    def whole(self, op: str, *args: Any) -> str:
        """An operation with an int32 as result; "whole" converts a float that is in range."""
        return self.let(op, args, INT)

    def polynomial(self, x: str, terms: tuple[Any, ...]) -> Any:
        """The value at x of a polynomial with these coefficients, highest power first.

        Pairs of terms form a polynomial in x² of half the length, in which fewer sums wait for each other.
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
        """2^exponent for an int32 exponent, if that is a normal number."""
        bits = self.whole("lshift", self.whole("add", exponent, BIAS), MANTISSA)
        return self.let("bitcast", (bits,), FLOAT)

    def ending(self, last: str, name: str) -> list[Let]:
        """The statements, with the last one, so far named `last`, renamed to the name of the result."""
        result = self.statements[-1]
        assert result.name == last
        result.name = name
        return self.statements
