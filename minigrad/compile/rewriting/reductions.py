"""Reductions of one element, reductions of reductions, and joining where there is nothing to join."""

from __future__ import annotations

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import node_like
from .replacement import filled
from .rules import Rules

rule = Rules()


@rule("sum", "prod", "max", "min", "cumulative_sum", "cumulative_prod")
def reduction_of_one(node: Node) -> Node | None:
    """Over dimensions of size 1 a reduction is its element; a sum, which begins with 0.0, is x + 0.0."""
    (x,) = node.inputs
    axes = node.attrs["axis"]
    if any(x.shape[a] != 1 for a in (axes if isinstance(axes, tuple) else (axes,))):
        return None
    if x.dtype != node.dtype:
        x = node_like(P.astype, (x,), {"dtype": node.dtype}, like=node)
    if x.shape != node.shape:
        x = node_like(P.reshape, (x,), {"shape": node.shape}, like=node)
    return node_like(P.add, (x, 0.0), {}, like=node) if node.name == "sum" and node.dtype.kind == "f" else x


@rule("argmax", "argmin", "argsort")
def position_of_one(node: Node) -> Node | None:
    """The only element is the first."""
    (x,) = node.inputs
    return filled(0, node) if x.shape[node.attrs["axis"]] == 1 else None


@rule("sum", "prod", "max", "min", alone=True)
def reduction_twice(node: Node) -> Node | None:
    """max of max is one max over more dimensions, and so is sum of sum for integers: floats would round otherwise."""
    assert node.op is not None
    (x,) = node.inputs
    if x.op is not node.op or x.dtype != node.dtype:
        return None
    if node.name in ("sum", "prod") and node.dtype.kind == "f":
        return None
    (first,) = x.inputs
    inner = x.attrs["axis"]
    rest = range(first.ndim) if x.attrs["keepdims"] else [a for a in range(first.ndim) if a not in inner]
    axes = tuple(sorted({*inner, *[rest[a] for a in node.attrs["axis"]]}))
    attrs = {"axis": axes, "keepdims": False}
    if node.name in ("sum", "prod"):
        attrs["dtype"] = x.attrs["dtype"]
    both = node_like(node.op, (first,), attrs, like=node)
    return both if both.shape == node.shape else node_like(P.reshape, (both,), {"shape": node.shape}, like=node)


@rule("concat")
def concat_of_one(node: Node) -> Node | None:
    """Of a single tensor there is nothing to join; what is empty adds nothing."""
    assert node.op is not None
    axis = node.attrs["axis"]
    parts = tuple([x for x in node.inputs if x.shape[axis]]) or node.inputs[:1]
    if len(parts) == len(node.inputs) > 1:
        return None
    return parts[0] if len(parts) == 1 else node_like(node.op, parts, node.attrs, like=node)
