"""Calls of composed functions that ONNX has as one operator: the marks on their nodes show them, and each is one node.

While a function is traced, composed functions mark the nodes that they record (`ops/composite.py`).  A call that ONNX's
operator does not cover, for its dtypes, its arguments or its shapes, is written node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ...compile.nodes.graph import Graph
from ...compile.rewriting.common import comparable
from ...core.node import Node
from ...core.primitive import Primitive
from ...ops.composite import Composite


class Composed(NamedTuple):
    """A composed function as an operation, which of its parameters are tensors, and which calls ONNX covers."""

    op: Primitive
    needed: list[str]
    optional: list[str]
    covers: Callable[[Node], bool]


CALLS: dict[str, Composed] = {}


def as_node(
    *functions: str, needed: str = "x", optional: str = "", covers: Callable[[Node], bool] = lambda call: True
) -> None:
    """Declare that a call of one of these composed functions is one node: its tensors are inputs, the rest attributes.

    `needed` and `optional` are the parameters that are tensors, in the order of ONNX's inputs.
    """
    for name in functions:
        op = Primitive(name, "index", ("*xs",), lambda x, *others, **attrs: (x.shape, x.dtype))
        CALLS[name] = Composed(op, needed.split(), optional.split(), covers)


def calls_in(graphs: Sequence[Graph]) -> list[dict[Node, Node]]:
    """For each graph the results of calls, each with a node for the call.  The arguments are equal in all graphs."""
    first, *others = found = [
        {i: call for i, node in enumerate(graph.nodes) if (call := _call_of(node)) is not None} for graph in graphs
    ]
    equal = [i for i, call in first.items() if all(_alike(call, calls.get(i)) for calls in others)]
    return [{graph.nodes[i]: calls[i] for i in equal} for graph, calls in zip(graphs, found)]


def _alike(a: Node, b: Node | None) -> bool:
    return b is not None and a.name == b.name and comparable(a.attrs) == comparable(b.attrs)


def _call_of(node: Node) -> Node | None:
    """The outermost call that ONNX covers and whose result is this node."""
    for composite in () if node.composite is None else node.composite.path:
        operator = CALLS.get(composite.name)
        if operator is not None and _is_result(node, composite):
            call = copy(node)
            call.op, call.inputs, call.attrs = operator.op, _inputs(operator, composite), composite.attributes
            if call.inputs and _in_one_dtype(node, composite) and operator.covers(call):
                return call
    return None


def _is_result(node: Node, composite: Composite) -> bool:
    """Whether a node is the result of a call, or has all its results as parts."""
    parts = [out for out in composite.outputs if out is not None and out.name == "project" and out.inputs[0] is node]
    return composite.outputs == (node,) or 0 < len(parts) == len(composite.outputs)


def _inputs(operator: Composed, composite: Composite) -> tuple[Any, ...]:
    """The inputs in the operator's order; none if one is missing, is not a tensor, or if another argument is one."""
    if any(isinstance(value, np.ndarray) for value in composite.attributes.values()):
        return ()
    wanted = [name for name in operator.optional if composite.attributes.get(name, composite) is not None]
    names, given = [*operator.needed, *wanted], composite.inputs
    nodes = tuple([given.get(name) for name in names])
    return nodes if None not in nodes and len(nodes) == len(given) else ()


def _in_one_dtype(node: Node, composite: Composite) -> bool:
    """Whether the nodes are still those of the call, and all compute in the dtype of its inputs, as operators do."""
    members, inputs = composite.members(), composite.inputs.values()
    dtype, *others = {*node.dtype} if isinstance(node.dtype, tuple) else {node.dtype}
    same = not others and dtype.kind == "f" and all(i is not None and i.dtype == dtype for i in inputs)
    inner = [node for member in members for body in bodies(member) for node in body.nodes]
    return same and bool(members) and not any(map(_casts, (*members, *inner)))


def bodies(node: Node) -> list[Graph]:
    """The graphs of branches, or of the body of a loop."""
    return [held.graph for held in node.attrs.values() if isinstance(getattr(held, "graph", None), Graph)]


def _casts(node: Node) -> bool:
    return node.name == "astype" and node.inputs[0].dtype != node.dtype  # otherwise it is a copy
