"""The pass `packed`: loops multiply by lasting weights, copied once into the order in which they read them.

A layer multiplies by the transpose of its weights, whose columns are far apart in memory.  Vectors of columns need them
side by side.  A program keeps what it computes from lasting values alone (see `running.plan`), so that only its first
run copies.  Wide matrices become panels, each of which is read from front to back.

The bias of a convolution and the batch norm after it become one factor and one summand for each channel, which are kept
as well.  The result of a product has been rounded already, so another order of the arithmetic is as exact.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from ...core.dtypes import float32, float64
from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Graph, Replacing, reapplied, remade
from ..nodes.thresholds import MOST_PACKED_ROWS, PANEL_COLUMNS
from .channels_last import is_columns
from .rules import Note, rewritten

ARITHMETIC = (P.add, P.subtract, P.multiply)


def packed(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Multiplies by lasting weights in the order in which loops read them."""
    lasting = {node for node in graph.inputs if getattr(node, "lasting", False)}
    if not lasting:
        return graph
    for node in graph.nodes:
        given = [x for x in node.inputs if isinstance(x, Node)]
        if given and node.op is not None and node.op.kind in ("view", "elementwise") and lasting.issuperset(given):
            lasting.add(node)
    linear: dict[Node, Linear] = {}  # products, and what is computed from each by lasting values

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        new, rule = remade(node, inputs), ""
        before = linear.get(inputs[0]) if inputs else None
        if node.op is P.matmul and inputs[1] in lasting and inputs[0] not in lasting:
            copied = _multiplied(node, *inputs)
            new, rule = (new, "") if copied is None else (copied, "lasting weights in panels")
            linear[new] = Linear(new)
        elif before is None:
            return new
        elif node.op in (P.reshape, P.permute_dims) and before.is_alone:
            linear[new] = Linear(new)
        elif node.op in ARITHMETIC and inputs[1] in lasting and node.dtype == before.product.dtype:
            now = before.after(node, inputs[1])
            if not before.is_alone:
                new, rule = now.node(node), "lasting values together"
            if node.shape == now.product.shape:
                linear[new] = now
        if rule:
            note(rule, node, new)
        return new

    return rewritten(graph, replace)


class Linear(NamedTuple):
    """A product times `scale` plus `shift`, which are lasting values."""

    product: Node
    scale: Node | None = None
    shift: Node | None = None

    @property
    def is_alone(self) -> bool:
        """Whether it is the product itself."""
        return self.scale is None and self.shift is None

    def after(self, node: Node, operand: Node) -> Linear:
        """The value of a sum, difference or product with another lasting value."""
        if node.op is P.multiply:
            scale = operand if self.scale is None else reapplied(node, (self.scale, operand))
            return Linear(self.product, scale, None if self.shift is None else reapplied(node, (self.shift, operand)))
        shift = 0.0 if self.shift is None else self.shift
        return Linear(self.product, self.scale, reapplied(node, (shift, operand)))

    def node(self, like: Node) -> Node:
        """The node that computes it."""
        made = Replacing(like)
        scaled = self.product if self.scale is None else made.multiply(self.product, self.scale)
        return scaled if self.shift is None else made.add(scaled, self.shift)


def _multiplied(node: Node, left: Node, right: Node) -> Node | None:
    """The product with weights that are copied, or None if loops do not compute it faster than a library."""
    if right.ndim != 2 or node.dtype not in (float32, float64) or not node.size:
        return None
    (k, n), m = right.shape, prod(node.shape[:-1])
    made = Replacing(node)
    if is_columns(left):
        if right.op is not P.permute_dims:
            return None
        return reapplied(node, (left, made.reshape(made.reshape(right, shape=(k * n,)), shape=(k, n))))
    panel = next((size for size in PANEL_COLUMNS if n > size and n % size == 0), None)
    if panel is None or m > MOST_PACKED_ROWS:
        return None
    apart = made.permute_dims(made.reshape(right, shape=(k, n // panel, panel)), axes=(1, 0, 2))
    copied = made.reshape(made.reshape(apart, shape=(k * n,)), shape=(n // panel, k, panel))
    panels = made.reshape(made.permute_dims(copied, axes=(1, 0, 2)), shape=(k, n))
    return made.reshape(reapplied(node, (made.reshape(left, shape=(m, k)), panels)), shape=node.shape)
