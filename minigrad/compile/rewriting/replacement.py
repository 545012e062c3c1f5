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
