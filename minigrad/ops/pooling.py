"""Pooling: the largest element or the mean of each window of an image (or of a sequence).

Windows that neither overlap nor leave gaps are a reshape; the largest elements of small windows are maxima of slices;
others are `windows`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce as fold
from typing import Any

from ..core.tensor import FloatTensor, Tensor
from ..support.errors import ShapeError
from ..support.table import counted
from ..support.words import check_memory
from . import reduce
from .composite import program
from .convolution import padded
from .elementwise import maximum
from .joining import stack
from .view import raw_slice, reshape
from .windows import Sizes, for_each, raw_windows, window_count

__all__ = ["max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d"]

FEW = 8  # elements of a window along one dimension


@program()
def max_pool1d(x: FloatTensor, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The largest element of each window of a sequence: see `max_pool2d`.

    >>> mg.max_pool1d(mg.asarray([[1.0, 5.0, 2.0, 3.0]]), 2).tolist()
    [[5.0, 3.0]]
    """
    return _pooled("max_pool1d", 1, reduce.max, -math.inf, x, size, stride, padding, dilation)


@program()
def max_pool2d(x: FloatTensor, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The largest element of each window of `size` in the last two dimensions; equal ones share the gradient.

    Windows begin `stride` apart (None: their size), and their elements are `dilation` apart.  The `padding` around the
    image is -inf, which is never the largest.

    >>> mg.max_pool2d(mg.reshape(mg.arange(16.0), (1, 4, 4)), 2).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """
    return _pooled("max_pool2d", 2, reduce.max, -math.inf, x, size, stride, padding, dilation)


@program()
def avg_pool1d(x: FloatTensor, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The mean of each window of a sequence: see `avg_pool2d`.

    >>> mg.avg_pool1d(mg.asarray([[1.0, 5.0, 2.0, 4.0]]), 2).tolist()
    [[3.0, 3.0]]
    """
    return _pooled("avg_pool1d", 1, reduce.mean, 0.0, x, size, stride, padding, 1)


@program()
def avg_pool2d(x: FloatTensor, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The mean of each window of `size` in the last two dimensions; zeros from the `padding` count.

    >>> mg.avg_pool2d(mg.reshape(mg.arange(16.0), (1, 4, 4)), 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    return _pooled("avg_pool2d", 2, reduce.mean, 0.0, x, size, stride, padding, 1)


@program()
def adaptive_avg_pool1d(x: FloatTensor, size: Any) -> Tensor:
    """The means of `size` parts of a sequence, as equal as possible: see `adaptive_avg_pool2d`.

    >>> mg.adaptive_avg_pool1d(mg.asarray([[1.0, 2.0, 3.0]]), 2).tolist()
    [[1.5, 2.5]]
    """
    return _adaptive("adaptive_avg_pool1d", 1, x, size)


@program()
def adaptive_avg_pool2d(x: FloatTensor, size: Any) -> Tensor:
    """The means of `size` parts of each of the last two dimensions; parts overlap if they do not divide evenly.

    >>> mg.adaptive_avg_pool2d(mg.reshape(mg.arange(16.0), (1, 4, 4)), (1, 2)).tolist()
    [[[6.5, 8.5]]]
    """
    return _adaptive("adaptive_avg_pool2d", 2, x, size)


def _pooled(name: str, count: int, function: Callable[..., Tensor], outside: float, x: Tensor, size: Any, stride: Any,
            padding: Any, dilation: Any) -> Tensor:
    x = _image(name, count, x)
    sizes = for_each(name, "size", size, count)
    steps = sizes if stride is None else for_each(name, "stride", stride, count)
    gaps, pads = for_each(name, "dilation", dilation, count), for_each(name, "padding", padding, count, least=0)
    if any(2 * p > s for p, s in zip(pads, sizes)):
        raise ShapeError(f"{name}: a padding of {pads} is more than half of the window {sizes}")
    x = padded(x, tuple([(p, p) for p in pads]), outside)
    counts = tuple([window_count(name, *each) for each in zip(x.shape[-count:], sizes, steps, gaps)])
    if sizes == steps and set(gaps) == {1}:
        return function(_tiles(x, sizes, counts), axis=tuple(range(x.ndim - count + 1, x.ndim + count, 2)))
    if function is reduce.max and max(sizes) <= FEW:
        return _largest(x, sizes, steps, gaps, counts)
    axes = tuple(range(x.ndim - count, x.ndim))
    parts = raw_windows(x, axis=axes, size=sizes, stride=steps, dilation=gaps)
    return function(parts, axis=tuple(range(-count, 0)))


def _largest(x: Tensor, sizes: Sizes, steps: Sizes, gaps: Sizes, counts: Sizes) -> Tensor:
    """The largest element of each window, along one dimension after the other.

    Each place in the windows is a slice with steps, so the maxima and their gradients are arithmetic on whole rows.
    """
    for place, (size, step, gap, count) in enumerate(zip(sizes, steps, gaps, counts)):
        rest = [slice(None)] * (len(sizes) - 1 - place)
        starts = [gap * number for number in range(size)]
        span = step * (count - 1) + 1
        x = fold(maximum, [raw_slice(x, index=(..., slice(s, s + span, step), *rest)) for s in starts])
    return x


def _tiles(x: Tensor, sizes: Sizes, counts: Sizes) -> Tensor:
    """Windows that neither overlap nor leave gaps: each last dimension as two, the window and the place in it."""
    front, covered = x.shape[: -len(sizes)], tuple([n * s for n, s in zip(counts, sizes)])
    if covered != x.shape[-len(sizes) :]:
        x = raw_slice(x, index=(..., *[slice(0, length) for length in covered]))
    return reshape(x, (*front, *[length for pair in zip(counts, sizes) for length in pair]))


def _adaptive(name: str, count: int, x: Tensor, size: Any) -> Tensor:
    x = _image(name, count, x)
    sizes = for_each(name, "size", size, count)
    check_memory(name, (*x.shape[: x.ndim - count], *sizes))
    for axis, wanted in zip(range(-count, 0), sizes):
        extent = x.shape[axis]
        if extent % wanted == 0:
            axis += x.ndim
            x = reduce.mean(reshape(x, (*x.shape[:axis], wanted, extent // wanted, *x.shape[axis + 1 :])), axis + 1)
            continue
        parts = [(i * extent // wanted, -(-(i + 1) * extent // wanted)) for i in range(wanted)]
        rest = (slice(None),) * (-1 - axis)
        x = stack([reduce.mean(x[(..., slice(low, high), *rest)], axis) for low, high in parts], axis)
    return x


def _image(name: str, count: int, x: Tensor) -> Tensor:
    if x.ndim <= count:
        sides = "(..., channels, length)" if count == 1 else "(..., channels, height, width)"
        raise ShapeError(f"{name}: an input of shape {x.shape} has {counted(x.ndim, 'dimension')}", expect=sides)
    return x
