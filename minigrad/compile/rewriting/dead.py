"""The pass `dead`: removes writes and kept values that make no difference.

A graph holds only what its outputs and effects are computed from, so a node without readers is gone already.  This
pass finds nodes that have readers and still make no difference: values that are overwritten before they are read, and
values of each round that a loop stacks or keeps although nothing reads them.
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Graph, Replacing, reapplied, remade
from ..nodes.view import picks_of
from .common import comparable
from .equation import filled, shaped
from .rules import Note, Rules, rewritten

rule = Rules()


def unkept(graph: Graph, note: Note) -> Graph:
    """The graph in which loops keep only what is read: the carries of each round, and each result of the rounds."""
    read: dict[Node, set[int]] = {node: set() for node in graph.nodes if node.op in (P.scan, P.while_loop)}
    for node in graph.nodes:
        if node.op is P.project and node.inputs[0] in read:
            read[node.inputs[0]].add(node.attrs["index"])
    idle = {node: changed for node, numbers in read.items() if (changed := _changed(node, numbers))}

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        if node.op is P.project and node.inputs[0] in idle:
            unread, index = idle[node.inputs[0]][0], node.attrs["index"]
            return reapplied(node, inputs, {"index": index - sum(n < index for n in unread)})
        if node not in idle:
            return remade(node, inputs)
        unread, keep = idle[node]
        body = node.attrs["body"].without(unread) if unread else node.attrs["body"]
        now = reapplied(node, inputs, node.attrs | {"keep": keep, "body": body})
        if keep != node.attrs["keep"]:
            note("carries that are not read", node, now)
        if unread:
            note("results of rounds that are not read", node, now)
        return now

    return rewritten(graph, replace, also=idle)


def _changed(node: Node, read: set[int]) -> tuple[frozenset[int], bool] | None:
    """The results of the rounds of a loop that are not read, and whether its carries are; None if all are read."""
    carries, ends, keep = node.attrs.get("carries"), len(node.shape), node.attrs["keep"]
    if keep:
        ends -= len(node.inputs) - node.attrs["consts"] if carries is None else carries
        keep = max(read, default=0) >= ends
    unread = frozenset(range(ends if carries is None else carries, ends)).difference(read)
    unread = unread if len(unread) < ends else frozenset()  # a function has a result
    return (unread, keep) if unread or keep != node.attrs["keep"] else None


@rule("put", reads="put")
def overwritten(node: Node) -> Node | None:
    """The first of two writes to the same place makes no difference."""
    base, value, *indices = node.inputs
    if base.op is not node.op or base.inputs[2:] != tuple(indices):
        return None
    if comparable(node.attrs["chain"]) != comparable(base.attrs["chain"]):
        return None
    return reapplied(node, (base.inputs[0], value, *indices))


@rule("put")
def overwritten_whole(node: Node) -> Node | None:
    """What is written to a whole tensor is its new value: the old one makes no difference."""
    if len(node.inputs) > 2:
        return None
    shape = node.shape
    for op, attrs in node.attrs["chain"]:
        picks = picks_of(attrs["index"], shape) if op is P.slice else [None]
        whole = [p is not None and p.kept and p.is_all_of(size) for p, size in zip(picks, shape)]
        if len(picks) != len(shape) or not all(whole):
            return None
    return written(node.inputs[1], node)


def written(value: Any, node: Node) -> Node:
    """The content of memory with a node's shape and dtype after `value` has been written to it."""
    if not isinstance(value, Node):
        return filled(value, node)
    if value.dtype != node.dtype:
        value = Replacing(node).astype(value, dtype=node.dtype)
    if value.ndim > node.ndim:  # dimensions of size 1 in front
        value = Replacing(node).reshape(value, shape=value.shape[value.ndim - node.ndim :])
    return shaped(value, node)
