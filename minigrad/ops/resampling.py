"""Resampling: images and sequences of a different size, by repeating or mixing neighbours, or from channels.

Images are (examples, channels, height, width), sequences (examples, channels, length).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.tensor import FloatTensor, Tensor, as_tensor
from ..support.errors import ConversionError, ShapeError
from ..support.words import check_memory, shown, whole
from .composite import composed
from .contract import matmul
from .elementary import logical_and
from .elementwise import floor, round, where
from .index import take, take_along_axis
from .reduce import clip
from .view import broadcast_to, expand_dims, permute_dims, reshape
from .windows import Sizes, for_each

__all__ = ["affine_grid", "grid_sample", "interpolate", "pixel_shuffle"]

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
def affine_grid(theta: FloatTensor, size: Any, align_corners: bool = False) -> Tensor:
    """The places in images that an affine map leads to from each pixel of a result, for `grid_sample`.

    `theta` is (examples, 2, 3), and `size` is the shape of the result, (examples, channels, height, width).  Places are
    pairs (x, y) from -1 to 1: (examples, height, width, 2).

    >>> mg.affine_grid(mg.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    if theta.ndim != 3 or theta.shape[1:] != (2, 3) or len(size) != 4 or size[0] != theta.shape[0]:
        raise ShapeError(f"affine_grid: theta of shape {theta.shape} does not fit the size {shown(size)}",
                         expect="(examples, 2, 3), and (examples, channels, height, width)")
    height, width = [_middles(n, align_corners) for n in size[-2:]]
    places = np.stack([*np.meshgrid(width, height), np.ones((len(height), len(width)))], -1).reshape(-1, 3)
    grid = matmul(_numbers(theta, places.astype(theta.dtype)), theta.mT)  # type: ignore[attr-defined]
    return reshape(grid, (size[0], size[2], size[3], 2))


def _middles(count: int, align_corners: bool) -> Any:
    """The middles of pixels between -1 and 1; or the first and the last pixel lie there."""
    if align_corners:
        return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)
    return (2 * np.arange(count) + 1) / count - 1


@composed
def grid_sample(x: FloatTensor, grid: FloatTensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Tensor:
    """The values of images (examples, channels, height, width) at places between their pixels.

    `grid` has a pair (x, y) for each pixel of the result, (examples, height, width, 2): -1 and 1 are the edges of the
    image, or with `align_corners` the middles of its outer pixels.  Outside the image are "zeros", or its "border".

    >>> x = mg.asarray([[[[1.0, 3.0]]]])
    >>> mg.grid_sample(x, mg.asarray([[[[0.0, 0.0], [-0.5, 0.0]]]])).tolist()
    [[[[2.0, 1.0]]]]
    """
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != x.shape[0]:
        raise ShapeError(f"grid_sample: images of shape {x.shape} and a grid of shape {grid.shape} do not go together",
                         expect="(examples, channels, height, width) and (examples, height, width, 2)")
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border"):
        raise ConversionError(f"grid_sample: mode is {shown(mode)} and padding_mode is {shown(padding_mode)}",
                              expect="'bilinear' or 'nearest', and 'zeros' or 'border'")
    sizes = x.shape[3], x.shape[2]
    places = [_pixels(grid[..., i], n, align_corners) for i, n in enumerate(sizes)]
    if padding_mode == "border":
        places = [clip(place, 0.0, n - 1.0) for place, n in zip(places, sizes)]
    if mode == "nearest":
        return _picked(x, *[round(place) for place in places])
    left, top = [floor(place) for place in places]
    right, bottom = places[0] - left, places[1] - top
    corners = ((left, top, (1 - right) * (1 - bottom)), (left + 1, top, right * (1 - bottom)),
               (left, top + 1, (1 - right) * bottom), (left + 1, top + 1, right * bottom))
    parts = [_picked(x, i, j) * expand_dims(share, 1) for i, j, share in corners]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _pixels(place: Tensor, count: int, align_corners: bool) -> Tensor:
    """Places from -1 to 1 as numbers of pixels."""
    return (place + 1.0) * ((count - 1) / 2) if align_corners else (place + 1.0) * (count / 2) - 0.5


def _picked(x: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """The pixels (examples, channels, height, width) at whole places; zeros outside."""
    height, width = x.shape[2:]
    inside = logical_and(logical_and(column >= 0.0, column < width), logical_and(row >= 0.0, row < height))
    number = where(inside, row * width + column, 0.0).astype(dtypes.int64)  # type: ignore[attr-defined]
    flat = reshape(x, (*x.shape[:2], height * width))
    places = broadcast_to(reshape(number, (x.shape[0], 1, -1)), (*x.shape[:2], number.shape[1] * number.shape[2]))
    values = reshape(take_along_axis(flat, places, -1), (*x.shape[:2], *number.shape[1:]))
    return where(expand_dims(inside, 1), values, 0.0)


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
