"""Statistics by sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.tensor import Tensor, as_tensor
from ..support.errors import ConversionError
from .composite import composed
from .declare import normal_axes
from .elementary import ceil, isinf, isnan, logical_and
from .elementwise import astype, floor, not_equal, to_float, where
from .index import take
from .ordering import sort
from .reduce import Axis, reduced_shape
from .view import moveaxis, permute_dims, reshape

__all__ = ["median", "quantile"]


@composed
def median(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The element in the middle of the sorted ones; the mean of two elements if their number is even.

    >>> mg.median(mg.asarray([3.0, 1.0, 10.0, 2.0])).item()
    2.5
    """
    return quantile(x, 0.5, axis, keepdims)


@composed
def quantile(x: Tensor, q: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The number below which a share `q` of the elements along `axis` is, interpolated between two elements.

    `q` is a number from 0 to 1, or several, whose dimensions then come first in the result.

    >>> mg.quantile(mg.asarray([1.0, 2.0, 3.0]), [0.0, 0.5, 0.75]).tolist()
    [1.0, 2.0, 2.5]
    """
    x = to_float(x)
    axes = normal_axes("quantile", axis, x.ndim)
    rest = [i for i in range(x.ndim) if i not in axes]
    size = math.prod([x.shape[i] for i in axes])
    if not size:
        raise ConversionError(f"median and quantile of no elements do not exist: shape {x.shape}, axis {axes}")
    ordered = sort(reshape(permute_dims(x, [*rest, *axes]), (*[x.shape[i] for i in rest], size)))
    place = _shares(q, x.device) * (size - 1)
    below = floor(place)
    lower = take(ordered, astype(below, dtypes.int64), axis=-1)
    upper = take(ordered, astype(ceil(place), dtypes.int64), axis=-1)
    between = lower + (upper - lower) * astype(place - below, x.dtype)
    last = reshape(ordered[..., -1], (*ordered.shape[:-1], *[1] * place.ndim))  # nan if there is one
    far = logical_and(isinf(lower), not_equal(upper, -lower))  # between is a nan there: inf - inf, or -inf + inf
    out = where(isnan(last), last, where(far, lower, between))
    out = moveaxis(out, tuple(range(len(rest), out.ndim)), tuple(range(place.ndim)))
    return reshape(out, (*place.shape, *reduced_shape(x.shape, axes, True))) if keepdims else out


def _shares(q: Any, device: Any) -> Tensor:
    if isinstance(q, Tensor):
        return astype(q, dtypes.float64)
    shares = np.asarray(q)
    if shares.dtype.kind not in "biuf" or not ((shares >= 0) & (shares <= 1)).all():
        raise ConversionError(f"quantile: q is from 0 to 1, not {q}")
    return as_tensor(shares.astype(np.float64), device)
