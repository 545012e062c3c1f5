"""Functions that are one operation in ONNX and several here: found in a graph, and written as what they are.

A row of the table guesses from the last node of a pattern which function it may be the end of, with which inputs and
options.  Then the function is traced with inputs of these shapes, and the guess holds if the same nodes come out.  So a
row can be wrong only in finding too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compile.jitted import trace
from ...compile.nodes.graph import Graph
from ...compile.rewriting.common import comparable
from ...compile.rewriting.match import ways
from ...compile.user_kernels.pattern import parts_of
from ...core.emit import emit
from ...core.mode import Mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor, wrap
from ...ops import convolution, functional, normalization, pooling, reduce
from ...support.errors import MinigradError
from .writer import Writer

Options = dict[str, Any]
Guess = tuple[Sequence[Node], Options]


class Row(NamedTuple):
    """A function of ours, the primitives that its last node may be, how to guess its inputs, how to write it."""

    function: Callable[..., Any]
    ends: tuple[str, ...]
    guess: Callable[[Node], Iterator[Guess]]
    write: Callable[..., str]


class Found(NamedTuple):
    """A node that is the result of a function of these inputs with these options."""

    row: Row
    inputs: Sequence[Node]
    options: Options


ROWS: list[Row] = []  # the larger ones first: a convolution with its bias before one without


def row(function: Callable[..., Any], *ends: str) -> Callable[[Any], Any]:
    """Put a class into the table: `guess` and `write` are its functions."""

    def put(both: Any) -> Any:
        ROWS.append(Row(function, ends, both.guess, both.write))
        return both

    return put


def find(graph: Graph) -> dict[Node, Found]:
    """The nodes of a graph that are the results of functions in the table; those within others are left out."""
    found: dict[Node, Found] = {}
    needed = set(graph.outputs)
    traces: dict[Any, Any] = {}
    for node in reversed(graph.nodes):
        if node not in needed or node.op is None:
            continue
        match = _found(node, traces)
        if match is not None:
            found[node] = match
        needed.update([i for i in (node.inputs if match is None else match.inputs) if isinstance(i, Node)])
    return found


def _found(node: Node, traces: dict[Any, Any]) -> Found | None:
    for each in ROWS:
        if node.name in each.ends:
            try:
                guesses = list(each.guess(node))
            except (AttributeError, IndexError, ValueError, TypeError, KeyError):
                continue  # something else than it looked like
            for inputs, options in guesses:
                if _is_result(each, inputs, options, node, traces):
                    return Found(each, inputs, options)
    return None


def _is_result(each: Row, inputs: Sequence[Node], options: Options, node: Node, traces: dict[Any, Any]) -> bool:
    """Whether the function, of inputs like these, is computed by the very nodes that lead to this one."""
    if not all(isinstance(i, Node) for i in inputs):
        return False
    kinds = tuple([(i.shape, i.dtype, i.device) for i in inputs])
    key = each.function, kinds, comparable(options)
    if key not in traces:
        traces[key] = _traced(each.function, kinds, options)
    pattern = traces[key]
    if pattern is None or len(pattern.inputs) != len(inputs):
        return False
    parts = parts_of(pattern)
    bound = {parts[i]: x for i, x in zip(pattern.inputs, inputs)}
    return next(ways(parts[pattern.outputs[0].inputs[0]], node, bound), None) is not None


def _traced(function: Callable[..., Any], kinds: Sequence[Any], options: Options) -> Graph | None:
    def copied(*tensors: Tensor) -> Any:  # so that the result is not a view, which would be left out
        result = function(*tensors, **options)
        return emit(P.astype, result, dtype=result.dtype)

    tensors = [wrap(np.broadcast_to(np.zeros((), dtype), shape), device) for shape, dtype, device in kinds]
    with switch(Mode(grad=False)):
        try:
            return trace(copied, *tensors)
        except MinigradError:
            return None


def back(node: Any, *names: str) -> Any:
    """The node, if it has the first of these names; or its first input, if that has the second; and so on."""
    for i, name in enumerate(names):
        node = node.inputs[0] if i else node
        if node.name != name:
            raise ValueError(name)
    return node


def unshaped(node: Any) -> Any:
    """What a node is before it is reshaped."""
    return node.inputs[0] if node.name == "reshape" else node


# Convolutions and pooling --------------------------------------------------------------------------------------------

Pairs = tuple[tuple[int, int], ...]


def _pads(place: Node, count: int) -> Pairs:
    """How many zeros a `place` puts before and behind in the last `count` dimensions."""
    index = [i for i in place.attrs["index"] if i is not Ellipsis][-count:]
    return tuple([(i.start, extent - i.stop) for i, extent in zip(index, place.shape[-count:])])


def _onnx_pads(pads: Pairs) -> list[int]:
    return [p[0] for p in pads] + [p[1] for p in pads]


def _convolved(x: Tensor, weight: Tensor, *bias: Tensor, pads: Pairs, **options: Any) -> Tensor:
    function: Any = convolution.conv1d if len(pads) == 1 else convolution.conv2d
    return function(convolution.padded(x, pads), weight, *bias, **options)


@row(_convolved, "add", "permute_dims")
class _Conv:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        bias = []
        if node.name == "add":
            node, bias = node.inputs[0], [back(node.inputs[1], "reshape").inputs[0]]
        product = back(node, "permute_dims", "reshape", "matmul")
        weight = back(product.inputs[0], "reshape").inputs[0]
        windows = back(product.inputs[1], "reshape", "permute_dims", "windows")
        count = len(windows.attrs["axis"])
        options = {
            "stride": windows.attrs["stride"], "dilation": windows.attrs["dilation"],
            "groups": product.inputs[0].shape[0] if len(product.shape) == 3 else 1,
        }
        x = windows.inputs[0]
        if x.name == "place":
            yield (x.inputs[0], weight, *bias), options | {"pads": _pads(x, count)}
        yield (x, weight, *bias), options | {"pads": ((0, 0),) * count}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], pads: Pairs, stride: Any, dilation: Any, groups: int) -> str:
        return w.add("Conv", *names, pads=_onnx_pads(pads), strides=stride, dilations=dilation, group=groups)


@row(convolution.conv_transpose2d, "add", "slice", "place", "overlap_add")
class _ConvTranspose:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        bias: list[Node] = []
        cut: tuple[int, ...] = (0, 0)
        extra: tuple[int, ...] = (0, 0)
        if node.name == "add":
            node, bias = node.inputs[0], [back(node.inputs[1], "reshape").inputs[0]]
        if node.name == "slice":
            cut, node = tuple([i.start for i in node.attrs["index"][-2:]]), node.inputs[0]
        if node.name == "place":
            extra, node = tuple([behind for _, behind in _pads(node, 2)]), node.inputs[0]
        product = back(node, "overlap_add", "permute_dims", "reshape", "matmul")
        rows = back(product.inputs[0], "permute_dims", "reshape")
        x = back(product.inputs[1], "reshape", "permute_dims").inputs[0]
        options = {
            "stride": node.attrs["stride"], "dilation": node.attrs["dilation"], "padding": cut,
            "output_padding": extra, "groups": rows.shape[0],
        }
        yield (x, rows.inputs[0], *bias), options

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], stride: Any, dilation: Any, padding: Any, output_padding: Any,
              groups: int) -> str:
        return w.add("ConvTranspose", *names, pads=[*padding, *padding], strides=stride, dilations=dilation,
                     output_padding=output_padding, group=groups)


def _max_pool(x: Tensor, size: Any, **options: Any) -> Tensor:
    return (pooling.max_pool1d if len(size) == 1 else pooling.max_pool2d)(x, size, **options)


def _avg_pool(x: Tensor, size: Any, **options: Any) -> Tensor:
    return (pooling.avg_pool1d if len(size) == 1 else pooling.avg_pool2d)(x, size, **options)


def _pooled(reduction: Node) -> Iterator[Guess]:
    """The guesses for windows that are reduced; images with examples and channels only, as ONNX has them."""
    parts, count = reduction.inputs[0], len(reduction.attrs["axis"])
    if parts.name == "windows":
        size, stride, dilation = (tuple(parts.attrs[key]) for key in ("size", "stride", "dilation"))
    else:
        size = stride = tuple([back(parts, "reshape").shape[a] for a in reduction.attrs["axis"]])
        dilation = (1,) * count
    options = {"size": size, "stride": stride, "dilation": dilation, "padding": (0,) * count}
    source = parts.inputs[0]
    for x in (*source.inputs[:2], source):  # before it was padded with -inf, or cut off where no window fits; as it is
        if isinstance(x, Node) and len(x.shape) == count + 2:
            if x.name == "place":
                yield (x.inputs[0],), options | {"padding": tuple([p for p, _ in _pads(x, count)])}
            yield (x,), options


@row(_max_pool, "max")
class _MaxPool:
    guess = staticmethod(_pooled)

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], size: Any, stride: Any, dilation: Any, padding: Any) -> str:
        return w.add("MaxPool", *names, kernel_shape=size, strides=stride, dilations=dilation,
                     pads=[*padding, *padding])


@row(_avg_pool, "divide")
class _AveragePool:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        for inputs, options in _pooled(back(node, "divide", "sum")):
            if set(options["dilation"]) == {1}:
                yield inputs, {key: value for key, value in options.items() if key != "dilation"}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], size: Any, stride: Any, padding: Any) -> str:
        return w.add("AveragePool", *names, kernel_shape=size, strides=stride, pads=[*padding, *padding],
                     count_include_pad=1)


# Layers and normalisation --------------------------------------------------------------------------------------------


@row(functional.linear, "reshape", "add", "matmul")
class _Linear:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        wide = node.name == "reshape"
        inner = node.inputs[0] if wide else node
        bias = [inner.inputs[1]] if inner.name == "add" else []
        product = back(inner.inputs[0] if bias else inner, "matmul")
        x = back(product.inputs[0], "reshape").inputs[0] if wide else product.inputs[0]
        yield (x, back(product.inputs[1], "permute_dims").inputs[0], *bias), {}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str]) -> str:
        x, weight, *bias = names
        if len(node.shape) == 2:
            return w.add("Gemm", *names, transB=1)
        product = w.add("MatMul", x, w.add("Transpose", weight, perm=[1, 0]))
        return w.add("Add", product, *bias) if bias else product


@row(normalization.batch_norm, "add")
class _BatchNorm:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        scaled = back(node, "add", "multiply")
        centred = back(scaled, "multiply", "multiply")
        variance = back(unshaped(centred.inputs[1]), "pow", "add")
        shifted = back(centred, "multiply", "subtract")
        vectors = [unshaped(v) for v in (shifted.inputs[1], variance.inputs[0], scaled.inputs[1], node.inputs[1])]
        yield (shifted.inputs[0], *vectors), {"eps": variance.inputs[1]}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], eps: float) -> str:
        x, mean, variance, weight, bias = names
        return w.add("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)


@row(functional.layer_norm, "add", "multiply")
class _LayerNorm:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        bias = [node.inputs[1]] if node.name == "add" else []
        scaled = node.inputs[0] if bias else node
        root = back(back(scaled, "multiply", "multiply").inputs[1], "pow", "add")
        x = back(scaled, "multiply", "multiply", "subtract").inputs[0]
        yield (x, scaled.inputs[1], *bias), {"eps": root.inputs[1]}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], eps: float) -> str:
        return w.add("LayerNormalization", *names, axis=-1, epsilon=eps)


@row(reduce.mean, "divide")
class _Mean:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        total = back(node, "divide", "sum")
        yield (total.inputs[0],), {key: total.attrs[key] for key in ("axis", "keepdims")}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], axis: Any, keepdims: bool) -> str:
        return w.add("ReduceMean", *names, w.vector(axis), keepdims=int(keepdims))


# Activations ---------------------------------------------------------------------------------------------------------


@row(functional.softmax, "multiply")
class _Softmax:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield from _axis_of(back(node, "multiply", "exp", "subtract"))

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], axis: int) -> str:
        return w.add("Softmax", *names, axis=axis)


@row(functional.log_softmax, "subtract")
class _LogSoftmax:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield from _axis_of(back(node, "subtract", "subtract"))

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], axis: int) -> str:
        return w.add("LogSoftmax", *names, axis=axis)


def _axis_of(shifted: Node) -> Iterator[Guess]:
    yield (shifted.inputs[0],), {"axis": back(shifted.inputs[1], "max").attrs["axis"][0]}


@row(functional.gelu, "multiply")
class _Gelu:
    """ONNX has it from opset 20 on: before, onnxruntime knows it by these nodes."""

    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        bent = back(node.inputs[1], "add", "multiply").inputs[0]
        yield (node.inputs[0],), {"approximate": "tanh" if bent.name == "tanh" else "none"}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], approximate: str) -> str:
        (x,) = names
        half, one = w.number(0.5, node.dtype), w.number(1, node.dtype)
        if approximate == "none":
            bent = w.add("Erf", w.add("Div", x, w.number(2**0.5, node.dtype)))
            return w.add("Mul", w.add("Mul", x, w.add("Add", bent, one)), half)
        cube = w.add("Mul", w.add("Pow", x, w.number(3, node.dtype)), w.number(0.044715, node.dtype))
        bent = w.add("Tanh", w.add("Mul", w.add("Add", x, cube), w.number((2 / np.pi) ** 0.5, node.dtype)))
        return w.add("Mul", w.add("Mul", x, half), w.add("Add", bent, one))


@row(functional.softplus, "add")
class _Softplus:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield (back(node.inputs[0], "log1p", "add", "exp", "subtract").inputs[0],), {}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str]) -> str:
        return w.add("Softplus", *names)


@row(functional.silu, "multiply")
class _Silu:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield (back(node.inputs[1], "sigmoid").inputs[0],), {}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str]) -> str:
        return w.add("Mul", *names, w.add("Sigmoid", *names))


@row(functional.relu, "where")
class _Relu:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield (node.inputs[2],), {}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str]) -> str:
        return w.add("Relu", *names)


@row(functional.leaky_relu, "where")
class _LeakyRelu:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        yield (node.inputs[2],), {"slope": back(node.inputs[1], "multiply").inputs[1]}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], slope: float) -> str:
        return w.add("LeakyRelu", *names, alpha=slope)


@row(functional.elu, "where")
class _Elu:
    @staticmethod
    def guess(node: Node) -> Iterator[Guess]:
        bent = node.inputs[1]
        yield (node.inputs[2],), {"alpha": bent.inputs[1] if bent.name == "multiply" else 1.0}

    @staticmethod
    def write(w: Writer, node: Node, names: list[str], alpha: float) -> str:
        return w.add("Elu", *names, alpha=alpha)
