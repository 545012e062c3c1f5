"""Overlapping windows as sums of their parts, which loops can make where a library would go over memory many times."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import node_like
from .rules import Rules

rule = Rules()
MOST_PARTS = 25  # of a window: each is a term of its own


@rule("overlap_add")
def windows_as_parts(node: Node) -> Node | None:
    """Windows that are one step apart, added up, are a sum with a term for each place in a window."""
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
