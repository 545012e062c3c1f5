"""The pass `channels_last`: convolutions and what follows them keep the channels of a pixel side by side.

In the graph, a convolution is a product of its weights and of all windows, with a row for each channel.  The
transposed product has a row for each pixel.  Its columns are neighbours in memory, so loops compute vectors of
channels, and pooling combines whole vectors.  Operations on the result are computed in this order too, as far as shapes
allow.  Other operations, and results, read a permutation, which is a view.

Inputs may already lie in another order in memory (`on_stored`), as results of such programs do in eager mode.  The
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
from ..nodes.graph import Graph, node_like, remade
from ..nodes.view import picks_of
from .permutations import Axes, is_stored, permuted, reduced_before, with_dimensions
from .reductions import FEWEST_COLUMNS
from .rules import Note, rewritten


def channels_last(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Computes convolutions and what follows them with the channels of a pixel side by side."""
    if not any(node.op is P.windows or is_stored(node) for node in graph.nodes):
        return graph
    return _Walk(graph, note, fixed="result_layouts" in without).graph()


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
        if node.op is None:
            return remade(node, inputs)
        find = RULES.get(node.name) or RULES.get(node.op.kind)
        found = find(self, node, inputs) if find is not None else None
        if found is None:
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

    # Kinds of nodes: each method returns the stored node and the axes that permute it to the old order ----------------

    def product(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        left, right = inputs
        if node.ndim != 2 or not is_columns(right) or left.shape[0] < FEWEST_COLUMNS:
            return None
        if node.size > left.size and (node in self.results or node in self.before.outputs):
            return None  # it would be copied to the old order, for the caller's views of it if not here
        return node_like(P.matmul, (permuted(right, (1, 0)), permuted(left, (1, 0))), node.attrs, like=node), (1, 0)

    def elementwise(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        found = [self.stored[x] for x in inputs if x in self.stored and x.shape == node.shape]
        if not found or node.op is None:
            return None
        axes = found[0][1]
        return node_like(node.op, tuple([self._turned(x, axes) for x in inputs]), node.attrs, like=node), axes

    def _turned(self, x: Any, axes: Axes) -> Any:
        """An operand in the order of storage."""
        if not isinstance(x, Node) or x.ndim == 0:
            return x
        stored = self.stored.get(x)
        if stored is not None and stored[1] == axes:
            return stored[0]
        return permuted(with_dimensions(x, len(axes)), inverse(axes))

    def reduction(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        if inputs[0] not in self.stored or node.name not in REDUCTIONS or node.op is None:
            return None
        return reduced_before(node, *self.stored[inputs[0]])

    def permutation(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        if is_stored(node):
            return inputs[0], node.attrs["axes"]
        if inputs[0] not in self.stored:
            return None
        x, axes = self.stored[inputs[0]]
        return x, tuple([axes[a] for a in node.attrs["axes"]])

    def reshape(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        """Dimensions are split or joined, if those that are joined are also neighbours in the order of storage."""
        if inputs[0] not in self.stored:
            return None
        x, axes = self.stored[inputs[0]]
        parts = regrouped(inputs[0].shape, node.shape)
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
        return node_like(P.reshape, (x,), {"shape": shape}, like=node), inverse(tuple(order))

    def place(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        return self._indexed(node, inputs, node.shape)

    def slice(self, node: Node, inputs: tuple[Any, ...]) -> tuple[Node, Axes] | None:
        return self._indexed(node, inputs, inputs[0].shape)

    def _indexed(self, node: Node, inputs: tuple[Any, ...], whole: Axes) -> tuple[Node, Axes] | None:
        """A slice of a tensor of the shape `whole`, or a tensor that is placed there."""
        if inputs[0] not in self.stored or node.op is None:
            return None
        x, axes = self.stored[inputs[0]]
        picks = picks_of(node.attrs["index"], whole)
        parts = [pick.part(size) for pick, size in zip(picks, whole) if pick is not None and pick.kept]
        if len(parts) != len(axes) or len(picks) != len(axes):
            return None
        back = inverse(axes)
        attrs: dict[str, Any] = {"index": (*[parts[a] for a in back], ...)}
        if node.op is P.place:
            attrs["shape"] = tuple([whole[a] for a in back])
        return node_like(node.op, (x,), attrs, like=node), axes


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


RULES: dict[str, Callable[[_Walk, Node, tuple[Any, ...]], tuple[Node, Axes] | None]] = {
    "matmul": _Walk.product, "elementwise": _Walk.elementwise, "reduce": _Walk.reduction,
    "permute_dims": _Walk.permutation, "reshape": _Walk.reshape, "place": _Walk.place, "slice": _Walk.slice,
}
