"""Passes that choose in which order the dimensions of values lie in memory.

`layouts` computes on permuted tensors in the order of memory, and permutes the result: `max(tanh(x.T), axis=0)` becomes
`max(tanh(x), axis=1)`.  A loop over the permuted tensor would fetch a cache line for each element, or write against the
order of memory.  A value gets another layout only if it makes all readers faster: arithmetic in the same layout,
reductions, and further permutations.

`packed` copies lasting weights once into the order in which loops read them.  A layer multiplies by the transpose of
its weights, whose columns are far apart in memory.  Vectors of columns need them side by side.  A program keeps what it
computes from lasting values alone (see `running.plan`), so that only its first run copies.  Wide matrices become
panels, each of which is read from front to back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...core.dtypes import float32, float64
from ...core.node import Node
from ...core.primitive import P
from ...ops.view import inverse
from ..nodes.graph import STORED, Graph, Replacing, Source, reapplied, remade
from ..nodes.thresholds import MOST_PACKED_ROWS, PANEL_COLUMNS
from ..nodes.view import is_filled
from .rules import Note, left_out, rewritten

Axes = tuple[int, ...]


# Permutations ---------------------------------------------------------------------------------------------------------


def on_stored(graph: Graph, orders: Sequence[Axes | None]) -> Graph:
    """The graph on inputs whose dimensions are given in the order of memory.

    `orders` has the dimensions of each input in this order, from the slowest to the fastest; None is row-major order.
    """
    stored, begins = [], []
    for x, axes in zip(graph.inputs, orders):
        given: Node = x
        if axes is not None:
            given = Source(STORED, None, tuple([x.shape[a] for a in axes]), x.dtype, x.device, x.mode)
        stored.append(given)
        begins.append(given if axes is None else permuted(given, inverse(axes), x))
    now = graph.rebuilt(remade, begins)
    return Graph(stored, now.outputs, now.effects, now.checks)


def permuted(x: Node, axes: Axes, like: Node | None = None) -> Node:
    """A permutation of a value; a permutation of a permutation is one, and one that changes nothing is left out."""
    like = x if like is None else like
    if x.op is P.permute_dims:
        x, axes = x.inputs[0], tuple([x.attrs["axes"][a] for a in axes])
    return x if axes == tuple(range(x.ndim)) else Replacing(like).permute_dims(x, axes=axes)


def in_storage(x: Any, axes: Axes) -> Any:
    """An operand in the order of storage, for a result that is permuted by `axes`; it gets dimensions in front."""
    if not isinstance(x, Node) or x.ndim == 0:
        return x
    shape = (1,) * (len(axes) - x.ndim) + x.shape
    return permuted(x if shape == x.shape else Replacing(x).reshape(x, shape=shape), inverse(axes))


def reduced_before(node: Node, x: Node, axes: Axes) -> tuple[Node, Axes]:
    """A reduction of `x` permuted by `axes`, as a reduction of x and the axes that permute its result."""
    gone = node.attrs["axis"]
    total = reapplied(node, (x,), node.attrs | {"axis": tuple(sorted([axes[a] for a in gone]))})
    if node.attrs["keepdims"]:
        return total, axes
    left = [axis for number, axis in enumerate(axes) if number not in gone]
    return total, tuple([sorted(left).index(axis) for axis in left])


# Arithmetic on permutations -------------------------------------------------------------------------------------------


Order = Axes  # dimension i of the value is dimension order[i] in memory
REDUCTIONS = (P.sum, P.prod, P.max, P.min)


def layouts(graph: Graph, note: Note) -> Graph:
    """Computes on permuted tensors in the order of memory."""
    fixed = [check.node for check in graph.checks]  # in row-major order
    if "result_layouts" in left_out(note):  # else results get the layout of permuted inputs, as in eager mode
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
    """The orders that suit nodes and all their readers: reductions, permutations, and arithmetic in the same order."""
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


# Lasting weights ------------------------------------------------------------------------------------------------------


def packed(graph: Graph, note: Note) -> Graph:
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
