"""Index arithmetic of the loop language, simplified where an operand is 0 or 1."""

from __future__ import annotations

from typing import Any

from .kernels.ir import Index
from .views import Dims


def plus(a: Any, b: Any) -> Index:
    """a + b.

    >>> plus("i", 0), plus(2, 3), plus("i", 1)
    ('i', 5, ('+', 'i', 1))
    """
    if a == 0 or b == 0:
        return b if a == 0 else a  # type: ignore[no-any-return]
    return a + b if isinstance(a, int) and isinstance(b, int) else ("+", a, b)


def times(a: Any, factor: int) -> Index:
    """a · factor.

    >>> times("i", 1), times("i", 4)
    ('i', ('*', 'i', 4))
    """
    if factor == 0 or factor == 1:
        return a if factor else 0  # type: ignore[no-any-return]
    return a * factor if isinstance(a, int) else ("*", a, factor)


def position(dims: Dims, count: Index, offset: int = 0) -> Index:
    """Where element number `count` of these dimensions lies.

    >>> position([(2, 1), (3, 2)], "i")
    ('+', ('*', ('%', 'i', 3), 2), ('//', 'i', 3))
    """
    place: Index = offset
    for axis in reversed(range(len(dims))):
        size, stride = dims[axis]
        if stride:
            place = plus(place, times(("%", count, size) if axis else count, stride))
        if axis:
            count = ("//", count, size)
    return place
