"""Dead code: what is not read is not computed.

A graph is what its outputs and effects are computed from, so what nothing needs falls away with the last reader, in
whichever pass that one goes.  What this pass finds is what *is* read and makes no difference: values that are written
and overwritten before they are read, as in programs that work in place, and carries that a loop keeps for a gradient
that is not computed.
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Graph, node_like, remade
from ..nodes.view import picks_of
from .common import comparable
from .fold_views import written
from .rules import Note, Rules, apply_rules, rewritten

rule = Rules()


def dead(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """What is overwritten before it is read is not written, and what is not read not computed."""
    return apply_rules(_unkept(graph, note), rule, note, without)


def _unkept(graph: Graph, note: Note) -> Graph:
    """Loops keep what they carried into each round only where a gradient reads it."""
    loops = [node for node in graph.nodes if node.attrs.get("keep")]
    if not loops:
        return graph
    read: dict[Node, int] = {}  # of each loop, the last result that is read
    for node in graph.nodes:
        if node.op is P.project:
            read[node.inputs[0]] = max(read.get(node.inputs[0], 0), node.attrs["index"])
    idle = {node for node in loops if read.get(node, 0) < len(node.shape) - _kept(node)}

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        if node not in idle or node.op is None:
            return remade(node, inputs)
        now = node_like(node.op, inputs, node.attrs | {"keep": False}, like=node)
        note("carries that are not read", node, now)
        return now

    return rewritten(graph, replace, also=idle)


def _kept(node: Node) -> int:
    """How many results of a loop are what it keeps: one for each part of the carry."""
    carries = node.attrs.get("carries")
    return len(node.inputs) - node.attrs["consts"] if carries is None else int(carries)


@rule("put", reads="put")
def overwritten(node: Node) -> Node | None:
    """Of two writes to the same place, the first makes no difference."""
    assert node.op is not None
    base, value, *indices = node.inputs
    if base.op is not node.op or base.inputs[2:] != tuple(indices):
        return None
    if comparable(node.attrs["chain"]) != comparable(base.attrs["chain"]):
        return None
    return node_like(node.op, (base.inputs[0], value, *indices), node.attrs, like=node)


@rule("put")
def overwritten_whole(node: Node) -> Node | None:
    """Where everything is overwritten, what was there makes no difference."""
    if len(node.inputs) > 2:
        return None
    shape = node.shape
    for op, attrs in node.attrs["chain"]:
        picks = picks_of(attrs["index"], shape) if op is P.slice else [None]
        whole = [p is not None and p.kept and p.is_all_of(size) for p, size in zip(picks, shape)]
        if len(picks) != len(shape) or not all(whole):
            return None
    return written(node.inputs[1], node)
