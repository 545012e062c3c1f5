"""Operators that move, make, reduce, sort, pick or place elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ...core.tensor import Tensor
from ...ops import creation, elementwise, index, joining, ordering, reduce, view
from ...ops.declare import normal_axes
from ...support.errors import FileError
from .composites import as_node
from .decompositions import in_full
from .operator_table import Numbers, both, operator, pairs_of, writes
from .sizes import Size, difference
from .writer import Writer

MOST = 1 << 31  # elements of a tensor whose size a file gives, so that a few bytes cannot fill the memory


def allowed(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape from a file, after a check that it is not negative or huge."""
    if any(extent < 0 for extent in shape) or math.prod(shape) > MOST:
        raise FileError(f"a tensor of the file has the shape {tuple(shape)}", expect=f"at most {MOST:,} elements")
    return tuple(shape)


# Views ---------------------------------------------------------------------------------------------------------------

both("Transpose", view.permute_dims, arguments="axes")


@writes("reshape")
def _reshape(w: Writer, node: Node, x: str) -> str:
    return w.reshape(x, node.shape)


@operator
def Reshape(x: Tensor, shape: Numbers, allowzero: int | None = None) -> Any:
    return view.reshape(x, [x.shape[i] if extent == 0 and not allowzero else extent for i, extent in enumerate(shape)])


@writes("broadcast_to")
def _broadcast_to(w: Writer, node: Node, x: str) -> str:
    return w.add("Expand", x, w.vector(node.shape))


@operator
def Expand(x: Tensor, shape: Numbers) -> Any:
    return view.broadcast_to(x, allowed(np.broadcast_shapes(x.shape, tuple(shape))))


@operator
def Flatten(x: Tensor, axis: int) -> Any:
    axis %= x.ndim + 1
    return view.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator
def Squeeze(x: Tensor, axes: Numbers | None) -> Any:
    return view.squeeze(x, tuple(axes) if axes else None)


@operator
def Unsqueeze(x: Tensor, axes: Numbers) -> Any:
    return view.expand_dims(x, axes)


@writes("slice")
def _slice(w: Writer, node: Node, x: str) -> str:
    index = in_full(node.attrs["index"], len(node.inputs[0].shape))
    taken = [i for i in index if i is not None]
    cuts = [(axis, *_ends(i)) for axis, i in enumerate(taken) if i != slice(None)]
    gone = [axis for axis, i in enumerate(taken) if not isinstance(i, slice)]
    new = [axis for axis, i in enumerate([i for i in index if i is None or isinstance(i, slice)]) if i is None]
    if cuts:
        axes, starts, stops, steps = zip(*cuts)
        x = w.add("Slice", x, *[w.vector(v) for v in (starts, stops, axes, steps)])
    if gone:
        x = w.add("Squeeze", x, w.vector(gone))
    return w.add("Unsqueeze", x, w.vector(new)) if new else x


LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min  # ONNX limits them to the size of the dimension


def _ends(i: Any) -> tuple[Any, Any, Any]:
    if not isinstance(i, slice):
        return i, difference(i, -1) if i != -1 else LAST, 1
    step = 1 if i.step is None else i.step
    before, behind = (0, LAST) if step > 0 else (LAST, FIRST)
    return before if i.start is None else i.start, behind if i.stop is None else i.stop, step


@operator
def Slice(x: Tensor, starts: Numbers, ends: Numbers, axes: Numbers | None, steps: Numbers | None) -> Any:
    places = range(len(starts)) if axes is None else axes
    cuts: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(places, starts, ends, steps or [1] * len(starts)):
        first, last, by = slice(start, end, step).indices(x.shape[axis])
        cuts[axis] = slice(first, None if last < 0 else last, by)
    return x[tuple(cuts)]  # type: ignore[index]


# Making --------------------------------------------------------------------------------------------------------------


@writes("full")
def _full(w: Writer, node: Node) -> str:
    number = w.number(node.attrs["value"], node.dtype)
    return w.add("Expand", number, w.vector(node.shape)) if node.shape else number


@operator
def ConstantOfShape(shape: Numbers, value: Any) -> Any:
    one = np.zeros((), np.float32) if value is None else np.asarray(value)
    return creation.full(allowed(shape), one.reshape(()).item(), dtypes.as_dtype(one.dtype))


@writes("arange")
def _arange(w: Writer, node: Node) -> str:
    start, step, count = (node.attrs[key] for key in ("start", "step", "count"))
    if not any(isinstance(v, Size) for v in (start, step, count)):
        return w.constant((start + np.arange(count) * step).astype(node.dtype), "range")
    dtype = np.float64 if float in (type(start), type(step)) else np.int64
    numbers = w.add("Range", w.scalar(0), w.scalar(count), w.scalar(1))
    if (start, step, node.dtype) == (0, 1, np.int64):
        return numbers
    scaled = w.add("Mul", w.cast(numbers, dtype), w.number(step, dtype))
    return w.cast(w.add("Add", scaled, w.number(start, dtype)), node.dtype)


