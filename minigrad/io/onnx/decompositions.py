"""Primitives that ONNX lacks, or has in another form, as functions of primitives that it has.

A decomposition is a function of ours.  It is traced, and the nodes that it records replace the node before the graphs
for several batch sizes become one: so the shapes in it are plain numbers.  It takes the node and its inputs as tensors,
and returns the result; or a list of inputs for the same node; or None if the node stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compile.nodes.graph import Graph, node_like, remade
from ...compile.tracing.tracer import Pending, Tracer
from ...core import dtypes
from ...core.mode import switch
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor, wrap
from ...devices import as_device
from ...ops.creation import arange, full, zeros
from ...ops.elementary import isinf
from ...ops.elementwise import erf, exp, log, round, tanh, where
from ...ops.view import broadcast_to, expand_dims, inverse, moveaxis, permute_dims, reshape
from .composites import as_node

Decomposition = Callable[..., Any]

DECOMPOSITIONS: dict[str, Decomposition] = {}


def decomposes(*names: str) -> Callable[[Decomposition], Decomposition]:
    """Put a function into the table, for nodes of these names."""

    def put(function: Decomposition) -> Decomposition:
        DECOMPOSITIONS.update(dict.fromkeys(names, function))
        return function

    return put


def decomposed(graph: Graph, calls: Mapping[Node, Node]) -> Graph:
    """A graph with these calls, and with decompositions, in place of its nodes."""
    new: dict[Any, Any] = dict(zip(graph.inputs, graph.inputs))

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        now = calls.get(node, node)
        new[node] = _replaced(now, tuple([new.get(i, i) for i in now.inputs]))
        return new[node]  # type: ignore[no-any-return]

    return graph.rebuilt(replace)


def _replaced(node: Node, inputs: tuple[Any, ...]) -> Node:
    if node.name in DECOMPOSITIONS:
        recorder = _Recorder(node)
        with switch(interpreter=recorder, grad=False):
            result = DECOMPOSITIONS[node.name](node, *map(recorder.tensor, inputs))
        if isinstance(result, list):
            return remade(node, tuple([tensor._data.node for tensor in result]))
        if result is not None:
            return result._data.node  # type: ignore[no-any-return]
    return remade(node, inputs)


class _Recorder(Tracer):
    """Records the nodes of a decomposition, with the line and the scope of the node that they replace."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node

    def noted(self, op: Any, inputs: tuple[Any, ...], attrs: Any, device: Any, result: Any = None) -> Node:
        return node_like(op, inputs, attrs, self.node)

    def tensor(self, given: Any) -> Tensor:
        """An input of the node as a tensor, on the usual device: a file has no devices."""
        if not isinstance(given, Node):
            return full((), given, number_type(self.node))
        return wrap(Pending(self, given), as_device(None))


def number_type(node: Node) -> Any:
    """The dtype that the Python numbers among a node's inputs take."""
    assert node.op is not None
    return node.op.common_dtype(node.inputs) or (dtypes.bool if node.dtype.__class__ is tuple else node.dtype)


# The dtypes of operators ---------------------------------------------------------------------------------------------

LOGICAL = {"add": P.bitwise_or, "multiply": P.bitwise_and, "maximum": P.bitwise_or, "minimum": P.bitwise_and}


@decomposes(*LOGICAL)
def _logical(node: Node, x: Tensor, y: Tensor) -> Any:
    return LOGICAL[node.name].apply(x, y) if node.dtype.kind == "b" else None


@decomposes("less", "less_equal", "matmul", "max", "min", "argmax", "argmin", "sort", "argsort")
def _of_numbers(node: Node, *xs: Tensor) -> Any:
    """ONNX computes these only of numbers, and matrix products only of large ones."""
    dtype = xs[-1].dtype
    if dtype.kind == "b" or (node.name == "matmul" and dtype.itemsize < 4 and dtype.kind != "f"):
        return P[node.name].apply(*[x.astype(dtypes.int32) for x in xs], **node.attrs).astype(node.dtype)
    return None


