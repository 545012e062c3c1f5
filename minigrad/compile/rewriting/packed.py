"""The pass `packed`: loops multiply by lasting weights, copied once into the order in which they read them.

A layer multiplies by the transpose of its weights, whose columns are far apart in memory.  Vectors of columns need them
side by side.  A program keeps what it computes from lasting values alone (see `running.plan`), so that only its first
run copies.  Wide matrices become panels, each of which is read from front to back.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...core.dtypes import float32, float64
from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Graph, Replacing, reapplied, remade
from ..nodes.thresholds import MOST_PACKED_ROWS, PANEL_COLUMNS
from .rules import Note, rewritten


def packed(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Multiplies by lasting weights in the order in which loops read them."""
    lasting = {node for node in graph.inputs if getattr(node, "lasting", False)}
    if not lasting:
        return graph
    for node in graph.nodes:
        given = [x for x in node.inputs if isinstance(x, Node)]
        if given and node.op is not None and node.op.kind in ("view", "elementwise") and lasting.issuperset(given):
            lasting.add(node)

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        copied = None
        if node.op is P.matmul and inputs[1] in lasting and inputs[0] not in lasting:
            copied = _multiplied(node, *inputs)
        if copied is None:
            return remade(node, inputs)
        note("lasting weights in panels", node, copied)
        return copied

    return rewritten(graph, replace)


def _multiplied(node: Node, left: Node, right: Node) -> Node | None:
    """The product with weights that are copied, or None if loops do not compute it faster than a library."""
    if right.ndim != 2 or node.dtype not in (float32, float64) or not node.size:
        return None
    (k, n), m = right.shape, prod(node.shape[:-1])
    made = Replacing(node)
    panel = next((size for size in PANEL_COLUMNS if n > size and n % size == 0), None)
    if panel is None or m > MOST_PACKED_ROWS:
        return None
    apart = made.permute_dims(made.reshape(right, shape=(k, n // panel, panel)), axes=(1, 0, 2))
    copied = made.reshape(made.reshape(apart, shape=(k * n,)), shape=(n // panel, k, panel))
    panels = made.reshape(made.permute_dims(copied, axes=(1, 0, 2)), shape=(k, n))
    return made.reshape(reapplied(node, (made.reshape(left, shape=(m, k)), panels)), shape=node.shape)
