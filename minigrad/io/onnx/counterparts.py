"""The table: for each primitive, the ONNX nodes that compute the same.

`SAME` has the primitives that are one operation in ONNX, under another name; the importer reads this table backwards.
Other primitives have a function that writes several nodes: `write(w, node, *names)` returns the name of the result.  A
primitive in neither table cannot be exported; `WITHOUT` has the reason where one is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.node import Node
from ...ops.declare import normal_axes
from .composites import as_node
from .decompositions import in_full
from .sizes import Size, difference
from .writer import Writer

Write = Callable[..., Any]

SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg", "pow": "Pow", "abs": "Abs",
    "maximum": "Max", "minimum": "Min", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "round": "Round", "less": "Less",
    "less_equal": "LessOrEqual", "equal": "Equal", "where": "Where", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "bitwise_invert": "BitwiseNot", "matmul": "MatMul",
}
OF_BOOLS = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "bitwise_invert": "Not"}
WITHOUT = {
    "random": "a model in a file is deterministic; model.eval() switches dropout off",
    "print": "it does more than compute a result",
    "breakpoint": "it does more than compute a result",
    "collective": "it needs other processes",
    "own": "it is a kernel of your own, which other programs do not have",
}

TABLE: dict[str, Write] = {}


def writes(*names: str) -> Callable[[Write], Write]:
    """Put a function into the table, for the primitives of these names."""

    def put(write: Write) -> Write:
        TABLE.update(dict.fromkeys(names, write))
        return write

    return put


def _same(op_type: str, of_bools: str) -> Write:
    return lambda w, node, *names: w.add(of_bools if node.dtype.kind == "b" else op_type, *names)


TABLE |= {name: _same(theirs, OF_BOOLS.get(name, theirs)) for name, theirs in SAME.items()}
TABLE["floor_divide"] = _same("Div", "")  # of integers, once there is no remainder


@writes("astype")
def _astype(w: Writer, node: Node, x: str) -> str:
    return x if node.inputs[0].dtype == node.dtype else w.cast(x, node.dtype)


@writes("to_device")
def _to_device(w: Writer, node: Node, x: str) -> str:
    return x


@writes("remainder")
def _remainder(w: Writer, node: Node, x: str, y: str) -> str:
    return w.add("Mod", x, y, fmod=int(node.dtype.kind == "f"))


@writes("atan2")
def _atan(w: Writer, node: Node, slope: str, one: str) -> str:
    return w.add("Atan", slope)


@writes("bitwise_left_shift", "bitwise_right_shift")
def _shift(w: Writer, node: Node, x: str, y: str) -> str:
    return w.add("BitShift", x, y, direction="LEFT" if node.name == "bitwise_left_shift" else "RIGHT")


# Views ---------------------------------------------------------------------------------------------------------------


@writes("reshape")
def _reshape(w: Writer, node: Node, x: str) -> str:
    return w.reshape(x, node.shape)


@writes("permute_dims")
def _permute_dims(w: Writer, node: Node, x: str) -> str:
    return w.add("Transpose", x, perm=list(node.attrs["axes"])) if node.attrs["axes"] else x


@writes("broadcast_to")
def _broadcast_to(w: Writer, node: Node, x: str) -> str:
    return w.add("Expand", x, w.vector(node.shape))


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


# Making --------------------------------------------------------------------------------------------------------------


@writes("full")
def _full(w: Writer, node: Node) -> str:
    number = w.number(node.attrs["value"], node.dtype)
    return w.add("Expand", number, w.vector(node.shape)) if node.shape else number


@writes("arange")
def _arange(w: Writer, node: Node) -> str:
    start, step, count = (node.attrs[key] for key in ("start", "step", "count"))
    if not any(isinstance(v, Size) for v in (start, step, count)):
        return w.constant((start + np.arange(count) * step).astype(node.dtype), "range")
    dtype = np.float64 if float in (type(start), type(step)) else np.int64
    numbers = w.add("Range", w.scalar(0), w.scalar(count), w.scalar(1))
    numbers = numbers if dtype is np.int64 else w.cast(numbers, dtype)
    if step != 1:
        numbers = w.add("Mul", numbers, w.number(step, dtype))
    if start != 0:
        numbers = w.add("Add", numbers, w.number(start, dtype))
    return numbers if node.dtype == dtype else w.cast(numbers, node.dtype)


# Reductions ----------------------------------------------------------------------------------------------------------


def _reduction(op_type: str) -> Write:
    def write(w: Writer, node: Node, x: str) -> str:
        axes = [] if not node.attrs["axis"] else [w.vector(node.attrs["axis"])]
        return w.add(op_type, x, *axes, keepdims=int(node.attrs["keepdims"]), noop_with_empty_axes=1)

    return write


TABLE |= {name: _reduction(f"Reduce{name.title()}") for name in ("sum", "prod", "max", "min")}


@writes("argmax", "argmin")
def _position(w: Writer, node: Node, x: str) -> str:
    return w.add("ArgMax" if node.name == "argmax" else "ArgMin", x, axis=node.attrs["axis"], keepdims=0)


@writes("cumulative_sum")
def _cumulative_sum(w: Writer, node: Node, x: str) -> str:
    return w.add("CumSum", x, w.scalar(node.attrs["axis"]))


@writes("sort", "argsort")
def _sort(w: Writer, node: Node, x: str) -> str:
    """The values or positions of TopK: of equal elements, the first comes first."""
    axis, descending = node.attrs["axis"], node.attrs["descending"]
    found = w.add("TopK", x, w.vector([node.shape[axis]]), outputs=2, axis=axis, largest=int(descending), sorted=1)
    return found[node.name == "argsort"]  # type: ignore[no-any-return]


as_node("mean")


@writes("mean")
def _mean(w: Writer, node: Node, x: str) -> str:
    axes = normal_axes("mean", node.attrs["axis"], node.inputs[0].ndim)
    return w.add("ReduceMean", x, w.vector(axes), keepdims=int(node.attrs["keepdims"]))


# Picking and placing -------------------------------------------------------------------------------------------------


@writes("concat")
def _concat(w: Writer, node: Node, *xs: str) -> str:
    return w.add("Concat", *xs, axis=node.attrs["axis"])


@writes("gather")
def _gather(w: Writer, node: Node, x: str, *indices: str) -> str:
    return w.add("GatherND", x, _tuples(w, indices)) if len(indices) > 1 else w.add("Gather", x, *indices, axis=0)


def _tuples(w: Writer, indices: Sequence[str]) -> str:
    """Index arrays as one array, whose last dimension has an index for each of the first axes."""
    columns = [w.add("Unsqueeze", name, w.vector([-1])) for name in indices]
    return columns[0] if len(columns) == 1 else w.add("Concat", *columns, axis=-1)


@writes("scatter_add", "scatter_max", "put")
def _scatter(w: Writer, node: Node, base: str, value: str, *indices: str) -> str:
    reduction = "none" if node.name == "put" else node.name[-3:]
    return w.add("ScatterND", base, _tuples(w, indices), value, reduction=reduction)


@writes("place")
def _place(w: Writer, node: Node, x: str) -> str:
    index = node.attrs["index"]
    widths = [*[i.start for i in index], *[difference(extent, i.stop) for extent, i in zip(node.shape, index)]]
    return w.add("Pad", x, w.vector(widths), w.number(0, node.dtype))


# Layers --------------------------------------------------------------------------------------------------------------

as_node("linear", needed="x weight", optional="bias")


@writes("linear")
def _linear(w: Writer, node: Node, x: str, weight: str, *bias: str) -> str:
    if len(node.shape) == 2:
        return w.add("Gemm", x, weight, *bias, transB=1)
    product = w.add("MatMul", x, w.add("Transpose", weight, perm=[1, 0]))
    return w.add("Add", product, *bias) if bias else product


# Parts of what has several results -----------------------------------------------------------------------------------


@writes("project")
def _project(w: Writer, node: Node, names: Sequence[str]) -> str:
    return names[node.attrs["index"]]