@operator
def Range(start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = (v.item() for v in (start, limit, delta))
    (count,) = allowed([max(0, math.ceil((last - first) / step))])
    return creation.arange(count, dtype=dtypes.int64).astype(start.dtype) * step + first  # type: ignore[attr-defined]


# Reductions and order ------------------------------------------------------------------------------------------------

as_node("mean")
both("ArgMax", reduce.argmax, arguments="axis", keepdims=0)
both("ArgMin", reduce.argmin, arguments="axis", keepdims=0)


def _reduction(function: Callable[..., Any]) -> None:
    op_type = f"Reduce{function.__name__.title()}"

    @writes(function.__name__)
    def write(w: Writer, node: Node, x: str) -> str:
        axes = normal_axes(node.name, node.attrs["axis"], node.inputs[0].ndim)
        given = [w.vector(axes)] if axes else []
        return w.add(op_type, x, *given, keepdims=int(node.attrs["keepdims"]), noop_with_empty_axes=1)

    def apply(x: Tensor, axes: Numbers | None, keepdims: int, noop_with_empty_axes: int = 0) -> Any:
        if not axes and noop_with_empty_axes:
            return x
        return function(x, axis=tuple(axes) if axes else None, keepdims=bool(keepdims)).astype(x.dtype, copy=False)

    operator(apply, op_type)


for _each in (reduce.sum, reduce.prod, reduce.max, reduce.min, reduce.mean):
    _reduction(_each)


@writes("cumulative_sum")
def _cumulative_sum(w: Writer, node: Node, x: str) -> str:
    return w.add("CumSum", x, w.scalar(node.attrs["axis"]))


@operator
def CumSum(x: Tensor, axis: Numbers) -> Any:
    return reduce.cumulative_sum(x, axis=axis[0], dtype=x.dtype)


@writes("sort", "argsort")
def _sort(w: Writer, node: Node, x: str) -> str:
    """The values or positions of TopK: of equal elements, the first comes first."""
    axis, descending = node.attrs["axis"], node.attrs["descending"]
    found = w.add("TopK", x, w.vector([node.shape[axis]]), outputs=2, axis=axis, largest=int(descending), sorted=1)
    return found[node.name == "argsort"]  # type: ignore[no-any-return]


@operator
def TopK(x: Tensor, k: Numbers, axis: int, largest: int) -> Any:
    return ordering.topk(x, k[0], axis, bool(largest))


# Picking and placing -------------------------------------------------------------------------------------------------

operator(index.take, "Gather")


@writes("concat")
def _concat(w: Writer, node: Node, *xs: str) -> str:
    return w.add("Concat", *xs, axis=node.attrs["axis"])


@operator
def Concat(*xs: Tensor, axis: int) -> Any:
    return joining.concat(xs, axis=axis)


@operator
def Split(x: Tensor, sizes: Numbers | None, axis: int, num_outputs: Any = None) -> Any:
    if sizes is None:
        if not num_outputs or x.shape[axis] % num_outputs:
            raise FileError(f"Split: shape {x.shape} can't be cut into {num_outputs} equal parts along axis {axis}")
        return tuple(joining.split(x, num_outputs, axis=axis))
    return tuple(joining.split(x, np.cumsum(sizes)[:-1].tolist(), axis=axis))


@writes("gather")
def _gather(w: Writer, node: Node, x: str, *indices: str) -> str:
    return w.add("GatherND", x, _tuples(w, indices)) if len(indices) > 1 else w.add("Gather", x, *indices, axis=0)


@operator
def GatherND(x: Tensor, indices: Tensor) -> Any:
    return x[view.unstack(indices, -1)]  # type: ignore[index]


def _tuples(w: Writer, indices: Sequence[str]) -> str:
    """Index arrays as one array, whose last dimension has an index for each of the first axes."""
    columns = [w.add("Unsqueeze", name, w.vector([-1])) for name in indices]
    return columns[0] if len(columns) == 1 else w.add("Concat", *columns, axis=-1)


@writes("scatter_add", "scatter_max", "put")
def _scatter(w: Writer, node: Node, base: str, value: str, *indices: str) -> str:
    reduction = "none" if node.name == "put" else node.name[-3:]
    return w.add("ScatterND", base, _tuples(w, indices), value, reduction=reduction)


@operator
def ScatterND(x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Any:
    if reduction not in ("none", "add", "max"):
        raise FileError(f"ScatterND: the reduction {reduction!r} is not supported", expect="none, add or max")
    if reduction != "none":
        return (index.scatter_add if reduction == "add" else index.scatter_max)(x, view.unstack(indices, -1), updates)
    out = elementwise.copy(x)
    out[view.unstack(indices, -1)] = updates  # type: ignore[index]
    return out


@writes("place")
def _place(w: Writer, node: Node, x: str) -> str:
    index = node.attrs["index"]
    widths = [*[i.start for i in index], *[difference(extent, i.stop) for extent, i in zip(node.shape, index)]]
    return w.add("Pad", x, w.vector(widths), w.number(0, node.dtype))


@operator
def Pad(x: Tensor, pads: Numbers, value: Numbers | None, axes: Numbers | None = None, *, mode: str) -> Any:
    if mode != "constant" or any(p < 0 for p in pads):
        raise FileError(f"Pad: mode {mode!r} with pads {list(pads)} is not supported")
    places = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    widths = dict(zip(places, pairs_of(pads)))
    every = [widths.get(a, (0, 0)) for a in range(x.ndim)]
    allowed([before + extent + behind for extent, (before, behind) in zip(x.shape, every)])
    return index.pad(x, every, 0 if value is None else value[0])


@writes("project")
def _project(w: Writer, node: Node, names: Sequence[str]) -> str:
    return names[node.attrs["index"]]
