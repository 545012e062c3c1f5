"""The elementwise primitives on the bits of integers and booleans."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .declare import elementwise

__all__ = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift",
]


@elementwise(expr="x & y", accepts="biu", formula=r"x \wedge y")
def bitwise_and(x: Any, y: Any) -> Tensor:
    """The bits that are set in both.

    >>> mg.bitwise_and(mg.asarray([6]), 3).tolist()
    [2]
    """


@elementwise(expr="x | y", accepts="biu", formula=r"x \vee y")
def bitwise_or(x: Any, y: Any) -> Tensor:
    """The bits that are set in either.

    >>> mg.bitwise_or(mg.asarray([6]), 3).tolist()
    [7]
    """


@elementwise(expr="x ^ y", accepts="biu", formula=r"x \oplus y")
def bitwise_xor(x: Any, y: Any) -> Tensor:
    """The bits that are set in exactly one of them.

    >>> mg.bitwise_xor(mg.asarray([6]), 3).tolist()
    [5]
    """


@elementwise(expr="~x", accepts="biu", formula=r"\neg x")
def bitwise_invert(x: Any) -> Tensor:
    """Every bit inverted.

    >>> mg.bitwise_invert(mg.asarray([True, False])).tolist()
    [False, True]
    """


@elementwise(expr="x << y", accepts="iu", formula=r"x \ll y")
def bitwise_left_shift(x: Any, y: Any) -> Tensor:
    """The bits moved up by y.

    >>> mg.bitwise_left_shift(mg.asarray([3]), 2).tolist()
    [12]
    """


@elementwise(expr="x >> y", accepts="iu", formula=r"x \gg y")
def bitwise_right_shift(x: Any, y: Any) -> Tensor:
    """The bits moved down by y; the sign stays.

    >>> mg.bitwise_right_shift(mg.asarray([12]), 2).tolist()
    [3]
    """
