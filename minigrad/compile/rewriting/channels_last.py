"""The pass `channels_last`: convolutions and what follows them keep the channels of a pixel side by side.

In the graph, a convolution is a product of its weights and of all windows, with a row for each channel.  The
transposed product has a row for each pixel.  Its columns are neighbours in memory, so loops compute vectors of
channels, and pooling combines whole vectors.  Operations on the result are computed in this order too, as far as shapes
allow.  Other operations, and results, read a permutation, which is a view.

Inputs may already lie in a different order in memory (`on_stored`), as results of such programs do in eager mode.  The
operations on them are computed in that order in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ...ops.view import inverse
from ..loops.operations import REDUCTIONS
from ..nodes.graph import STORED, Graph, Replacing, reapplied, remade
from ..nodes.thresholds import SHORTEST_VECTOR
from ..nodes.view import picks_of
from .layouts import Axes, in_storage, permuted, reduced_before
from .rules import Note, left_out, rewritten


def channels_last(graph: Graph, note: Note) -> Graph:
    """Computes convolutions and what follows them with the channels of a pixel side by side."""
    return _Walk(graph, note, fixed="result_layouts" in left_out(note)).graph()


def is_stored(node: Node) -> bool:
    """Whether a node permutes an input that is given in the order of memory."""
    return node.op is P.permute_dims and getattr(node.inputs[0], "kind", "") == STORED


def is_columns(x: Any) -> bool:
    """Whether a matrix, or its transpose, is made of windows."""
    if x.op is P.permute_dims and x.ndim == 2:
        (x,) = x.inputs
    if x.op is not P.reshape or x.ndim != 2:
        return False
    (x,) = x.inputs
    while x.op in (P.permute_dims, P.slice):
        (x,) = x.inputs
    return x.op is P.windows


class _Walk:
    """One walk over a graph.  `stored` holds, for each permutation that it has made, the stored node and the axes.

    If results are `fixed`, they are in row-major order.
    """

    def __init__(self, graph: Graph, note: Note, fixed: bool) -> None:
        self.before, self.note = graph, note
        self.stored: dict[Node, tuple[Node, Axes]] = {}
        self.results: set[Node] = set()  # nodes that row-major results are views of
        for node in graph.outputs if fixed else ():
            self.results.add(node)
            while node.op is not None and node.op.kind == "view":
                (node,) = node.inputs
                self.results.add(node)

    def graph(self) -> Graph:
        return rewritten(self.before, self.replace)

    def replace(self, node: Node, inputs: tuple[Any, ...]) -> Node:
        """The node on new inputs: in the order of its stored inputs, if that is possible."""
        found = None if node.op is None else self.found(node, inputs)
        if node.op is None or found is None:
            return remade(node, inputs)
        new, axes = found
        turned = permuted(new, axes)
        if turned is not new:
            if node in self.results and node.op.kind in ("elementwise", "reduce", "index"):
                return remade(node, inputs)  # it would be copied to the old order
            self.stored[turned] = found
        if node.op.kind != "view":
            self.note("channels last", node, turned)
        return turned

    def found(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        """The stored node, and the axes that permute it to the old order; None if there is no stored node."""
        assert node.op is not None
        if is_stored(node):
            return inputs[0], node.attrs["axes"]
        if node.op is P.matmul:
            return self.product(node, *inputs)
        if node.op.kind == "elementwise":
            return self.elementwise(node, inputs)
        rule = RULES.get(node.name)
        return rule(node, *self.stored[inputs[0]]) if rule is not None and inputs[0] in self.stored else None

    def product(self, node: Node, left: Node, right: Node) -> tuple[Node, Axes] | None:
        """The transposed product of weights and windows."""
        if node.ndim != 2 or not is_columns(right) or left.shape[0] < SHORTEST_VECTOR:
            return None
        if node.size > left.size and (node in self.results or node in self.before.outputs):
            return None  # it would be copied to the old order, for the caller's views of it if not here
        return reapplied(node, (permuted(right, (1, 0)), permuted(left, (1, 0)))), (1, 0)

    def elementwise(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        """The same operation on operands in the order of storage."""
        found = [self.stored[x] for x in inputs if x in self.stored and x.shape == node.shape]
        if not found:
            return None
        axes = found[0][1]
        return reapplied(node, tuple([self._turned(x, axes) for x in inputs])), axes

    def _turned(self, x: Any, axes: Axes) -> Any:
        """An operand in the order of storage."""
        stored = self.stored.get(x) if isinstance(x, Node) else None
        return stored[0] if stored is not None and stored[1] == axes else in_storage(x, axes)


# Nodes that read a stored node x, permuted by some axes: what `found` returns for them --------------------------------


def permutation(node: Node, x: Node, axes: Axes) -> tuple[Node, Axes]:
    """The same stored node, permuted by both."""
    return x, tuple([axes[a] for a in node.attrs["axes"]])


def reshape(node: Node, x: Node, axes: Axes) -> tuple[Node, Axes] | None:
    """Dimensions are split or joined, if those that are joined are also neighbours in the order of storage."""
    parts = regrouped(node.inputs[0].shape, node.shape)
    if parts is None:
        return None
    groups, place = [], 0  # (where the group is stored, its new sizes, its first new dimension)
    for count, sizes, first in parts:
        stored = axes[place : place + count]
        if stored != tuple(range(stored[0], stored[0] + count)):
            return None
        groups.append((stored[0], sizes, first))
        place += count
    groups.sort()
    order = [first + k for _, sizes, first in groups for k in range(len(sizes))]
    shape = tuple([size for _, sizes, _ in groups for size in sizes])
    return Replacing(node).reshape(x, shape=shape), inverse(tuple(order))


def indexed(node: Node, x: Node, axes: Axes) -> tuple[Node, Axes] | None:
    """A slice of a tensor, or a tensor that is placed in a larger one."""
    whole = node.shape if node.op is P.place else node.inputs[0].shape
    picks = picks_of(node.attrs["index"], whole)
    parts = [pick.part(size) for pick, size in zip(picks, whole) if pick is not None and pick.kept]
    if len(parts) != len(axes) or len(picks) != len(axes):
        return None
    back = inverse(axes)
    attrs: dict[str, Any] = {"index": (*[parts[a] for a in back], ...)}
    if node.op is P.place:
        attrs["shape"] = tuple([whole[a] for a in back])
    return reapplied(node, (x,), attrs), axes


def regrouped(old: Axes, new: Axes) -> list[tuple[int, Axes, int]] | None:
    """How a reshape joins and splits dimensions: the old ones of each part, its new sizes, and its first new dimension.

    >>> regrouped((2, 3, 4, 4), (2, 3, 2, 2, 4)), regrouped((3, 4), (4, 3))
    ([(1, (2,), 0), (1, (3,), 1), (1, (2, 2), 2), (1, (4,), 4)], [(2, (4, 3), 0)])
    """
    if prod(old) != prod(new) or 0 in old:
        return None
    parts: list[tuple[int, Axes, int]] = []
    i = j = 0
    while i < len(old):
        begin, first, left, right = i, j, old[i], 1
        i += 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        while j < len(new) and new[j] == 1 and not (i < len(old) and old[i] == 1):
            j += 1
        parts.append((i - begin, new[first:j], first))
    return parts


RULES: dict[str, Callable[[Node, Node, Axes], tuple[Node, Axes] | None]] = {
    **dict.fromkeys(REDUCTIONS, reduced_before), "permute_dims": permutation, "reshape": reshape, "place": indexed,
    "slice": indexed,
}
