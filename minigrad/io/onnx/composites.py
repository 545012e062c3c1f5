"""Calls of composed functions that ONNX has as one operator: found by the marks on their nodes, and written as that.

While a function is traced, composed functions mark the nodes that they record (`ops/composite.py`).  A call that ONNX's
operator does not cover, for its dtypes, its arguments or its shapes, is written node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compile.nodes.graph import Graph
from ...compile.rewriting.common import comparable
from ...core.node import Node
from ...ops.composite import Composite
from ...ops.convolution import zeros_around
from ...ops.declare import normal_axes, normal_axis
from ...ops.windows import for_each
from .writer import Writer, fixed

Attributes = dict[str, Any]


class Call(NamedTuple):
    """The call that computes a node: the function's name, the inputs, and the other arguments."""

    name: str
    inputs: Sequence[Node]
    attributes: Attributes

    def sizes(self, what: str) -> tuple[int, ...]:
        """An argument that is a number for each dimension of an image, or one for all of them."""
        return for_each(self.name, what, self.attributes[what], len(self.inputs[0].shape) - 2, least=0)


class Operator(NamedTuple):
    """How calls of a function are written, which of its parameters are tensors, and which calls ONNX covers."""

    write: Callable[..., str]  # given the writer, the node, the call, and the names of its inputs
    needed: list[str]
    optional: list[str]
    covers: Callable[[Call], bool]


OPERATORS: dict[str, Operator] = {}


def writes_call(
    *functions: str, needed: str = "x", optional: str = "", covers: Callable[[Call], bool] = lambda call: True
) -> Callable[[Any], Any]:
    """Put a function into the table that writes the calls of these composed functions."""

    def put(write: Any) -> Any:
        OPERATORS.update(dict.fromkeys(functions, Operator(write, needed.split(), optional.split(), covers)))
        return write

    return put


def write_call(w: Writer, node: Node, call: Call, names: Sequence[str]) -> str:
    """Write the operator of a call; the name of its result."""
    return OPERATORS[call.name].write(w, node, call, *names)


def calls_in(graphs: Sequence[Graph]) -> dict[Node, Call]:
    """The nodes of the first graph that one operator computes; its arguments have to be the same in all graphs."""
    first, *others = [
        {i: call for i, node in enumerate(graph.nodes) if (call := _call_of(node)) is not None} for graph in graphs
    ]
    return {graphs[0].nodes[i]: call for i, call in first.items() if all(_alike(call, o.get(i)) for o in others)}


def _alike(a: Call, b: Call | None) -> bool:
    return b is not None and a.name == b.name and comparable(a.attributes) == comparable(b.attributes)


def _call_of(node: Node) -> Call | None:
    """The outermost call whose result this node is, of those that ONNX covers."""
    for composite in () if node.composite is None else node.composite.path:
        operator = OPERATORS.get(composite.name)
        if operator is not None and _is_result(node, composite):
            call = Call(composite.name, _inputs(operator, composite), composite.attributes)
            if call.inputs and _in_one_dtype(node, composite) and operator.covers(call):
                return call
    return None


def _is_result(node: Node, composite: Composite) -> bool:
    """Whether a node is the result of a call, or has all its results as parts."""
    parts = [out for out in composite.outputs if out is not None and out.name == "project" and out.inputs[0] is node]
    return composite.outputs == (node,) or 0 < len(parts) == len(composite.outputs)


def _inputs(operator: Operator, composite: Composite) -> list[Node]:
    """The inputs in the operator's order; none if one is missing, is not a tensor, or if another argument is one."""
    if any(isinstance(value, np.ndarray) for value in composite.attributes.values()):
        return []
    wanted = [name for name in operator.optional if composite.attributes.get(name, composite) is not None]
    names, given = [*operator.needed, *wanted], composite.inputs
    nodes = [node for name in names if (node := given.get(name)) is not None]
    return nodes if len(nodes) == len(names) == len(given) else []


def _in_one_dtype(node: Node, composite: Composite) -> bool:
    """Whether the nodes are still those of the call, and all compute in the dtype of its inputs, as operators do."""
    members, inputs = composite.members(), composite.inputs.values()
    dtype, *others = {*node.dtype} if isinstance(node.dtype, tuple) else {node.dtype}
    same = not others and dtype.kind == "f" and all(i is not None and i.dtype == dtype for i in inputs)
    inner = [n for m in members for v in m.attrs.values() if isinstance(getattr(v, "graph", None), Graph)
             for n in v.graph.nodes]
    return same and bool(members) and not any(map(_casts, (*members, *inner)))


def _casts(node: Node) -> bool:
    return node.name == "astype" and node.inputs[0].dtype != node.dtype  # otherwise it is a copy


# Convolutions and pooling --------------------------------------------------------------------------------------------


def _has_examples(call: Call) -> bool:
    """Whether images have a dimension for the examples, which they need in ONNX."""
    return len(call.inputs[0].shape) == int(call.name[-2]) + 2  # conv2d: examples, channels, height, width


