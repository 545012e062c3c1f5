"""Indexing and assignment: the index primitives, and the functions composed from them.

NumPy's indexing has many forms, these primitives have few: `slice` (a view) takes integers, slices, `...` and None;
`gather` and `put` take integer arrays for the *leading* dimensions.  `x[i, :, j]` is a slice, a permutation that brings
the indexed dimensions to the front, and one gather.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.mode import current_mode
from ..core.primitive import P, Primitive
from ..core.tensor import NONZERO, NUMBERS, Tensor, as_tensor, host_value, method, wrap
from ..devices.special import check_range
from ..support.errors import ConversionError, IndexingError, ShapeError
from ..support.table import counted
from ..support.words import check_memory, shown, whole
from .composite import composed
from .creation import arange, full, zeros
from .declare import as_integers, broadcast_shapes, declare, normal_axis, only_axis
from .elementwise import equal, where
from .masks import check_masks, is_basic, is_mask, selected, write_where
from .view import broadcast_to, dummy, expand_dims, inverse, moveaxis, permute_dims, raw_slice, reshape, too_many
from .write import assign

__all__ = ["nonzero", "take", "take_along_axis", "scatter_add", "scatter_max", "pad", "repeat"]

Index = Any

# The primitives -----------------------------------------------------------------------------------------------------


def _gathered_shape(name: str, shape: tuple[int, ...], indices: Sequence[Any]) -> tuple[int, ...]:
    if len(indices) > len(shape):
        raise IndexingError(f"{name}: {too_many(len(indices), shape)}")
    for i in indices:
        if i.dtype.kind not in "iu":
            raise IndexingError(f"{name}: an index is of integers or bools, not {i.dtype}")
    for i, size in zip(indices, shape):
        value = getattr(i, "_data", None)
        if isinstance(value, np.ndarray):
            check_range(value, size)
    return broadcast_shapes(name, [i.shape for i in indices]) + shape[len(indices) :]


def _infer_gather(x: Any, *indices: Any) -> Any:
    return _gathered_shape("gather", x.shape, indices), x.dtype


def _infer_scatter(name: str, base: Any, value: Any, *indices: Any) -> Any:
    target = _gathered_shape(name, base.shape, indices)
    _check_fits(name, value, target)
    return base.shape, base.dtype


def _infer_put(base: Any, value: Any, *indices: Any, chain: Any) -> Any:
    target = base
    for op, attrs in chain:
        target = dummy(op.infer(target, **attrs)[0], base.dtype)
    _check_fits("assignment", value, _gathered_shape("assignment", target.shape, indices))
    return base.shape, base.dtype


def _check_fits(name: str, value: Any, target: tuple[int, ...]) -> None:
    shape = getattr(value, "shape", ())
    extra = max(0, len(shape) - len(target))  # as in NumPy, a value may have leading dimensions of size 1
    fits = set(shape[:extra]) <= {1} and all(a in (1, b) for a, b in zip(shape[extra:][::-1], target[::-1]))
    if not fits:
        raise ShapeError(
            f"{name}: a value of shape {shape} does not fit into a place of shape {target}",
            expect=f"a shape that broadcasts to {target}",
        )


def _of_largest(g: Any, out: Any, base: Any, value: Any, indices: Any, of_value: bool) -> Any:
    """The gradient goes to the largest element of each place, in `base` or in `value`; equal ones share it."""
    stays, hit = equal(base, out), equal(value, raw_gather(out, *indices))
    ones = [P.astype.apply(each, dtype=g.dtype) for each in (stays, hit)]
    share = g / P.scatter_add.apply(*ones, *indices)
    return where(hit, raw_gather(share, *indices), 0.0) if of_value else where(stays, share, 0.0)


def _values_of_put(g: Any, indices: Any, node: Any) -> Any:
    """The gradient of the value: among equal indices the last one was stored, and only it has a gradient."""
    for op, attrs in node.attrs["chain"]:
        g = op.apply(g, **attrs)
    if not indices:
        return _with_dimensions_in_front(g, node.inputs[1])
    place = broadcast_shapes("assignment", [i.shape for i in indices])
    order = reshape(arange(math.prod(place), device=g.device), place)
    winner = P.put.apply(zeros(g.shape[: len(indices)], dtypes.int64, g.device), order, *indices, chain=())
    won = equal(raw_gather(winner, *indices), order)
    part = raw_gather(g, *indices)
    part = where(reshape(won, place + (1,) * (part.ndim - len(place))), part, 0.0)
    return _with_dimensions_in_front(part, node.inputs[1])


def _with_dimensions_in_front(g: Tensor, value: Any) -> Tensor:
    extra = len(value.shape) - g.ndim
    return reshape(g, (1,) * extra + g.shape) if extra > 0 else g


for _op in (
    Primitive(
        "gather", "index", ("x", "*indices"), _infer_gather, promotes=(), linear=("x",), formula=r"x[i]",
        rules={"x": lambda g, indices, node: P.scatter_add.apply(
            zeros(node.inputs[0].shape, g.dtype, g.device), g, *indices)},
    ),
    Primitive(
        "scatter_add", "index", ("base", "value", "*indices"), partial(_infer_scatter, "scatter_add"),
        promotes=("base", "value"), linear=("base", "value"),
        formula=r"b[i] \mathrel{+}= v", local={"base": r"\partial\mathrm{out}", "value": r"\partial\mathrm{out}[i]"},
        rules={"base": lambda g: g, "value": lambda g, indices: raw_gather(g, *indices)},
    ),
    Primitive(
        "scatter_max", "index", ("base", "value", "*indices"), partial(_infer_scatter, "scatter_max"),
        promotes=("base", "value"), formula=r"b[i] = \max(b[i], v)",
        rules={"base": lambda g, out, base, value, indices: _of_largest(g, out, base, value, indices, False),
               "value": lambda g, out, base, value, indices: _of_largest(g, out, base, value, indices, True)},
    ),
    Primitive(
        "put", "index", ("base", "value", "*indices"), _infer_put, promotes=(),
        linear=("base", "value"), formula=r"b[i] = v",
        rules={"base": lambda g, indices, node: P.put.apply(g, 0.0, *indices, chain=node.attrs["chain"]),
               "value": _values_of_put},
    ),
    Primitive(
        "place", "index", ("x",), lambda x, shape, index: (shape, x.dtype), promotes=(), linear=("x",),
        formula=r"0[i] = x",
        rules={"x": lambda g, node: raw_slice(g, index=node.attrs["index"])},
    ),
):
    declare(_op)

raw_gather = P.gather.apply  # the primitive itself, without checks


# x[...] -------------------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """An index in normal form: a slice, a permutation, arrays for the leading dimensions, and a permutation."""

    chain: tuple[Any, ...]  # view steps that bring the indexed dimensions to the front
    arrays: tuple[Tensor, ...]
    back: tuple[int, ...] | None  # the permutation that puts the result's dimensions where NumPy has them


@method
def __getitem__(x: Tensor, index: Index) -> Tensor:
    cls = index.__class__
    if cls is int or cls is slice:
        return raw_slice(x, index=(index, ...))
    if is_basic(index):
        return raw_slice(x, index=_open_ended(index))
    places = None if current_mode().interpreter is None else selected(x, index, now=True)
    if places is not None:
        return wrap(places, x.device)
    plan = _normalised(x, index)
    picked = x
    for op, attrs in plan.chain:
        picked = op.apply(picked, **attrs)
    out: Tensor = raw_gather(picked, *plan.arrays)
    return out if plan.back is None else permute_dims(out, plan.back)


@method
def __setitem__(x: Tensor, index: Index, value: Any) -> None:
    if value.__class__ is not Tensor and value.__class__ not in NUMBERS:
        value = _as_value(value, x.device)
    elif value.__class__ is Tensor and value.device is not x.device:
        _refuse_other_device(x, value)
    if is_basic(index):
        index = _open_ended(index)
        assign(x, value, ((P.slice, {"index": index}),), (), raw=index)
        return
    if current_mode().interpreter is not None and write_where(x, index, value):
        return
    plan = _normalised(x, index)
    moved = value
    if plan.back is not None and value.__class__ is Tensor and value.ndim:
        moved = permute_dims(broadcast_to(value, _shape_of(x, plan)), inverse(plan.back))
    assign(x, moved, plan.chain, plan.arrays)


def _as_value(value: Any, device: Any) -> Tensor:
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError:
            raise ShapeError(f"assignment: {shown(value)} has no shape", expect="nested lists of one shape") from None
    return as_tensor(value, device)


def _refuse_other_device(x: Tensor, value: Tensor) -> None:
    P.put.apply(x, value, chain=())


def _shape_of(x: Tensor, plan: _Plan) -> tuple[int, ...]:
    target: Any = dummy(x.shape, x.dtype)
    for op, attrs in plan.chain:
        target = dummy(op.infer(target, **attrs)[0], x.dtype)
    front = _gathered_shape("assignment", target.shape, plan.arrays)
    return front if plan.back is None else tuple([front[a] for a in plan.back])


def _open_ended(index: Any) -> tuple[Any, ...]:
    """The index with an Ellipsis, so that NumPy returns an array and never a scalar."""
    index = index if index.__class__ is tuple else (index,)
    return index if any(i is Ellipsis for i in index) else (*index, ...)


def _normalised(x: Tensor, index: Any) -> _Plan:
    items = [_as_item(x, i) for i in (index if isinstance(index, tuple) else (index,))]
    if any(map(is_mask, items)):
        check_masks(x, items)
    items = [part for item in items for part in (_places_of(item) if is_mask(item) else (item,))]
    used = sum(1 for i in items if i is not None and i is not Ellipsis and i.__class__ is not _OnNewAxis)
    if used > x.ndim:
        raise IndexingError(too_many(used, x.shape))
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexingError("an index can hold only one Ellipsis")
    at = dots[0] if dots else len(items)
    items[at : at + 1] = [slice(None)] * (x.ndim - used)
    places = [k for k, i in enumerate(items) if isinstance(i, (Tensor, int, _OnNewAxis))]  # an integer is like an array
    whole = slice(None)
    basic = tuple([None if isinstance(i, _OnNewAxis) else whole if k in places else i for k, i in enumerate(items)])
    arrays = tuple([_as_array(items[k], x.device) for k in places])
    chain: tuple[Any, ...] = ()
    if any(i != slice(None) for i in basic):
        chain += ((P.slice, {"index": (*basic, ...)}),)
    rest = [k for k in range(len(items)) if k not in places]
    if places != list(range(len(places))):
        chain += ((P.permute_dims, {"axes": (*places, *rest)}),)
    width = len(broadcast_shapes("index", [a.shape for a in arrays]))
    adjacent = places[-1] - places[0] == len(places) - 1
    back = None
    if adjacent and places[0] > 0 and width:
        first = places[0]
        order = [*range(width, width + first), *range(width), *range(width + first, width + len(rest))]
        back = tuple(order)
    return _Plan(chain, arrays, back)


def _as_item(x: Tensor, item: Any) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return as_tensor(np.array(item), x.device)
    if isinstance(item, (list, range, np.ndarray)):
        try:
            array = np.asarray(item)
        except ValueError:
            raise IndexingError(f"{shown(item)} cannot index a tensor", expect="lists of one length") from None
        listed = not isinstance(item, np.ndarray)
        return as_tensor(array.astype(np.int64) if listed and not array.size else array, x.device)
    if isinstance(item, Tensor):
        if item.dtype.kind not in "biu":
            raise IndexingError(f"an index is of integers or bools, not {item.dtype}", hint="i.astype(mg.int64)")
        return item
    number = whole(item)
    if number is not None:
        return number
    raise IndexingError(
        f"{type(item).__name__} cannot index a tensor", expect="integers, slices, ..., None, lists, tensors"
    )


class _OnNewAxis(NamedTuple):
    """Indices into a new dimension of size 1: a mask without dimensions selects everything or nothing."""

    indices: Tensor


def _places_of(mask: Tensor) -> tuple[Any, ...]:
    if mask.ndim:
        return nonzero(mask)
    return (_OnNewAxis(nonzero(reshape(mask, (1,)))[0]),)


def _as_array(item: Any, device: Any) -> Tensor:
    if isinstance(item, _OnNewAxis):
        return item.indices
    return item if isinstance(item, Tensor) else wrap(device.from_numpy(np.array(item)), device)


@method
def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """The indices of the non-zero elements, one tensor for each dimension.

    >>> [i.tolist() for i in mg.nonzero(mg.asarray([0, 3, 0, 5]))]
    [[1, 3]]
    """
    if not x.ndim:
        raise ShapeError("nonzero: a tensor without dimensions has no indices", hint="bool(x) says whether it is zero")
    value = host_value(x, NONZERO)
    return tuple([wrap(i, x.device) for i in x.device.kernels["nonzero"](value)])


# Picking ------------------------------------------------------------------------------------------------------------


@method
@composed
def take(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor:
    """The elements at `indices` along `axis`.

    >>> mg.take(mg.asarray([10, 20, 30]), mg.asarray([2, 0])).tolist()
    [30, 10]
    """
    indices = as_integers("take", "indices", np.asarray(indices) if isinstance(indices, list) else indices, x)
    place = only_axis("take", axis, x)
    if place == 0:
        return raw_gather(x, indices)
    out = raw_gather(moveaxis(x, place, 0), indices)
    return moveaxis(out, tuple(range(indices.ndim)), tuple(range(place, place + indices.ndim)))


@method
@composed
def take_along_axis(x: Tensor, indices: Tensor, axis: int = -1) -> Tensor:
    """For each position, the element at `indices` along `axis`: this applies the result of argsort.

    >>> mg.take_along_axis(mg.asarray([[3, 1], [5, 7]]), mg.asarray([[1], [0]]), axis=1).tolist()
    [[1], [5]]
    """
    indices = as_integers("take_along_axis", "indices", indices, x)
    place = normal_axis("take_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: the indices have as many dimensions as the tensor, {x.ndim}, not {indices.ndim}"
        )
    full = broadcast_shapes("take_along_axis", [
        tuple([1 if d == place else s for d, s in enumerate(t.shape)]) for t in (x, indices)])
    x = broadcast_to(x, tuple([x.shape[d] if d == place else s for d, s in enumerate(full)]))
    return raw_gather(x, *grid_along(indices, place, full))


def grid_along(indices: Tensor, place: int, shape: Sequence[int]) -> list[Tensor]:
    """The indices of all dimensions, given those along the dimension `place`; the others count up.

    >>> [i.tolist() for i in grid_along(mg.asarray([[1, 0], [0, 1]]), 1, (2, 2))]
    [[[0], [1]], [[1, 0], [0, 1]]]
    """
    return [
        indices if d == place else reshape(arange(s, device=indices.device), (-1, *[1] * (len(shape) - d - 1)))
        for d, s in enumerate(shape)
    ]


def scatter_add(base: Tensor, indices: Any, value: Any) -> Tensor:
    """A copy of `base` with `value` added at `indices`; equal indices add up.

    >>> mg.scatter_add(mg.zeros(3), mg.asarray([0, 2, 0]), mg.asarray([1.0, 2.0, 3.0])).tolist()
    [4.0, 0.0, 2.0]
    """
    return P.scatter_add.apply(base, value, *_positions("scatter_add", indices))


def scatter_max(base: Tensor, indices: Any, value: Any) -> Tensor:
    """A copy of `base` in which each element at `indices` is the largest of itself and the elements of `value` there.

    As in `max`, equal elements share the gradient.

    >>> mg.scatter_max(mg.zeros(3), mg.asarray([0, 2, 0]), mg.asarray([5.0, -1.0, 3.0])).tolist()
    [5.0, 0.0, 0.0]
    """
    return P.scatter_max.apply(base, value, *_positions("scatter_max", indices))


def _positions(name: str, indices: Any) -> list[Tensor]:
    listed = indices if isinstance(indices, tuple) else (indices,)
    return [as_integers(name, "indices", np.asarray(i) if isinstance(i, list) else i) for i in listed]


CONTINUATIONS = ("edge", "reflect", "symmetric", "wrap")

# Padding and repeating ----------------------------------------------------------------------------------------------


@composed
def pad(x: Tensor, widths: Any, value: float = 0.0, mode: str = "constant") -> Tensor:
    """The tensor with `value` around it: `widths` is a number, a pair, or a pair for each dimension.

    Other modes continue the tensor: "edge" with its last element, "reflect" and "symmetric" with its mirror image
    (without and with the last element), "wrap" from the other end.

    >>> mg.pad(mg.ones(2), (1, 2)).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    >>> mg.pad(mg.asarray([1, 2, 3]), 2, mode="reflect").tolist()
    [3, 2, 1, 2, 3, 2, 1]
    """
    pairs = _pairs(widths, x.ndim)
    if any(w < 0 for pair in pairs for w in pair):
        raise ShapeError(f"pad: widths are not negative: {widths}", hint="slicing removes elements")
    shape = tuple([before + s + after for s, (before, after) in zip(x.shape, pairs)])
    check_memory("pad", shape)
    if mode != "constant":
        if value != 0:
            raise ConversionError(f"pad: a value is for mode 'constant', not {shown(mode)}", actual=shown(value))
        return _continued(x, pairs, mode)
    index = (*[slice(before, before + s) for s, (before, _) in zip(x.shape, pairs)], ...)
    out = P.place.apply(x, shape=shape, index=index)
    if value == 0:
        return out
    true = broadcast_to(full((), True, dtypes.bool, x.device), x.shape)
    inside = P.place.apply(true, shape=shape, index=index)
    return where(inside, out, value)


def _continued(x: Tensor, pairs: list[tuple[int, int]], mode: str) -> Tensor:
    """The tensor with elements of its own around it: NumPy pads the positions in the same way."""
    if mode not in CONTINUATIONS:
        raise ConversionError(f"pad: there is no mode {shown(mode)}", expect=", ".join(("constant", *CONTINUATIONS)))
    for axis, (size, pair) in enumerate(zip(x.shape, pairs)):
        if any(pair) and not size:
            raise ShapeError(f"pad: dimension {axis} of shape {x.shape} has no elements to continue with")
        if any(pair):
            places = np.pad(np.arange(size), (int(pair[0]), int(pair[1])), mode=mode)  # type: ignore[call-overload]
            x = take(x, as_tensor(places, x.device), axis=axis)
    return x


def _pairs(widths: Any, ndim: int) -> list[tuple[int, int]]:
    """A pair of widths for each dimension."""
    try:
        given = np.asarray(widths.tolist() if isinstance(widths, Tensor) else widths)
        pairs = np.broadcast_to(given, (ndim, 2)).tolist()
    except ValueError:
        raise ShapeError(f"pad: widths has a pair for each dimension of the tensor, {ndim}, and not {widths}") from None
    if given.size and given.dtype.kind not in "iu":
        raise ConversionError(f"pad: widths are integers, not {shown(widths)}")
    return [tuple(pair) for pair in pairs]


@method
@composed
def repeat(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated: all equally often, or with a count for each.

    >>> mg.repeat(mg.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    place = normal_axis("repeat", axis, x.ndim)
    size = x.shape[place]
    if not isinstance(repeats, int):
        counts = repeats.numpy_copy() if isinstance(repeats, Tensor) else np.asarray(repeats)
        if counts.ndim and counts.shape[0] not in (1, size):
            raise ShapeError(f"repeat: {counted(counts.shape[0], 'count')} for size {size} of dimension {place}")
        if counts.dtype.kind == "u":
            counts = counts.astype(np.int64)  # NumPy takes only int64
        chosen = np.repeat(np.arange(size), counts)
        return take(x, as_tensor(chosen, x.device), axis=place)
    spaced = expand_dims(x, place + 1)
    shape = (*x.shape[: place + 1], repeats, *x.shape[place + 1 :])
    return reshape(broadcast_to(spaced, shape), (*x.shape[:place], size * repeats, *x.shape[place + 1 :])).copy()
