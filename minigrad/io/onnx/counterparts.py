"""The table: for each primitive, the ONNX nodes that compute the same.

`SAME` has the primitives that are one operation in ONNX, under another name; the importer reads this table backwards.
Other primitives have a function that writes several nodes: `write(w, node, *names)` returns the name of the result.  A
primitive in neither table cannot be exported; `WITHOUT` has the reason where one is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...compile.nodes.graph import node_like
from ...core import dtypes
from ...core.node import Node
from ...core.primitive import P
from .sizes import Size, difference
from .writer import Writer, fixed, number_type

Write = Callable[..., Any]

SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg", "pow": "Pow", "abs": "Abs",
    "maximum": "Max", "minimum": "Min", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "round": "Round", "less": "Less",
    "less_equal": "LessOrEqual", "equal": "Equal", "where": "Where", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "bitwise_invert": "BitwiseNot", "matmul": "MatMul",
}
OF_BOOLS = {
    "add": "Or", "multiply": "And", "maximum": "Or", "minimum": "And", "bitwise_and": "And", "bitwise_or": "Or",
    "bitwise_xor": "Xor", "bitwise_invert": "Not",
}
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


def _same(name: str) -> Write:
    def write(w: Writer, node: Node, *names: str) -> str:
        kind = node.inputs[-1].dtype.kind if isinstance(node.inputs[-1], Node) else number_type(node).kind
        if kind == "b" and name in OF_BOOLS:
            return w.add(OF_BOOLS[name], *names)
        if kind == "b" and name in ("less", "less_equal"):  # ONNX compares only numbers
            names = tuple([w.cast(n, dtypes.int32) for n in names])
        if kind in "iu" and name in ("floor", "round"):
            return names[0]
        if kind == "u" and name == "negative":
            return w.add("Sub", w.number(0, node.dtype), *names)
        if name == "matmul" and (kind == "b" or (node.dtype.itemsize < 4 and kind != "f")):
            return w.cast(w.add("MatMul", *[w.cast(n, dtypes.int32) for n in names]), node.dtype)
        return w.add(SAME[name], *names)

    return write


TABLE |= {name: _same(name) for name in SAME}


# Elementwise, of several nodes ---------------------------------------------------------------------------------------


@writes("astype")
def _astype(w: Writer, node: Node, x: str) -> str:
    return x if node.inputs[0].dtype == node.dtype else w.cast(x, node.dtype)


@writes("to_device")
def _to_device(w: Writer, node: Node, x: str) -> str:
    return x


@writes("expm1")
def _expm1(w: Writer, node: Node, x: str) -> str:
    """exp(x) - 1 = tanh(x / 2) · (exp(x) + 1), without cancellation."""
    half = w.add("Tanh", w.add("Mul", x, w.number(0.5, node.dtype)))
    return w.add("Mul", half, w.add("Add", w.add("Exp", x), w.number(1, node.dtype)))


@writes("log1p")
def _log1p(w: Writer, node: Node, x: str) -> str:
    """With u = 1 + x as rounded: log(u) · x / (u - 1), where two errors cancel; x where u is 1; ∞ where u is ∞."""
    one = w.number(1, node.dtype)
    u = w.add("Add", x, one)
    log = w.add("Log", u)
    near = w.add("Mul", log, w.add("Div", x, w.add("Sub", u, one)))
    far = w.add("Equal", u, w.number(np.inf, node.dtype))
    return w.add("Where", w.add("Equal", u, one), x, w.add("Where", far, log, near))


@writes("remainder")
def _remainder(w: Writer, node: Node, x: str, y: str) -> str:
    """The result has the sign of y; for floats, that of ONNX has the sign of x."""
    if number_type(node).kind in "iu":
        return w.add("Mod", x, y)
    rest, other = _rest(w, node, x, y)
    return w.add("Where", other, w.add("Add", rest, y), rest)


def _rest(w: Writer, node: Node, x: str, y: str) -> tuple[str, str]:
    """The remainder of floats with the sign of x, and where that differs from the sign of y."""
    rest, zero = w.add("Mod", x, y, fmod=1), w.number(0, node.dtype)
    other = w.add("Xor", w.add("Less", rest, zero), w.add("Less", y, zero))
    return rest, w.add("And", other, w.add("Not", w.add("Equal", rest, zero)))


@writes("floor_divide")
def _floor_divide(w: Writer, node: Node, x: str, y: str) -> str:
    """x without its remainder is a multiple of y, except for rounding."""
    if number_type(node).kind in "iu":
        return w.add("Div", w.add("Sub", x, _remainder(w, node, x, y)), y)
    rest, other = _rest(w, node, x, y)
    even = w.add("Round", w.add("Div", w.add("Sub", x, rest), y))
    even = w.add("Where", other, w.add("Sub", even, w.number(1, node.dtype)), even)
    return w.add("Where", w.add("Equal", y, w.number(0, node.dtype)), w.add("Div", x, y), even)


@writes("atan2")
def _atan2(w: Writer, node: Node, y: str, x: str) -> str:
    """The angle of y / x, turned by half a circle where x is negative; 1 / x shows the sign of -0.0."""
    zero, one, pi = (w.number(v, node.dtype) for v in (0, 1, np.pi))

    def negative(v: str) -> str:
        below = w.add("And", w.add("Equal", v, zero), w.add("Less", w.add("Div", one, v), zero))
        return w.add("Or", w.add("Less", v, zero), below)

    flat = w.add("And", w.add("Equal", x, zero), w.add("Equal", y, zero))
    endless = w.add("And", *[w.add("Equal", w.add("Abs", v), w.number(np.inf, node.dtype)) for v in (x, y)])
    slope = w.add("Where", flat, y, w.add("Div", y, x))
    slope = w.add("Where", endless, w.add("Mul", w.add("Sign", y), w.add("Sign", x)), slope)
    turned = w.add("Where", negative(y), w.add("Neg", pi), pi)
    signed_zero = w.add("Where", negative(y), w.number(-0.0, node.dtype), zero)
    angle = w.add("Where", flat, signed_zero, w.add("Atan", slope))
    return w.add("Where", negative(x), w.add("Add", angle, turned), angle)


@writes("bitwise_left_shift", "bitwise_right_shift")
def _shift(w: Writer, node: Node, x: str, y: str) -> str:
    """ONNX shifts only unsigned integers; others are multiplied, or divided and rounded down."""
    direction = "LEFT" if node.name == "bitwise_left_shift" else "RIGHT"
    if node.dtype.kind == "u":
        return w.add("BitShift", x, y, direction=direction)
    power = w.cast(w.add("Pow", w.number(2, np.int64), w.cast(y, np.int64)), node.dtype)
    return w.add("Mul", x, power) if direction == "LEFT" else _floor_divide(w, node, x, power)


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
    index = node.attrs["index"]
    ndim = len(node.inputs[0].shape)
    rest = ndim - len([i for i in index if i is not None and i is not Ellipsis])
    full = [j for i in index for j in ([slice(None)] * rest if i is Ellipsis else [i])]
    full += [slice(None)] * (rest if Ellipsis not in index else 0)
    cut: list[tuple[Any, ...]] = []
    gone, new, axis, place = [], [], 0, 0
    for i in full:
        if i is None:
            new.append(place)
        elif isinstance(i, slice):
            if i != slice(None):
                cut.append((axis, *_ends(i)))
        else:
            cut.append((axis, i, i + 1 if i != -1 else LAST, 1))
            gone.append(axis)
        axis += i is not None
        place += i is None or isinstance(i, slice)
    if cut:
        axes, starts, stops, steps = zip(*cut)
        x = w.add("Slice", x, *[w.vector(v) for v in (starts, stops, axes, steps)])
    if gone:
        x = w.add("Squeeze", x, w.vector(gone))
    return w.add("Unsqueeze", x, w.vector(new)) if new else x


LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min  # ONNX limits them to the size of the dimension


def _ends(s: slice) -> tuple[Any, Any, Any]:
    step = 1 if s.step is None else s.step
    before, behind = (0, LAST) if step > 0 else (LAST, FIRST)
    return before if s.start is None else s.start, behind if s.stop is None else s.stop, step


@writes("windows")
def _windows(w: Writer, node: Node, x: str) -> str:
    """Take windows along one axis after the other, then move the axes of the windows' elements to the end."""
    attrs, ndim = node.attrs, len(node.inputs[0].shape)
    order: list[Any] = list(range(ndim))
    for number in sorted(range(len(attrs["axis"])), key=lambda n: -attrs["axis"][n]):
        axis, size = attrs["axis"][number], attrs["size"][number]
        count = fixed(node.shape[axis], "number of windows", node)
        starts = np.arange(count)[:, None] * attrs["stride"][number]
        x = w.add("Gather", x, w.constant(starts + np.arange(size) * attrs["dilation"][number], "windows"), axis=axis)
        order.insert(axis + 1, f"within {number}")
    wanted = [*range(ndim), *[f"within {number}" for number in range(len(attrs["axis"]))]]
    return w.add("Transpose", x, perm=[order.index(each) for each in wanted])


