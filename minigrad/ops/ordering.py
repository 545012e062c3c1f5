"""Sorting: the primitives `argsort` and `sort`; searching, differences and sets, composed from them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor, method
from ..support.errors import ConversionError, IndexingError, ShapeError
from ..support.words import shown, whole
from .composite import composed
from .creation import full, zeros
from .declare import declare, normal_axis
from .elementary import logical_and, logical_or
from .elementwise import divide, equal, less, less_equal, maximum, minimum, not_equal, where
from .index import grid_along, nonzero, scatter_add, take, take_along_axis
from .joining import concat
from .reduce import clip, cumulative_sum
from .view import broadcast_to, reshape

__all__ = [
    "argsort", "sort", "topk", "diff", "interp", "searchsorted",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
]

# The primitives -----------------------------------------------------------------------------------------------------


def _infer_argsort(x: Any, axis: int, descending: bool, count: int | None = None) -> Any:
    """All positions along the axis, or the first `count` of them."""
    size = x.shape[axis] if count is None else count
    return (*x.shape[:axis], size, *x.shape[axis + 1 :]), dtypes.int64


def _infer_sort(x: Any, axis: int, descending: bool) -> Any:
    return x.shape, x.dtype


def _of_sort(g: Any, x: Any, node: Any) -> Any:
    """The gradient of each element is the gradient of its place in the order."""
    places = grid_along(P.argsort.apply(x, **node.attrs), node.attrs["axis"], x.shape)
    return P.scatter_add.apply(zeros(x.shape, g.dtype, g.device), g, *places)


for _op in (
    Primitive("argsort", "index", ("x",), _infer_argsort, promotes=(), formula=r"\operatorname{argsort} x"),
    Primitive("sort", "index", ("x",), _infer_sort, {"x": _of_sort}, promotes=(), formula=r"\operatorname{sort} x"),
):
    declare(_op)


# Sorting ------------------------------------------------------------------------------------------------------------


@method
def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that sort the elements along `axis`; equal elements keep their order.

    >>> mg.argsort(mg.asarray([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    return P.argsort.apply(x, axis=_axis_of_order("argsort", x, axis), descending=descending)


@method
def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements sorted along `axis`; equal elements keep their order, and nans are the largest.

    >>> mg.sort(mg.asarray([3.0, 1.0, 2.0]), descending=True).tolist()
    [3.0, 2.0, 1.0]
    """
    return P.sort.apply(x, axis=_axis_of_order("sort", x, axis), descending=descending)


def _axis_of_order(name: str, x: Tensor, axis: int) -> int:
    if not x.ndim:
        raise ShapeError(f"{name}: a tensor without dimensions has no order")
    return normal_axis(name, axis, x.ndim)


@method
@composed
def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along `axis`, sorted, and their positions.

    >>> values, places = mg.topk(mg.asarray([3.0, 1.0, 2.0]), 2)
    >>> values.tolist(), places.tolist()
    ([3.0, 2.0], [0, 2])
    """
    place = normal_axis("topk", axis, x.ndim)
    if not 0 <= k <= x.shape[place]:
        raise IndexingError(f"topk: k is {k}, and dimension {place} has size {x.shape[place]}")
    order = P.argsort.apply(x, axis=place, descending=largest, count=k)
    return take_along_axis(x, order, place), order


# Searching and differences ------------------------------------------------------------------------------------------


@composed
def searchsorted(x: Tensor, values: Tensor, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The positions for `values` in sorted `x`: before equal elements, or after them with `side="right"`.

    As in sorting, `nan` counts as the largest number, and as equal to `nan`.

    >>> mg.searchsorted(mg.asarray([1.0, 2.0, 2.0, 3.0]), mg.asarray([2.0, 9.0])).tolist()
    [1, 4]
    """
    if x.ndim != 1:
        raise ShapeError(f"searchsorted: x has one dimension, not shape {x.shape}")
    if side not in ("left", "right"):
        raise ConversionError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if sorter is not None:
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
    xp, fp = as_tensor(xp), as_tensor(fp)
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
    first = _differs(ordered)
    starts, size = nonzero(first)[0], flat.shape[0]
    rank = cumulative_sum(first) - 1
    inverse = scatter_add(zeros(size, dtypes.default_int, x.device), order, rank)
    counts = diff(starts, append=full(1, size, device=x.device))  # the distances to the next ones, or to the end
    return Unique(take(ordered, starts), take(order, starts), reshape(inverse, x.shape), counts)


def _differs(ordered: Tensor) -> Tensor:
    """Whether each element differs from the one before it; the first element does."""
    first = full(min(1, ordered.shape[0]), True, device=ordered.device)
    return concat([first, not_equal(ordered[1:], ordered[:-1])])


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
    ordered = sort(reshape(x, (-1,)))
    return take(ordered, nonzero(_differs(ordered))[0])
