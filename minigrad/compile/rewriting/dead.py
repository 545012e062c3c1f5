"""The pass `dead`: removes writes and kept values that make no difference.

A graph holds only what its outputs and effects are computed from, so a node without readers is gone already.  This
pass finds nodes that have readers and still make no difference: values that are overwritten before they are read, and
carries that a loop keeps for a gradient that is not computed.
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
    """Removes writes that are overwritten before they are read, and carries that no gradient reads."""
    return apply_rules(_unkept(graph, note), rule, note, without)


def _unkept(graph: Graph, note: Note) -> Graph:
    """The graph in which loops keep the carries of each round only where a gradient reads them."""
    loops = [node for node in graph.nodes if node.attrs.get("keep")]
    if not loops:
        return graph
    read: dict[Node, int] = {}  # the last result of each loop that is read
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
    """How many results of a loop are kept carries: one for each part of the carry."""
    carries = node.attrs.get("carries")
    return len(node.inputs) - node.attrs["consts"] if carries is None else int(carries)


@rule("put", reads="put")
def overwritten(node: Node) -> Node | None:
    """The first of two writes to the same place makes no difference."""
    assert node.op is not None
    base, value, *indices = node.inputs
    if base.op is not node.op or base.inputs[2:] != tuple(indices):
        return None
    if comparable(node.attrs["chain"]) != comparable(base.attrs["chain"]):
        return None
    return node_like(node.op, (base.inputs[0], value, *indices), node.attrs, like=node)


@rule("put")
def overwritten_whole(node: Node) -> Node | None:
    """A write to a whole tensor makes its old value irrelevant."""
    if len(node.inputs) > 2:
        return None
    shape = node.shape
    for op, attrs in node.attrs["chain"]:
        picks = picks_of(attrs["index"], shape) if op is P.slice else [None]
        whole = [p is not None and p.kept and p.is_all_of(size) for p, size in zip(picks, shape)]
        if len(picks) != len(shape) or not all(whole):
            return None
    return written(node.inputs[1], node)