# Making --------------------------------------------------------------------------------------------------------------


@writes("full")
def _full(w: Writer, node: Node) -> str:
    return w.add("Expand", w.number(node.attrs["value"], node.dtype), w.vector(node.shape))


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
        source, attrs = node.inputs[0], node.attrs
        inner = np.dtype(np.int32) if node.dtype.kind == "b" else node.dtype  # ReduceMax takes no bools in this opset
        if inner != source.dtype:
            x = w.cast(x, inner)
        axes = [] if not attrs["axis"] else [w.vector(attrs["axis"])]
        x = w.add(op_type, x, *axes, keepdims=int(attrs["keepdims"]), noop_with_empty_axes=1)
        return x if inner == node.dtype else w.cast(x, node.dtype)

    return write


TABLE |= {
    "sum": _reduction("ReduceSum"), "prod": _reduction("ReduceProd"),
    "max": _reduction("ReduceMax"), "min": _reduction("ReduceMin"),
}


def _position(op_type: str) -> Write:
    def write(w: Writer, node: Node, x: str) -> str:
        if node.inputs[0].dtype.kind == "b":
            x = w.cast(x, dtypes.int32)
        return w.add(op_type, x, axis=node.attrs["axis"], keepdims=0)

    return write


TABLE |= {"argmax": _position("ArgMax"), "argmin": _position("ArgMin")}


