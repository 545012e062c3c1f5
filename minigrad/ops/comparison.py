"""Comparisons of floats: equal up to a tolerance, and extremes that pass over nans."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import NUMBERS, Tensor
from .bits import bitwise_or
from .composite import composed
from .creation import asarray
from .elementary import isfinite, isnan, logical_and, logical_or
from .elementwise import abs, astype, equal, greater_equal, less_equal, where
from .reduce import all

__all__ = ["allclose", "fmax", "fmin", "isclose"]


@composed
def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |x - y| is at most `atol` + `rtol` times |y|; infinities are close if they are equal.

    >>> mg.isclose(mg.asarray([1.0, 2.0]), mg.asarray([1.000001, 2.1])).tolist()
    [True, False]
    """
    x, y = _of_one_dtype(x, y)
    near = less_equal(abs(x - y), atol + rtol * abs(y))
    close = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


@composed
def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close, as in `isclose`: a bool tensor without dimensions.

    >>> bool(mg.allclose(mg.asarray([0.1, 0.2]) + 0.1, mg.asarray([0.2, 0.3])))
    True
    """
    return all(isclose(x, y, rtol, atol, equal_nan))


def _of_one_dtype(x: Any, y: Any) -> list[Tensor]:
    """Both operands as tensors of their common dtype; bools, which have no difference, become integers."""
    device = next((t.device for t in (x, y) if t.__class__ is Tensor), None)
    pair = [t if t.__class__ is Tensor or t.__class__ in NUMBERS else asarray(t, device=device) for t in (x, y)]
    common = dtypes.result_type(*pair)
    dtype = dtypes.default_int if common is dtypes.bool else common
    return [astype(t, dtype, copy=False) if t.__class__ is Tensor else asarray(t, dtype, device) for t in pair]


@composed
def fmax(x: Any, y: Any) -> Tensor:
    """The larger of x and y, x if they are equal; where one is nan, the other.

    >>> mg.fmax(mg.asarray([1.0, mg.nan]), mg.asarray([0.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return where(bitwise_or(greater_equal(x, y), y != y), x, y)


@composed
def fmin(x: Any, y: Any) -> Tensor:
    """The smaller of x and y; where one is nan, the other.

    >>> mg.fmin(mg.asarray([1.0, mg.nan]), mg.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return where(bitwise_or(less_equal(x, y), y != y), x, y)
