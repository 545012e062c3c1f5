"""What is put in the place of a node: new nodes with its line, scope and origin, in its shape."""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import node_like


def shaped(x: Any, node: Node) -> Node:
    """`x`, which may be a number, in the place of a node that it broadcasts to."""
    if not isinstance(x, Node):
        return filled(x, node)
    return x if x.shape == node.shape else node_like(P.broadcast_to, (x,), {"shape": node.shape}, like=node)


def filled(value: Any, node: Node) -> Node:
    """A tensor of one number in the place of a node."""
    attrs = {"shape": node.shape, "value": value, "dtype": node.dtype, "device": node.device}
    return node_like(P.full, (), attrs, like=node)


def applied(name: str, *inputs: Any, node: Node, **attrs: Any) -> Node:
    """A primitive on these inputs, in the place of `node` and in its shape."""
    return shaped(node_like(P[name], inputs, attrs, like=node), node)


def is_made_by(x: Any, name: str) -> bool:
    """Whether an input is a node of this primitive."""
    return isinstance(x, Node) and x.name == name and x.op is not None


def kind_of(node: Node) -> str:
    """The kind of what a node computes: b, i, u or f."""
    return node.dtype.kind