@writes("cumulative_sum")
def _cumulative_sum(w: Writer, node: Node, x: str) -> str:
    if node.inputs[0].dtype != node.dtype:
        x = w.cast(x, node.dtype)
    return w.add("CumSum", x, w.scalar(node.attrs["axis"]))


def _topk(w: Writer, node: Node, x: str, count: int) -> Sequence[str]:
    """The values and positions of TopK: of equal elements, the first comes first."""
    axis, descending = node.attrs["axis"], node.attrs["descending"]
    if node.inputs[0].dtype.kind == "b":
        x = w.cast(x, dtypes.int32)
    return w.add("TopK", x, w.vector([count]), outputs=2, axis=axis, largest=int(descending), sorted=1)


@writes("argsort")
def _argsort(w: Writer, node: Node, x: str) -> str:
    return _topk(w, node, x, node.shape[node.attrs["axis"]])[1]


@writes("sort")
def _sort(w: Writer, node: Node, x: str) -> str:
    values = _topk(w, node, x, node.shape[node.attrs["axis"]])[0]
    return w.cast(values, node.dtype) if node.dtype.kind == "b" else values


# Picking and placing -------------------------------------------------------------------------------------------------


@writes("concat")
def _concat(w: Writer, node: Node, *xs: str) -> str:
    return w.add("Concat", *xs, axis=node.attrs["axis"])


