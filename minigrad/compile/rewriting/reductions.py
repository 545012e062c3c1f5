"""Rules that need loops or shapes, not algebra: overlapping windows, reductions and joins of a single element."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import node_like
from .rules import Rules

rule = Rules()
MOST_PARTS = 25  # the most elements of a window: each becomes a term of the sum


@rule("overlap_add")
def windows_as_parts(node: Node) -> Node | None:
    """Overlapping windows of stride 1 are a sum with one term per position in the window, which loops can fuse."""
    (x,) = node.inputs
    size = x.shape[node.ndim :]
    if not node.size or prod(size) > MOST_PARTS or any(step != 1 for step in node.attrs["stride"]):
        return None
    total: Any = 0.0 if node.dtype.kind == "f" else 0
    for offset in np.ndindex(size):
        index = [slice(None)] * node.ndim
        for axis, place, gap in zip(node.attrs["axis"], offset, node.attrs["dilation"]):
            index[axis] = slice(place * gap, place * gap + x.shape[axis])
        part = node_like(P.slice, (x,), {"index": (..., *offset)}, like=node)
        placed = node_like(P.place, (part,), {"shape": node.shape, "index": (*index, ...)}, like=node)
        total = node_like(P.add, (total, placed), {}, like=node)
    return total  # type: ignore[no-any-return]


@rule("sum", "prod", "max", "min", "cumulative_sum", "cumulative_prod")
def reduction_of_one(node: Node) -> Node | None:
    """A reduction over dimensions of size 1 is its only element; a sum starts with 0.0, so it is x + 0.0."""
    (x,) = node.inputs
    axes = node.attrs["axis"]
    if any(x.shape[a] != 1 for a in (axes if isinstance(axes, tuple) else (axes,))):
        return None
    if x.dtype != node.dtype:
        x = node_like(P.astype, (x,), {"dtype": node.dtype}, like=node)
    if x.shape != node.shape:
        x = node_like(P.reshape, (x,), {"shape": node.shape}, like=node)
    return node_like(P.add, (x, 0.0), {}, like=node) if node.name == "sum" and node.dtype.kind == "f" else x


@rule("concat")
def concat_of_one(node: Node) -> Node | None:
    """A join drops empty tensors, and a join of a single tensor is that tensor."""
    assert node.op is not None
    axis = node.attrs["axis"]
    parts = tuple([x for x in node.inputs if x.shape[axis]]) or node.inputs[:1]
    if len(parts) == len(node.inputs) > 1:
        return None
    return parts[0] if len(parts) == 1 else node_like(node.op, parts, node.attrs, like=node)