@decomposes("sum", "prod", "cumulative_sum")
def _total(node: Node, x: Tensor) -> Any:
    """In ONNX the result has the dtype of the elements."""
    return [x.astype(node.dtype)]


@decomposes("floor", "round")
def _whole(node: Node, x: Tensor) -> Any:
    return None if x.dtype.kind == "f" else x


@decomposes("negative")
def _negative(node: Node, x: Tensor) -> Any:
    return 0 - x if x.dtype.kind == "u" else None


# Arithmetic ----------------------------------------------------------------------------------------------------------


@decomposes("expm1")
def _expm1(node: Node, x: Tensor) -> Tensor:
    """exp(x) - 1 = tanh(x / 2) · (exp(x) + 1), without cancellation."""
    return tanh(x * 0.5) * (exp(x) + 1)


@decomposes("log1p")
def _log1p(node: Node, x: Tensor) -> Tensor:
    """With u = 1 + x as rounded: log(u) · x / (u - 1), where two errors cancel; x where u is 1; ∞ where u is ∞."""
    u = x + 1
    near = log(u)
    return where(u == 1, x, where(u == math.inf, near, near * (x / (u - 1))))


@decomposes("remainder")
def _remainder(node: Node, x: Tensor, y: Tensor) -> Any:
    """For floats, ONNX has the remainder of two numbers that are not negative; the result has the sign of y."""
    if node.dtype.kind != "f":
        return None
    rest = P.remainder.apply(abs(x), abs(y))
    rest = where(x < 0, -rest, rest)
    return where(((x < 0) ^ (y < 0)) & (rest != 0), rest + y, rest)


@decomposes("floor_divide")
def _floor_divide(node: Node, x: Tensor, y: Tensor) -> Any:
    """x without its remainder is a multiple of y, except for rounding.  ONNX divides integers without rounding down."""
    if node.dtype.kind != "f":
        return P.floor_divide.apply(x - x % y, y)
    rest = _remainder(node, x, y)
    return where(y == 0, x / y, where(isinf(rest), -1, round((x - rest) / y)))


@decomposes("atan2")
def _atan2(node: Node, y: Tensor, x: Tensor) -> Tensor:
    """The angle of y / x, turned by half a circle where x is negative; 1 / x shows the sign of -0.0."""
    left, below = [(v < 0) | ((v == 0) & (1 / v < 0)) for v in (x, y)]
    slope = where((x == 0) & (y == 0), y, y / x)
    slope = where(isinf(x) & isinf(y), where(left ^ below, -1.0, 1.0), slope)
    angle = P.atan2.apply(slope, 1.0)
    return where(left, where(below, angle - math.pi, angle + math.pi), angle)


@decomposes("bitwise_left_shift", "bitwise_right_shift")
def _shift(node: Node, x: Tensor, y: Tensor) -> Any:
    """ONNX shifts only unsigned integers; others are multiplied, or divided and rounded down."""
    if node.dtype.kind == "u":
        return None
    power = P.pow.apply(2, y.astype(dtypes.int64)).astype(node.dtype)
    return x * power if node.name == "bitwise_left_shift" else _floor_divide(node, x, power)


as_node("gelu")


@decomposes("gelu")
def _gelu(node: Node, x: Tensor) -> Tensor:
    """ONNX has gelu from opset 20 on.  Before, onnxruntime recognises these nodes."""
    if node.attrs["approximate"] == "none":
        return x * (erf(x / 2**0.5) + 1) * 0.5
    bent = tanh((x + P.pow.apply(x, 3) * 0.044715) * (2 / math.pi) ** 0.5)
    return x * 0.5 * (bent + 1)


# Moving, picking and placing -----------------------------------------------------------------------------------------


@decomposes("permute_dims")
def _permute_dims(node: Node, x: Tensor) -> Any:
    return None if x.ndim else x  # ONNX has no empty permutation


@decomposes("gather")
def _gather(node: Node, x: Tensor, *indices: Tensor) -> Any:
    return [x, *_of_one_shape(indices)]