@writes("gather")
def _gather(w: Writer, node: Node, x: str, *indices: str) -> str:
    if len(indices) == 1:
        return w.add("Gather", x, _positions(w, node.inputs[1], indices[0]), axis=0)
    return w.add("GatherND", x, _tuples(w, node.inputs[1:], indices))


def _positions(w: Writer, source: Any, name: str) -> str:
    return name if source.dtype == np.int64 else w.cast(name, np.int64)


def _tuples(w: Writer, sources: Sequence[Any], indices: Sequence[str]) -> str:
    """Index arrays as one array, whose last dimension has an index for each of the first axes."""
    columns, shape = [], _common_shape(sources)
    for source, name in zip(sources, indices):
        name = _positions(w, source, name)
        if source.shape != shape:
            name = w.add("Expand", name, w.vector(shape))
        columns.append(w.add("Unsqueeze", name, w.vector([-1])))
    return columns[0] if len(columns) == 1 else w.add("Concat", *columns, axis=-1)


def _common_shape(sources: Sequence[Any]) -> tuple[int, ...]:
    """The shape that these shapes broadcast to, where sizes that depend on the batch stay such sizes."""
    shapes = [s.shape for s in sources]
    columns = [[s[-back] for s in shapes if len(s) >= back] for back in range(max(map(len, shapes)), 0, -1)]
    return tuple([max(column, key=lambda extent: (isinstance(extent, Size), extent != 1)) for column in columns])


@writes("scatter_add", "scatter_max")
def _scatter(w: Writer, node: Node, base: str, value: str, *indices: str) -> str:
    sources = node.inputs[2:]
    target = (*_common_shape(sources), *node.shape[len(indices) :])
    value = _with_rank(w, node.inputs[1], value, len(target))
    if getattr(node.inputs[1], "shape", ()) != target:
        value = w.add("Expand", value, w.vector(target))
    return w.add("ScatterND", base, _tuples(w, sources, indices), value, reduction=node.name[-3:])


def _with_rank(w: Writer, source: Any, value: str, ndim: int) -> str:
    """A value without leading dimensions of size 1, so that it has at most `ndim` dimensions."""
    given = getattr(source, "shape", ())
    return w.reshape(value, given[len(given) - ndim :]) if len(given) > ndim else value


@writes("put")
def _put(w: Writer, node: Node, base: str, value: str, *indices: str) -> str:
    """Views and indices applied to the positions of all elements give the positions to write."""
    place, positions = _numbered(w, node, node.shape)
    for op, attrs in node.attrs["chain"]:
        place, positions = _step(w, op, place, (positions,), attrs)
    if indices:
        place, positions = _step(w, P.gather, place, (positions, *indices), {}, node.inputs[2:])
    value = _with_rank(w, node.inputs[1], value, len(place.shape))
    return _at(w, node, base, positions, w.add("Expand", value, w.add("Shape", positions)))


def _numbered(w: Writer, node: Node, shape: Sequence[int]) -> tuple[Node, str]:
    """The position of each element of a tensor in row-major order, in its shape: a node and its name."""
    total = _product(shape)
    counted = {"start": 0, "step": 1, "count": total, "dtype": dtypes.int64, "device": node.device}
    flat = node_like(P.arange, (), counted, node)
    flat.shape = (total,)
    place = node_like(P.reshape, (flat,), {"shape": tuple(int(n) for n in shape)}, node)
    place.shape = tuple(shape)
    return place, w.reshape(_arange(w, flat), shape)