@writes_call("conv1d", "conv2d", needed="x weight", optional="bias", covers=_has_examples)
def _conv(w: Writer, node: Node, call: Call, *names: str) -> str:
    steps, gaps = call.sizes("stride"), call.sizes("dilation")
    kernel = fixed(call.inputs[1].shape[2:], "kernel's size", node)
    before, behind = zip(*zeros_around(call.name, call.attributes["padding"], kernel, steps, gaps))
    return w.add("Conv", *names, pads=[*before, *behind], strides=steps, dilations=gaps,
                 group=call.attributes["groups"])


@writes_call("conv_transpose2d", needed="x weight", optional="bias", covers=_has_examples)
def _conv_transpose(w: Writer, node: Node, call: Call, *names: str) -> str:
    return w.add("ConvTranspose", *names, pads=call.sizes("padding") * 2, strides=call.sizes("stride"),
                 dilations=call.sizes("dilation"), output_padding=call.sizes("output_padding"),
                 group=call.attributes["groups"])


@writes_call("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", covers=_has_examples)
def _pool(w: Writer, node: Node, call: Call, x: str) -> str:
    size = call.sizes("size")
    steps = size if call.attributes["stride"] is None else call.sizes("stride")
    sizes: Attributes = {"kernel_shape": size, "strides": steps, "pads": call.sizes("padding") * 2}
    if call.name.startswith("max"):
        return w.add("MaxPool", x, dilations=call.sizes("dilation"), **sizes)
    return w.add("AveragePool", x, count_include_pad=1, **sizes)


# Layers and normalisation --------------------------------------------------------------------------------------------


@writes_call("linear", needed="x weight", optional="bias")
def _linear(w: Writer, node: Node, call: Call, x: str, weight: str, *bias: str) -> str:
    if len(node.shape) == 2:
        return w.add("Gemm", x, weight, *bias, transB=1)
    product = w.add("MatMul", x, w.add("Transpose", weight, perm=[1, 0]))
    return w.add("Add", product, *bias) if bias else product


@writes_call(
    "batch_norm", needed="x running_mean running_var weight bias", covers=lambda call: not call.attributes["training"]
)
def _batch_norm(w: Writer, node: Node, call: Call, x: str, mean: str, variance: str, *weight_and_bias: str) -> str:
    return w.add("BatchNormalization", x, *weight_and_bias, mean, variance, epsilon=float(call.attributes["eps"]))


@writes_call(
    "layer_norm", needed="x weight", optional="bias",
    covers=lambda call: normal_axis(call.name, call.attributes["axis"], call.inputs[0].ndim) == call.inputs[0].ndim - 1,
)
def _layer_norm(w: Writer, node: Node, call: Call, *names: str) -> str:
    return w.add("LayerNormalization", *names, axis=-1, epsilon=float(call.attributes["eps"]))


@writes_call("mean")
def _mean(w: Writer, node: Node, call: Call, x: str) -> str:
    axes = normal_axes("mean", call.attributes["axis"], call.inputs[0].ndim)
    return w.add("ReduceMean", x, w.vector(axes), keepdims=int(call.attributes["keepdims"]))


# Activations ---------------------------------------------------------------------------------------------------------


def _same(op_type: str, number: str = "", theirs: str = "") -> Callable[..., str]:
    """The function itself, whose argument `number`, if it has one, is called `theirs` in ONNX."""

    def write(w: Writer, node: Node, call: Call, x: str) -> str:
        named: Attributes = {theirs: float(call.attributes[number])} if number else {}
        return w.add(op_type, x, **named)

    return write


writes_call("relu")(_same("Relu"))
writes_call("softplus")(_same("Softplus"))
writes_call("leaky_relu")(_same("LeakyRelu", "slope", "alpha"))
writes_call("elu")(_same("Elu", "alpha", "alpha"))


@writes_call("softmax", "log_softmax")
def _softmax(w: Writer, node: Node, call: Call, x: str) -> str:
    axis = normal_axis(call.name, call.attributes["axis"], node.ndim)
    return w.add("Softmax" if call.name == "softmax" else "LogSoftmax", x, axis=axis)


@writes_call("silu")
def _silu(w: Writer, node: Node, call: Call, x: str) -> str:
    return w.add("Mul", x, w.add("Sigmoid", x))


@writes_call("gelu")
def _gelu(w: Writer, node: Node, call: Call, x: str) -> str:
    """ONNX has gelu from opset 20 on.  Before, onnxruntime recognises these nodes."""
    half, one = w.number(0.5, node.dtype), w.number(1, node.dtype)
    if call.attributes["approximate"] == "none":
        bent = w.add("Erf", w.add("Div", x, w.number(2**0.5, node.dtype)))
        return w.add("Mul", w.add("Mul", x, w.add("Add", bent, one)), half)
    cube = w.add("Mul", w.add("Pow", x, w.number(3, node.dtype)), w.number(0.044715, node.dtype))
    bent = w.add("Tanh", w.add("Mul", w.add("Add", x, cube), w.number((2 / np.pi) ** 0.5, node.dtype)))
    return w.add("Mul", w.add("Mul", x, half), w.add("Add", bent, one))