def _of_one_shape(indices: Sequence[Tensor]) -> list[Tensor]:
    shape = np.broadcast_shapes(*[i.shape for i in indices])
    return [broadcast_to(i.astype(dtypes.int64), shape) for i in indices]


@decomposes("scatter_add", "scatter_max")
def _scatter(node: Node, base: Tensor, value: Tensor, *indices: Tensor) -> Any:
    places = _of_one_shape(indices)
    return [base, _fitted(value, places[0].shape + base.shape[len(places) :]), *places]


def _fitted(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A value broadcast to a shape.  It may have more dimensions, of size 1, in front."""
    extra = value.ndim - len(shape)
    return broadcast_to(reshape(value, value.shape[extra:]) if extra > 0 else value, shape)


@decomposes("put")
def _put(node: Node, base: Tensor, value: Tensor, *indices: Tensor) -> Any:
    return _assigned(base, value, node.attrs["chain"], indices)


def _assigned(base: Tensor, value: Tensor, chain: Any, indices: Sequence[Tensor] = ()) -> Any:
    """Views and indices applied to the positions of all elements give the positions to write."""
    places = reshape(arange(base.size), base.shape)
    for op, attrs in chain:
        places = op.apply(places, **attrs)
    if indices:
        places = P.gather.apply(places, *_of_one_shape(indices))
    flat, value, places = [reshape(each, (-1,)) for each in (base, _fitted(value, places.shape), places)]
    return reshape(P.put.apply(flat, value, places, chain=()), base.shape)


@decomposes("place")
def _place(node: Node, x: Tensor) -> Any:
    """Zeros around a tensor; with a step, its elements are put among zeros."""
    shape, index = node.shape, in_full(node.attrs["index"], len(node.shape))
    if not all(isinstance(i, slice) and i.step in (None, 1) for i in index):
        return _assigned(zeros(shape, x.dtype), x, ((P.slice, {"index": node.attrs["index"]}),))
    ends = tuple([slice(*i.indices(extent)) for i, extent in zip(index, shape)])
    number = x.astype(dtypes.int32) if x.dtype.kind == "b" else x
    return P.place.apply(number, shape=shape, index=ends).astype(x.dtype)


def in_full(index: Sequence[Any], ndim: int) -> list[Any]:
    """An index with as many slices in place of `...`, or behind it, as there are dimensions left."""
    rest = [slice(None)] * (ndim - len([i for i in index if i is not None and i is not Ellipsis]))
    place = index.index(...) if ... in index else len(index)
    return [*index[:place], *rest, *index[place + 1 :]]


@decomposes("windows")
def _windows(node: Node, x: Tensor) -> Any:
    return _slid(x, node.attrs["size"], node.attrs["axis"], node.attrs)


def _slid(x: Tensor, sizes: Sequence[int], axes: Sequence[int], attrs: Any) -> Tensor:
    """Windows along one axis after the other; the axis of their elements moves to the end."""
    for a, size, stride, dilation in zip(axes, sizes, attrs["stride"], attrs["dilation"]):
        starts = arange(0, x.shape[a] - (size - 1) * dilation, stride)
        x = P.gather.apply(moveaxis(x, a, 0), expand_dims(starts, 1) + arange(0, size * dilation, dilation))
        x = moveaxis(x, (0, 1), (a, -1))
    return x


@decomposes("overlap_add")
def _overlap_add(node: Node, x: Tensor) -> Any:
    """Move the dimensions that windows slide along to the front, then add each element at its position."""
    slid, ndim = node.attrs["axis"], len(node.shape)
    order = (*slid, *[a for a in range(ndim) if a not in slid])
    shape = [node.shape[a] for a in order]
    size = math.prod(shape[: len(slid)])
    places = _slid(reshape(arange(size), shape[: len(slid)]), x.shape[ndim:], range(len(slid)), node.attrs)
    x = permute_dims(x, (*slid, *range(ndim, x.ndim), *order[len(slid) :]))
    out = P.scatter_add.apply(zeros((size, *shape[len(slid) :]), x.dtype), x, places)
    return permute_dims(reshape(out, shape), inverse(order))