def _product(shape: Sequence[int]) -> int:
    depend = [extent for extent in shape if isinstance(extent, Size)]
    total = int(np.prod([int(extent) for extent in shape], dtype=np.int64))
    if not depend:
        return total
    (extent,) = depend  # shapes with two sizes that depend on the batch are not supported
    others = total // int(extent)
    size = Size(total)
    size.factor, size.offset = extent.factor * others, extent.offset * others
    return size


def _step(
    w: Writer, op: Any, source: Node, names: Sequence[str], attrs: dict[str, Any], indices: Sequence[Any] = ()
) -> tuple[Node, str]:
    node = node_like(op, (source, *indices), attrs, source)
    node.shape = attrs.get("shape", node.shape)  # with the sizes that depend on the batch
    return node, TABLE[op.name](w, node, *names)


def _at(w: Writer, node: Node, base: str, positions: str, value: str) -> str:
    flat = w.vector([-1])
    rows = w.add("Unsqueeze", w.add("Reshape", positions, flat), w.vector([-1]))
    out = w.add("ScatterND", w.add("Reshape", base, flat), rows, w.add("Reshape", value, flat))
    return w.reshape(out, node.shape)


@writes("place")
def _place(w: Writer, node: Node, x: str) -> str:
    """A tensor with zeros around it; with a step, its elements are scattered among zeros."""
    index = [i for i in node.attrs["index"] if i is not Ellipsis]
    index += [slice(None)] * (len(node.shape) - len(index))
    if all(isinstance(i, slice) and i.step in (None, 1) for i in index):
        before = [i.start or 0 for i in index]
        behind = [difference(n, n if i.stop is None else i.stop) for n, i in zip(node.shape, index)]
        if not any(isinstance(n, int) and n < 0 for n in (*before, *behind)):
            kind = np.dtype(np.int32) if node.dtype.kind == "b" else node.dtype
            x = x if kind == node.dtype else w.cast(x, kind)
            x = w.add("Pad", x, w.vector([*before, *behind]), w.number(0, kind))
            return x if kind == node.dtype else w.cast(x, node.dtype)
    zeros = w.add("Expand", w.number(0, node.dtype), w.vector(node.shape))
    place, positions = _numbered(w, node, node.shape)
    _, positions = _step(w, P.slice, place, (positions,), {"index": node.attrs["index"]})
    return _at(w, node, zeros, positions, x)


@writes("overlap_add")
def _overlap_add(w: Writer, node: Node, x: str) -> str:
    """Move the dimensions that windows slide along to the front, then add each element at its position."""
    attrs, shape = node.attrs, node.shape
    slid = attrs["axis"]
    others = [a for a in range(len(shape)) if a not in slid]
    within = range(len(shape), len(node.inputs[0].shape))
    x = w.add("Transpose", x, perm=[*[a for pair in zip(slid, within) for a in pair], *others])
    sizes = node.inputs[0].shape
    grid = []
    for number, (a, k) in enumerate(zip(slid, within)):
        count, size = fixed((sizes[a], sizes[k]), "number of windows", node)
        places = np.arange(count)[:, None] * attrs["stride"][number] + np.arange(size) * attrs["dilation"][number]
        before, behind = 2 * number, 2 * (len(slid) - number - 1)
        grid.append(places.reshape((1,) * before + places.shape + (1,) * behind))
    indices = np.stack(np.broadcast_arrays(*grid), axis=-1)
    zeros = w.add("Expand", w.number(0, node.dtype), w.vector([*[shape[a] for a in slid], *[shape[a] for a in others]]))
    out = w.add("ScatterND", zeros, w.constant(indices, "windows"), x, reduction="add")
    return w.add("Transpose", out, perm=[[*slid, *others].index(a) for a in range(len(shape))])


# Parts of what has several results -----------------------------------------------------------------------------------


@writes("project")
def _project(w: Writer, node: Node, names: Sequence[str]) -> str:
    return names[node.attrs["index"]]
