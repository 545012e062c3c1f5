"""The pass `layouts`: arithmetic on permuted tensors happens in the order of memory, and the result is permuted.

`max(tanh(x.T), axis=0)` becomes `max(tanh(x), axis=1)`.  A loop over the permuted tensor would fetch a cache line for
each element, or write against the order of memory.  A value gets another layout only if all its readers profit:
arithmetic in the same layout, reductions, and further permutations.
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Graph, reapplied, remade
from ..nodes.view import is_filled
from .permutations import Axes, in_storage, permuted, reduced_before
from .rules import Note, rewritten

Order = Axes  # dimension i of the value is dimension order[i] in memory
REDUCTIONS = (P.sum, P.prod, P.max, P.min)


def layouts(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Computes on permuted tensors in the order of memory."""
    if not any(node.op is P.permute_dims for node in graph.nodes):
        return graph
    fixed = [check.node for check in graph.checks]  # in row-major order
    if "result_layouts" in without:  # else results get the layout of permuted inputs, as in eager mode
        fixed += graph.outputs
    orders = _kept(graph, _wishes(graph), {*fixed})

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        if node in orders:
            order = orders[node]
            now = permuted(reapplied(node, tuple([in_storage(x, order) for x in inputs])), order, node)
            note("arithmetic on a permutation", node, now)
            return now
        now = remade(node, inputs)
        if now is not node and now.op is P.permute_dims:
            return permuted(now.inputs[0], now.attrs["axes"], now)
        if now.op in REDUCTIONS and inputs[0].op is P.permute_dims:
            (x,) = now.inputs
            now = permuted(*reduced_before(now, x.inputs[0], x.attrs["axes"]), now)
            note("reduction of a permutation", node, now)
        return now

    return rewritten(graph, replace)


# The choice -----------------------------------------------------------------------------------------------------------


def _wishes(graph: Graph) -> dict[Node, Order]:
    """For arithmetic, the order of all its inputs of full size, if they have the same one and it is not row-major."""
    wishes: dict[Node, Order] = {}
    for node in graph.nodes:
        if node.op is not None and node.op.kind == "elementwise":
            found = _orders_of_inputs(node, wishes)
            if len(found) == 1 and (order := found.pop()) != tuple(range(node.ndim)):
                wishes[node] = order
    return wishes


def _repeats(x: Node) -> bool:
    """Whether a tensor reads few elements again and again, so that its order does not matter."""
    return x.op is P.broadcast_to or is_filled(x)


def _order_of(x: Node, wishes: dict[Node, Order]) -> Order:
    if x.op is not P.permute_dims:
        return wishes.get(x, tuple(range(x.ndim)))
    inner = _order_of(x.inputs[0], wishes)
    return tuple([inner[a] for a in x.attrs["axes"]])


def _kept(graph: Graph, wishes: dict[Node, Order], fixed: set[Node]) -> dict[Node, Order]:
    """The wishes of nodes that only reductions, permutations, and arithmetic with the same wish read."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Node):
                readers.setdefault(x, []).append(node)

    def profits(node: Node, order: Order) -> bool:
        if node in fixed:
            return False
        for reader in readers.get(node, ()):
            if reader.op is P.permute_dims:
                after = tuple([order[a] for a in reader.attrs["axes"]])
                if after != tuple(range(len(after))) and not profits(reader, after):
                    return False
            elif reader.op not in REDUCTIONS and wishes.get(reader) != order:
                return False
        return True

    while True:
        refused = [node for node, order in wishes.items() if not profits(node, order)]
        if not refused:
            return wishes
        for node in refused:
            del wishes[node]
        wishes = {node: order for node, order in wishes.items() if _orders_of_inputs(node, wishes) == {order}}


def _orders_of_inputs(node: Node, wishes: dict[Node, Order]) -> set[Order]:
    whole = [x for x in node.inputs if isinstance(x, Node) and x.shape == node.shape and not _repeats(x)]
    return {_order_of(x, wishes) for x in whole}
