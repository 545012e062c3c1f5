"""Sums, means, maxima and softmax over segments: rows with the same number, in any order.

The messages that arrive at one node of a graph are a segment, so these functions are the base of graph networks.
"""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import FloatTensor, Tensor
from ..support.errors import ConversionError, ShapeError
from ..support.table import counted
from ..support.words import shown, whole
from . import reduce
from .composite import composed
from .creation import full, zeros
from .declare import as_integers
from .elementwise import exp, maximum
from .functional import _check_range
from .index import scatter_add, scatter_max
from .view import reshape

__all__ = ["bincount", "segment_sum", "segment_mean", "segment_max", "segment_softmax"]


@composed
def segment_sum(x: FloatTensor, segments: Any, count: int) -> Tensor:
    """For each of `count` segments the sum of its rows: row i belongs to `segments[i]`.

    >>> mg.segment_sum(mg.asarray([1.0, 2.0, 4.0]), mg.asarray([1, 0, 1]), 2).tolist()
    [2.0, 5.0]
    """
    segments = _segments_of("segment_sum", x, segments, count)
    return scatter_add(zeros((count, *x.shape[1:]), x.dtype, x.device), segments, x)


@composed
def segment_mean(x: FloatTensor, segments: Any, count: int) -> Tensor:
    """For each of `count` segments the mean of its rows; 0 for a segment without rows.

    >>> mg.segment_mean(mg.asarray([1.0, 2.0, 4.0]), mg.asarray([1, 0, 1]), 3).tolist()
    [2.0, 2.5, 0.0]
    """
    segments = _segments_of("segment_mean", x, segments, count)
    sizes = scatter_add(zeros((count,), x.dtype, x.device), segments, 1.0)
    return segment_sum(x, segments, count) / reshape(maximum(sizes, 1.0), (count, *[1] * (x.ndim - 1)))


@composed
def segment_max(x: FloatTensor, segments: Any, count: int) -> Tensor:
    """For each of `count` segments the maximum of its rows, element by element; -inf for a segment without rows.

    >>> mg.segment_max(mg.asarray([1.0, 2.0, 4.0]), mg.asarray([1, 0, 1]), 2).tolist()
    [2.0, 4.0]
    """
    segments = _segments_of("segment_max", x, segments, count)
    return scatter_max(full((count, *x.shape[1:]), -float("inf"), x.dtype, x.device), segments, x)


@composed
def segment_softmax(x: FloatTensor, segments: Any, count: int) -> Tensor:
    """exp(x), divided by its sum over all rows of the same segment.

    >>> mg.segment_softmax(mg.asarray([1000.0, -5.0, 1000.0]), mg.asarray([1, 0, 1]), 2).tolist()
    [0.5, 1.0, 0.5]
    """
    segments = _segments_of("segment_softmax", x, segments, count)
    top = segment_max(x.detach(), segments, count)  # type: ignore[attr-defined]
    powers = exp(x - maximum(top, dtypes.finfo(x.dtype).min)[segments])
    return powers / segment_sum(powers, segments, count)[segments]


def _segments_of(name: str, x: Any, segments: Any, count: int) -> Tensor:
    segments = as_integers(name, "segments", segments, x)
    if segments.ndim != 1 or x.shape[:1] != segments.shape:
        raise ShapeError(
            f"{name}: rows of shape {x.shape} and segments of shape {segments.shape} do not go together",
            expect="(rows, ...) and (rows,)",
        )
    return _check_range(f"{name}: segment", segments, count, f"with {counted(count, 'segment')}")


@composed
def bincount(x: Any, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer occurs in x, or the sum of the weights at its places.

    The result has at least `minlength` elements.  As many as there are depend on the values, so a compiled function
    takes `mg.segment_sum(weights, x, count)`.

    >>> mg.bincount(mg.asarray([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    x = as_integers("bincount", "x", x)
    if x.ndim != 1:
        raise ShapeError(f"bincount: x has one dimension, and not the shape {x.shape}", hint="mg.reshape(x, -1)")
    if whole(minlength, 0) is None:
        raise ConversionError(f"bincount: minlength is an integer, 0 or more, not {shown(minlength)}")
    count = max(minlength, int(reduce.max(x).item()) + 1 if x.size else 0)
    ones = full(x.shape, 1, dtypes.int64, x.device) if weights is None else weights
    if x.shape != ones.shape:
        raise ShapeError(f"bincount: weights of shape {ones.shape} for integers of shape {x.shape}")
    places = _check_range("bincount: integer", x, count, f"with {counted(count, 'place')}")
    return scatter_add(zeros((count,), ones.dtype, x.device), places, ones)
