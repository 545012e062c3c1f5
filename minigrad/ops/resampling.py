"""Resampling: images and sequences of a different size, by repeating or mixing neighbours, or from channels.

Images are (examples, channels, height, width), sequences (examples, channels, length).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import FloatTensor, Tensor, as_tensor
from ..support.errors import ConversionError, ShapeError
from ..support.words import check_memory, shown, whole
from .composite import composed
from .index import take
from .view import broadcast_to, expand_dims, permute_dims, reshape
from .windows import Sizes, for_each

__all__ = ["interpolate", "pixel_shuffle"]

MODES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,)}  # for how many resized dimensions


@composed
def interpolate(x: FloatTensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool = False) -> Tensor:
    """Resize all dimensions after the channels to `size`, or by `scale_factor` (for all, or one number for each).

    The mode "nearest" repeats or skips elements.  "linear" (of sequences) and "bilinear" (of images) mix the neighbours
    of each place; with `align_corners` the first and last elements stay where they are.

    >>> x = mg.asarray([[[1.0, 3.0]]])
    >>> mg.interpolate(x, scale_factor=2).tolist(), mg.interpolate(x, size=3, mode="linear").tolist()
    ([[[1.0, 1.0, 3.0, 3.0]]], [[[1.0, 2.0, 3.0]]])
    """
    count = x.ndim - 2
    if mode not in MODES:
        raise ConversionError(f"interpolate: mode is {shown(mode)}", expect=", ".join(map(repr, MODES)))
    if count not in MODES[mode]:
        sides = " or ".join("(examples, channels" + ", size" * n + ")" for n in MODES[mode])
        raise ShapeError(f"interpolate: the mode {mode!r} does not fit an input of shape {x.shape}", expect=sides)
    sizes, steps = _sizes(x.shape[2:], size, scale_factor)
    check_memory("interpolate", (*x.shape[:2], *sizes))
    for axis, (wanted, step) in enumerate(zip(sizes, steps), start=2):
        if mode == "nearest":
            x = _nearest(x, axis, wanted, step)
        else:
            x = _mixed(x, axis, wanted, step, align_corners)
    return x


def _sizes(given: Sizes, size: Any, factor: Any) -> tuple[Sizes, list[float]]:
    """The new sizes, and the steps in the input from one element of the result to the next."""
    if (size is None) == (factor is None):
        raise ConversionError("interpolate: it takes a size or a scale_factor, and not both")
    if factor is None:
        sizes = for_each("interpolate", "size", size, len(given))
        return sizes, [n / wanted for n, wanted in zip(given, sizes)]
    factors = tuple(factor) if isinstance(factor, (tuple, list)) else (factor,) * len(given)
    if len(factors) != len(given) or not all(isinstance(f, (int, float)) and f > 0 for f in factors):
        raise ConversionError(f"interpolate: scale_factor is {shown(factor)}",
                              expect=f"a number above 0, or {len(given)} of them")
    sizes = tuple([int(n * f) for n, f in zip(given, factors)])
    if 0 in sizes and 0 not in given:
        raise ShapeError(f"interpolate: a scale_factor of {shown(factor)} leaves nothing of the sizes {given}")
    return sizes, [1 / f for f in factors]


def _nearest(x: Tensor, axis: int, wanted: int, step: float) -> Tensor:
    extent = x.shape[axis]
    if 0 < extent < wanted and wanted % extent == 0 and step * wanted == extent:  # the gradient is a sum
        rows = broadcast_to(expand_dims(x, axis + 1), (*x.shape[: axis + 1], wanted // extent, *x.shape[axis + 1 :]))
        return reshape(rows, (*x.shape[:axis], wanted, *x.shape[axis + 1 :]))
    places = np.arange(wanted) * extent // max(wanted, 1) if step * wanted == extent else np.arange(wanted) * step
    return take(x, _numbers(x, np.minimum(places.astype(np.int64), extent - 1)), axis)


def _mixed(x: Tensor, axis: int, wanted: int, step: float, align_corners: bool) -> Tensor:
    """For each place the two elements around it, each times its share."""
    last = x.shape[axis] - 1
    if align_corners:
        places = np.arange(wanted) * (last / max(wanted - 1, 1))
    else:
        places = np.clip((np.arange(wanted) + 0.5) * step - 0.5, 0.0, last)
    before = np.minimum(places.astype(np.int64), last)
    behind = np.minimum(before + 1, last)
    share = (places - before).astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis - 1))
    left, right = take(x, _numbers(x, before), axis), take(x, _numbers(x, behind), axis)
    return left * _numbers(x, 1 - share) + right * _numbers(x, share)


def _numbers(x: Tensor, array: Any) -> Tensor:
    return as_tensor(array, x.device)


@composed
def pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    """Images that are `factor` times as high and wide, from `factor` squared channels for each of their channels.

    >>> mg.pixel_shuffle(mg.reshape(mg.arange(4.0), (1, 4, 1, 1)), 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    if whole(factor, 1) is None:
        raise ConversionError(f"pixel_shuffle: factor is an integer, 1 or more, not {shown(factor)}")
    if x.ndim < 3 or x.shape[-3] % factor**2:
        raise ShapeError(f"pixel_shuffle: an input of shape {x.shape} has no channels that can be divided into "
                         f"groups of {factor**2}", expect="(..., channels, height, width)")
    *front, channels, height, width = x.shape
    n = len(front)
    x = reshape(x, (*front, channels // factor**2, factor, factor, height, width))
    x = permute_dims(x, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(x, (*front, channels // factor**2, height * factor, width * factor))
