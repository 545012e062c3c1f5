"""The view primitives, which share the memory of their input, and the functions composed from them.

There are four: `reshape`, `permute_dims`, `broadcast_to` and `slice`.  Other functions that rearrange without a copy
(`expand_dims`, `flip`, `.T`, `unstack` …) call one of these.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor, method
from ..support.errors import AxisError, ConversionError, IndexingError, MinigradError, ShapeError
from ..support.table import counted
from ..support.words import shown
from .declare import broadcast_shapes, declare, normal_axes, normal_axis

__all__ = [
    "reshape", "permute_dims", "broadcast_to", "expand_dims", "squeeze", "flatten", "flip", "moveaxis",
    "swapaxes", "matrix_transpose", "unstack",
]


def dummy(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of this shape with one element of memory: NumPy's own indexing then gives the resulting shape."""
    return np.broadcast_to(np.empty((), dtype), shape)


def too_many(indices: int, shape: tuple[int, ...]) -> str:
    """What is wrong with an index that has more parts than the shape."""
    return f"{counted(indices, 'index', 'indices')} for a tensor of {counted(len(shape), 'dimension')}, shape {shape}"


def _infer_slice(x: Any, index: tuple[Any, ...]) -> Any:
    try:
        return dummy(x.shape, x.dtype)[index].shape, x.dtype
    except MinigradError:  # such as that of a tensor as a bound of a slice
        raise
    except ValueError as error:  # a slice whose step is 0
        raise IndexingError(f"{shown(index)} cannot index shape {x.shape}: {error}") from error
    except IndexError as error:
        if index.count(Ellipsis) > 1:
            raise IndexingError("an index can hold only one Ellipsis") from error
        given = [i for i in index if i is not None and i is not Ellipsis]
        if len(given) > len(x.shape):
            raise IndexingError(too_many(len(given), x.shape)) from error
        index = tuple(i for i in index if i is not None)
        front = next(k for k, i in enumerate(index) if i is Ellipsis)
        places = [*range(front), *range(len(x.shape) - (len(index) - front - 1), len(x.shape))]
        for place, i in zip(places, [i for i in index if i is not Ellipsis and i is not None]):
            if isinstance(i, int) and not -x.shape[place] <= i < x.shape[place]:
                raise IndexingError(
                    f"index {i} is out of range for dimension {place} of size {x.shape[place]}",
                    expect=f"an integer from {-x.shape[place]} to {x.shape[place] - 1}",
                ) from error
        raise IndexingError(f"{index} cannot index shape {x.shape}: {error}") from error


# `raw_...` are the primitives themselves: they take final attributes, without checks.

raw_reshape = declare(
    Primitive(
        "reshape", "view", ("x",), lambda x, shape: _infer_reshape(x, shape), promotes=(), linear=("x",),
        formula=r"\operatorname{reshape} x",
        rules={"x": lambda g, node: reshape(g, node.inputs[0].shape)},
    )
).apply
raw_permute_dims = declare(
    Primitive(
        "permute_dims", "view", ("x",), lambda x, axes: (tuple(x.shape[a] for a in axes), x.dtype), promotes=(),
        linear=("x",), formula=r"x^{\mathsf T}",
        rules={"x": lambda g, node: permute_dims(g, inverse(node.attrs["axes"]))},
    )
).apply
raw_broadcast_to = declare(
    Primitive(
        "broadcast_to", "view", ("x",), lambda x, shape: (shape, x.dtype), promotes=(), linear=("x",),
        formula=r"\operatorname{broadcast} x", rules={"x": lambda g, node: unbroadcast(g, node.inputs[0].shape)},
    )
).apply
raw_slice = declare(
    Primitive(
        "slice", "view", ("x",), _infer_slice, promotes=(), linear=("x",),
        formula=r"x[\dots]",
        rules={"x": lambda g, node: P.place.apply(g, shape=node.inputs[0].shape, index=node.attrs["index"])},
    )
).apply


