"""Joins, splits, rolls and repeats tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor, method
from ..support.errors import ConversionError, ShapeError
from .composite import composed
from .declare import declare, normal_axes, normal_axis
from .view import broadcast_to, expand_dims, raw_slice, reshape

__all__ = ["concat", "stack", "split", "roll", "tile"]


def _infer_concat(*xs: Any, axis: int) -> Any:
    first = xs[0].shape
    for x in xs[1:]:
        if len(x.shape) != len(first) or any(a != b for d, (a, b) in enumerate(zip(x.shape, first)) if d != axis):
            raise ShapeError(
                f"concat: shapes {' and '.join(str(t.shape) for t in xs)} differ in more than dimension {axis}",
                hint="mg.stack puts tensors of one shape along a new dimension",
            )
    length = sum(x.shape[axis] for x in xs)
    return (*first[:axis], length, *first[axis + 1 :]), dtypes.result_type(*[x.dtype for x in xs])


def _part_of_concat(g: Any, node: Any, index: int) -> Any:
    axis = node.attrs["axis"]
    start = sum(i.shape[axis] for i in node.inputs[:index])
    stop = start + node.inputs[index].shape[axis]
    return raw_slice(g, index=(slice(None),) * axis + (slice(start, stop), ...))


declare(
    Primitive(
        "concat", "index", ("*xs",), _infer_concat, rules={"xs": _part_of_concat}, linear=("xs",),
        formula=r"[x_1, x_2, \dots]",
    )
)


def concat(tensors: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """The tensors one after the other along `axis` (flattened first if None).

    >>> mg.concat([mg.ones(1), mg.zeros(2)]).tolist()
    [1.0, 0.0, 0.0]
    """
    if not tensors:
        raise ConversionError("concat needs at least one tensor")
    parts = [as_tensor(t) for t in tensors]
    if axis is None:
        parts, axis = [reshape(t, (-1,)) for t in parts], 0
    if any(t.ndim == 0 for t in parts):
        raise ShapeError("concat: tensors without dimensions have nothing to join along", hint="mg.stack")
    return P.concat.apply(*parts, axis=normal_axis("concat", axis, parts[0].ndim))


@composed
def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors along a new dimension.

    >>> mg.stack([mg.ones(2), mg.zeros(2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if not tensors:
        raise ConversionError("stack needs at least one tensor")
    parts = [as_tensor(t) for t in tensors]
    if any(t.shape != parts[0].shape for t in parts):
        raise ShapeError(f"stack: the tensors need one shape, not {' and '.join(str(t.shape) for t in parts)}")
    place = normal_axis("stack", axis, parts[0].ndim + 1)
    return concat([expand_dims(t, place) for t in parts], axis=place)


@method
@composed
def split(x: Tensor, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """The tensor split along `axis` into a number of equal parts, or at positions.  The parts are views.

    >>> [t.tolist() for t in mg.split(mg.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    place = normal_axis("split", axis, x.ndim)
    size = x.shape[place]
    if isinstance(sections, int):
        if sections <= 0 or size % sections:
            raise ShapeError(f"split: dimension {place} of size {size} can't be cut into {sections} equal parts")
        cuts = [size // sections * k for k in range(1, sections)]
    else:
        cuts = list(sections)
    edges = [0, *cuts, size]
    front = (slice(None),) * place
    return [raw_slice(x, index=(*front, slice(a, b), ...)) for a, b in pairwise(edges)]


@method
@composed
def roll(x: Tensor, shift: Any, axis: Any = None) -> Tensor:
    """The elements shifted by `shift`; elements that leave one end enter at the other.

    >>> mg.roll(mg.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, 0), x.shape)
    axes = normal_axes("roll", axis, x.ndim) if not isinstance(axis, tuple) else tuple(
        normal_axis("roll", a, x.ndim) for a in axis)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    rolled = x
    for amount, place in zip(shifts, axes):
        size = x.shape[place]
        cut = -amount % size if size else 0
        if cut:
            head, tail = split(rolled, [cut], place)
            rolled = concat([tail, head], place)
    return x.copy() if rolled is x else rolled


@method
@composed
def tile(x: Tensor, repetitions: Any) -> Tensor:
    """The whole tensor repeated, with a number of times for each dimension.

    >>> mg.tile(mg.asarray([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    counts = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    ndim = max(len(counts), x.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    spaced = reshape(x, tuple([s for size in shape for s in (1, size)]))
    spread = broadcast_to(spaced, tuple([s for count, size in zip(counts, shape) for s in (count, size)]))
    return reshape(spread, tuple([c * s for c, s in zip(counts, shape)])).copy()
