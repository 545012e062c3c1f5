"""Searching, differences and sets, by sorting."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import dtypes
from ..core.tensor import Tensor, as_tensor, method
from ..support.errors import ConversionError, ShapeError
from ..support.words import shown, whole
from .composite import composed
from .creation import full, zeros
from .declare import normal_axis
from .elementary import logical_and, logical_or
from .elementwise import divide, equal, less, less_equal, maximum, minimum, not_equal, where
from .index import argsort, nonzero, scatter_add, take
from .joining import concat
from .reduce import clip, cumulative_sum
from .view import broadcast_to, reshape

__all__ = ["diff", "interp", "searchsorted", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


@composed
def searchsorted(x: Tensor, values: Tensor, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The positions for `values` in sorted `x`: before equal elements, or after them with `side="right"`.

    As in sorting, `nan` counts as the largest number, and as equal to `nan`.

    >>> mg.searchsorted(mg.asarray([1.0, 2.0, 2.0, 3.0]), mg.asarray([2.0, 9.0])).tolist()
    [1, 4]
    """
    x, values = as_tensor(x), as_tensor(values)
    if x.ndim != 1:
        raise ShapeError(f"searchsorted: x has one dimension, not shape {x.shape}")
    if side not in ("left", "right"):
        raise ConversionError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        sorter = as_tensor(sorter)
        if sorter.shape != x.shape:
            raise ShapeError(f"searchsorted: sorter has shape {x.shape}, not {sorter.shape}", hint="mg.argsort(x)")
        x = take(x, sorter, axis=0)
    size = x.shape[0]
    place = zeros(values.shape, dtypes.default_int, values.device)
    step = 1 << size.bit_length()
    while step > 1:
        step //= 2  # each round finds one bit of all positions
        last = minimum(place + step, size) - 1
        passed = logical_and(less_equal(place + step, size), _comes_before(take(x, last), values, side))
        place = where(passed, place + step, place)
    return place


def _comes_before(x: Tensor, value: Tensor, side: str) -> Tensor:
    """Whether a value belongs behind an element of a sorted tensor, where nans are last."""
    before = less(x, value) if side == "left" else less_equal(x, value)
    if value.dtype.kind != "f":
        return before
    is_nan = not_equal(value, value)
    return logical_or(before, is_nan if side == "right" else logical_and(is_nan, equal(x, x)))


@composed
def interp(x: Tensor, xp: Any, fp: Any) -> Tensor:
    """The values at `x` of the function with values `fp` at increasing `xp`, straight in between, constant outside.

    >>> mg.interp(mg.asarray([0.5, 1.75, 9.0]), mg.asarray([0.0, 1.0, 2.0]), mg.asarray([0.0, 10.0, 30.0])).tolist()
    [5.0, 25.0, 30.0]
    """
    x, xp, fp = as_tensor(x), as_tensor(xp), as_tensor(fp)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(f"interp: xp and fp are lists of one length, not of shapes {xp.shape} and {fp.shape}")
    last = max(xp.shape[0] - 1, 1)
    after = minimum(maximum(searchsorted(xp, x, side="right"), 1), last)
    if xp.shape[0] == 1:
        return broadcast_to(fp, x.shape).copy()
    left, right, low, high = take(xp, after - 1), take(xp, after), take(fp, after - 1), take(fp, after)
    share = divide(clip(x, left, right) - left, right - left)
    return low + (high - low) * share


@method
@composed
def diff(
    x: Tensor, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Each element minus the one before it along `axis`, repeated `n` times; with `n=0`, a copy of `x`.

    >>> mg.diff(mg.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    place = normal_axis("diff", axis, x.ndim)
    if whole(n, 0) is None:
        raise ConversionError(f"diff: n is an integer, 0 or more, not {shown(n)}")
    if n == 0:
        return x.copy()
    x = concat([t for t in (prepend, x, append) if t is not None], axis=place)
    front = (slice(None),) * place
    for _ in range(min(n, x.shape[place])):  # more rounds change nothing
        later, earlier = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = not_equal(later, earlier) if x.dtype is dtypes.bool else later - earlier
    return x


# Sets: the shape of the result depends on the values, so that these need them ----------------------------------------


class Unique(NamedTuple):
    """The different values of a tensor, with positions and counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The different values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The different values, and the number of the value of each element."""

    values: Tensor
    inverse_indices: Tensor


@composed
def unique_all(x: Tensor) -> Unique:
    """The sorted different values, their first positions, the number of the value of each element, and the counts.

    >>> found = mg.unique_all(mg.asarray([3, 1, 3]))
    >>> [part.tolist() for part in found]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    flat = reshape(x, (-1,))
    order = argsort(flat)
    ordered = take(flat, order)
    size = ordered.shape[0]
    if size:
        first = concat([full(1, True, device=x.device), not_equal(ordered[1:], ordered[:-1])])
    else:
        first = full(0, True, device=x.device)
    starts = nonzero(first)[0]
    rank = cumulative_sum(first) - 1
    inverse = scatter_add(zeros(size, dtypes.default_int, x.device), order, rank)
    counts = diff(starts, append=full(1, size, device=x.device))
    return Unique(take(ordered, starts), take(order, starts), reshape(inverse, x.shape), counts)


@composed
def unique_counts(x: Tensor) -> UniqueCounts:
    """The sorted different values, and how often each occurs.

    >>> [part.tolist() for part in mg.unique_counts(mg.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@composed
def unique_inverse(x: Tensor) -> UniqueInverse:
    """The sorted different values, and the number of the value of each element.

    >>> [part.tolist() for part in mg.unique_inverse(mg.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@composed
def unique_values(x: Tensor) -> Tensor:
    """The sorted different values.

    >>> mg.unique_values(mg.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique_all(x).values