def unbroadcast(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum a gradient over the dimensions along which its tensor was repeated.

    >>> unbroadcast(mg.ones((2, 3)), (3,)).tolist()
    [2.0, 2.0, 2.0]
    """
    extra = len(g.shape) - len(shape)
    stretched = tuple(i + extra for i, size in enumerate(shape) if size == 1 and g.shape[i + extra] != 1)
    axes = tuple(range(extra)) + stretched
    if not axes:
        return g
    total = P.sum.apply(g, axis=axes, keepdims=False, dtype=None)
    return reshape(total, shape) if stretched else total


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes this one.

    >>> inverse((1, 2, 0))
    (2, 0, 1)
    """
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


@method
def reshape(x: Tensor, shape: Any, *sizes: int, copy: bool | None = None) -> Tensor:
    """The same elements, row by row, in a different shape; one size may be -1, and is inferred.

    The result is a view if the elements are evenly spaced in memory, otherwise or with `copy=True` a copy.

    >>> mg.reshape(mg.arange(6), (2, -1)).tolist(), mg.arange(4).reshape(2, 2).tolist()
    ([[0, 1, 2], [3, 4, 5]], [[0, 1], [2, 3]])
    """
    try:
        number = shape.__class__ is int or hasattr(shape, "__index__")
        target = (shape, *sizes) if number else (*shape, *sizes) if sizes else tuple(shape)
        missing = True if target and min(target) < 0 else False  # an array of sizes has no truth value
    except (TypeError, ValueError):
        raise ShapeError(f"reshape: a shape is integers, not {shown((shape, *sizes))}") from None
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    if missing:
        total, known = x.size, math.prod([s for s in target if s >= 0])
        if [s for s in target if s < 0] != [-1] or known == 0 or total % known:
            raise _misfit(x.shape, target)
        target = tuple([total // known if s == -1 else s for s in target])
    out = raw_reshape(x, shape=target)
    if copy is None:
        return out
    if not isinstance(copy, bool):
        raise ConversionError(f"reshape: copy is True, False or None, not {shown(copy)}")
    if copy:
        return out.copy()
    if out.alias is None:
        raise ConversionError(f"reshape(copy=False): shape {x.shape}, as laid out in memory, needs a copy for {target}")
    return out


def _infer_reshape(x: Any, shape: tuple[int, ...]) -> Any:
    if math.prod(shape) != math.prod(x.shape) or any(size < 0 for size in shape):
        raise _misfit(x.shape, shape)
    return shape, x.dtype


def _misfit(shape: tuple[int, ...], target: tuple[int, ...]) -> ShapeError:
    size = math.prod(shape)
    elements = counted(size, f"element of shape {shape} does", f"elements of shape {shape} do")
    return ShapeError(
        f"reshape: {elements} not fit into shape {target}",
        expect=f"sizes whose product is {size}; one of them may be -1",
    )


@method
def permute_dims(x: Tensor, axes: Sequence[int] | int | None = None, *more: int) -> Tensor:
    """The dimensions in a different order; without `axes`, in reverse order.  A view.

    >>> mg.permute_dims(mg.ones((2, 3, 4)), (2, 0, 1)).shape, mg.ones((2, 3)).permute_dims(1, 0).shape
    ((4, 2, 3), (3, 2))
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    ndim = x.ndim
    if more or axes.__class__ is int:
        axes = (axes, *more)  # type: ignore[arg-type]
    if not isinstance(axes, (tuple, list, type(None))):
        raise AxisError(f"permute_dims: axes are a tuple of integers, not {shown(axes)}")
    order = tuple(range(ndim))[::-1] if axes is None else normal_axes("permute_dims", axes, ndim)
    if len(order) != ndim:
        raise AxisError(f"permute_dims: a tensor of {counted(ndim, 'dimension')} needs as many axes", actual=str(axes))
    return raw_permute_dims(x, axes=order)


@method
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor repeated along new dimensions and those of size 1: a view, which cannot be written to; or the tensor
    itself if it has the shape already.

    >>> mg.broadcast_to(mg.asarray([1, 2]), (3, 2)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    try:
        target = tuple([operator.index(s) for s in shape])
    except (TypeError, ConversionError):
        raise ShapeError(f"broadcast_to: a shape is integers, not {shown(shape)}") from None
    if broadcast_shapes("broadcast_to", (x.shape, target)) != target:
        raise ShapeError(f"broadcast_to: shape {x.shape} does not broadcast to {target}")
    return x if target == x.shape else raw_broadcast_to(x, shape=target)


@method
def expand_dims(x: Tensor, axis: Any = 0) -> Tensor:
    """The tensor with a new dimension of size 1 at `axis` (or at several axes): a view.

    >>> mg.expand_dims(mg.ones((2, 3)), axis=-1).shape
    (2, 3, 1)
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    places = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normal_axes("expand_dims", places, x.ndim + len(places))
    rest = iter(x.shape)
    return raw_reshape(x, shape=tuple([1 if i in axes else next(rest) for i in range(x.ndim + len(places))]))


@method
def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """The tensor without the dimensions of size 1 at `axis` (or without all of them): a view.

    >>> mg.squeeze(mg.ones((2, 1, 3)), axis=1).shape
    (2, 3)
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    shape = x.shape
    axes = [i for i, s in enumerate(shape) if s == 1] if axis is None else normal_axes("squeeze", axis, x.ndim)
    for a in axes:
        if shape[a] != 1:
            raise ShapeError(f"squeeze: dimension {a} of shape {shape} has size {shape[a]}", expect="size 1")
    return raw_reshape(x, shape=tuple([s for i, s in enumerate(shape) if i not in axes]))


@method
def flatten(x: Tensor, start: int = 0, stop: int = -1) -> Tensor:
    """The dimensions from `start` to `stop` joined into one: a view where `reshape` gives one.

    >>> mg.flatten(mg.ones((2, 3, 4)), start=1).shape
    (2, 12)
    """
    if not x.ndim:
        return reshape(x, (1,))
    first, last = normal_axis("flatten", start, x.ndim), normal_axis("flatten", stop, x.ndim)
    return reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@method
def flip(x: Tensor, axis: Any = None) -> Tensor:
    """The elements in reverse order along `axis` (along all of them if None): a view.

    >>> mg.flip(mg.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    axes = normal_axes("flip", axis, x.ndim)
    turned, whole = slice(None, None, -1), slice(None)
    return raw_slice(x, index=(*[turned if i in axes else whole for i in range(x.ndim)], ...))


@method
def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """The tensor with the dimensions `source` moved to `destination`: a view.

    >>> mg.moveaxis(mg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    origin, target = normal_axes("moveaxis", source, x.ndim), normal_axes("moveaxis", destination, x.ndim)
    if len(origin) != len(target):
        raise AxisError("moveaxis: as many destinations as sources", actual=f"{source} and {destination}")
    order = [i for i in range(x.ndim) if i not in origin]
    for place, axis in sorted(zip(target, origin)):
        order.insert(place, axis)
    return permute_dims(x, order)


@method
def swapaxes(x: Tensor, first: int, second: int) -> Tensor:
    """The tensor with two dimensions exchanged: a view.

    >>> mg.swapaxes(mg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    order = list(range(x.ndim))
    a, b = normal_axis("swapaxes", first, x.ndim), normal_axis("swapaxes", second, x.ndim)
    order[a], order[b] = order[b], order[a]
    return permute_dims(x, order)


def matrix_transpose(x: Tensor) -> Tensor:
    """Each matrix of a stack, transposed: the last two dimensions exchanged; a view.

    >>> mg.matrix_transpose(mg.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    if x.ndim < 2:
        raise AxisError(f"matrix_transpose: a matrix has two dimensions, and this tensor has shape {x.shape}")
    return swapaxes(x, -1, -2)


@method
def unstack(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of a tensor along `axis`, without that dimension: views.

    >>> [t.tolist() for t in mg.unstack(mg.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    front = (slice(None),) * normal_axis("unstack", axis, x.ndim)
    return tuple(raw_slice(x, index=(*front, i, ...)) for i in range(x.shape[len(front)]))


def _transposed(x: Tensor) -> Tensor:
    if len(x._data.shape) != 2:
        raise AxisError(
            f".T is for matrices, and this tensor has shape {x.shape}", hint=".mT or mg.permute_dims(x, axes)"
        )
    return raw_permute_dims(x, axes=(1, 0))


Tensor.ravel = flatten  # type: ignore[assignment]  # by which matplotlib flattens
Tensor.T = property(_transposed, doc="The matrix transposed.")  # type: ignore[assignment]
Tensor.mT = property(matrix_transpose, doc="Each matrix of a stack, transposed.")  # type: ignore[assignment]
