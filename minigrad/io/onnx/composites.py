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
from ...ops.declare import normal_axes
from ...ops.windows import for_each
from .writer import Writer

Attributes = dict[str, Any]


class Call(NamedTuple):
    """The call that computes a node: the function's name, the inputs, and the other arguments."""

    name: str
    inputs: Sequence[Node]
    attributes: Attributes

    def sizes(self, what: str) -> tuple[int, ...]:
        """An argument that is a number for each dimension of an image, or one for all of them."""
        return for_each(self.name, what, self.attributes[what], len(self.inputs[0].shape) - 2, least=0)


class Written(NamedTuple):
    """How calls of a function are written, which of its parameters are tensors, and which calls ONNX covers."""

    write: Callable[..., str]  # given the writer, the node, the call, and the names of its inputs
    needed: list[str]
    optional: list[str]
    covers: Callable[[Call], bool]


CALLS: dict[str, Written] = {}


def writes_call(
    *functions: str, needed: str = "x", optional: str = "", covers: Callable[[Call], bool] = lambda call: True
) -> Callable[[Any], Any]:
    """Put a function into the table that writes the calls of these composed functions."""

    def put(write: Any) -> Any:
        CALLS.update(dict.fromkeys(functions, Written(write, needed.split(), optional.split(), covers)))
        return write

    return put


def calls_in(graphs: Sequence[Graph]) -> dict[Node, Call]:
    """The nodes of the first graph that one operator computes; its arguments must be the same in all graphs."""
    first, *others = [
        {i: call for i, node in enumerate(graph.nodes) if (call := _call_of(node)) is not None} for graph in graphs
    ]
    return {graphs[0].nodes[i]: call for i, call in first.items() if all(_alike(call, o.get(i)) for o in others)}


def _alike(a: Call, b: Call | None) -> bool:
    return b is not None and a.name == b.name and comparable(a.attributes) == comparable(b.attributes)


def _call_of(node: Node) -> Call | None:
    """The outermost call that ONNX covers and whose result is this node."""
    for composite in () if node.composite is None else node.composite.path:
        operator = CALLS.get(composite.name)
        if operator is not None and _is_result(node, composite):
            call = Call(composite.name, _inputs(operator, composite), composite.attributes)
            if call.inputs and _in_one_dtype(node, composite) and operator.covers(call):
                return call
    return None


def _is_result(node: Node, composite: Composite) -> bool:
    """Whether a node is the result of a call, or has all its results as parts."""
    parts = [out for out in composite.outputs if out is not None and out.name == "project" and out.inputs[0] is node]
    return composite.outputs == (node,) or 0 < len(parts) == len(composite.outputs)


def _inputs(operator: Written, composite: Composite) -> list[Node]:
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


# Of several operators --------------------------------------------------------------------------------------------


@writes_call("linear", needed="x weight", optional="bias")
def _linear(w: Writer, node: Node, call: Call, x: str, weight: str, *bias: str) -> str:
    if len(node.shape) == 2:
        return w.add("Gemm", x, weight, *bias, transB=1)
    product = w.add("MatMul", x, w.add("Transpose", weight, perm=[1, 0]))
    return w.add("Add", product, *bias) if bias else product


@writes_call("mean")
def _mean(w: Writer, node: Node, call: Call, x: str) -> str:
    axes = normal_axes("mean", call.attributes["axis"], call.inputs[0].ndim)
    return w.add("ReduceMean", x, w.vector(axes), keepdims=int(call.attributes["keepdims"]))


# Activations ---------------------------------------------------------------------------------------------------------


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
