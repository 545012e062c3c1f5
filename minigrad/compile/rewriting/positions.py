"""The pass `positions`: computes large masks of positions where they are read.

A causal mask compares positions: `arange(n)[:, None] < arange(n)`.  It is the same for all matrices of a stack, so each
kernel that uses it would load it from memory, queries × keys numbers.  In the shape of the reader, the same kernel
computes it from the numbers of its loops.  `fusion.masks` finds the diagonal only in such a kernel: without this
pass, a causal attention computes the later columns too.
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ..nodes.graph import Graph, Replacing, reapplied, remade
from ..nodes.thresholds import LARGE_MATRIX
from ..nodes.view import is_filled
from .rules import Note, rewritten


def positions(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Computes large masks of positions where they are read."""
    counted = {node for node in graph.nodes if is_filled(node)}
    for node in graph.nodes:
        if node.op is not None and node.op.kind in ("elementwise", "view") and node.inputs:
            if all(not isinstance(x, Node) or x in counted for x in node.inputs):
                counted.add(node)
    large = [node for node in counted if node.size >= LARGE_MATRIX]
    masks = {node for node in large if node.op is not None and node.op.kind == "elementwise"}
    if not masks:
        return graph
    wide: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def widened(node: Node, shape: tuple[int, ...]) -> Node:
        """The same values in a larger shape."""
        key = node, shape
        if key not in wide:
            if node.op is not None and node.op.kind == "elementwise":
                inputs = tuple([widened(x, shape) if isinstance(x, Node) else x for x in node.inputs])
                wide[key] = reapplied(node, inputs)
            else:
                wide[key] = Replacing(node).broadcast_to(node, shape=shape)
        return wide[key]

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        if node.op is None or node.op.kind != "elementwise" or node in counted:
            return remade(node, inputs)
        smaller = [x in masks and x.shape != node.shape for x in node.inputs]
        if not any(smaller):
            return remade(node, inputs)
        given = tuple([widened(x, node.shape) if small else x for x, small in zip(inputs, smaller)])
        now = remade(node, given)
        note("mask of positions", node, now)
        return now

    return rewritten(graph, replace)
