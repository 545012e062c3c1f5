"""Recipes: what it takes to compute each node in a loop.

The compiler knows five kinds of nodes that are computed in loops: elementwise operations, reductions, reshapes that
have to copy, parts placed in a whole, and tensors that are filled or counted.  Everything else is opaque: a step that
a library makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from ...core.node import Node
from ..loops.operations import REDUCTIONS
from ..loops.scalar import has_steps, why_not
from ..nodes.graph import Graph
from ..nodes.view import View, is_made, row_major, views_of, whole
from .count import Count, library_count, operations
from .spans import spans


@dataclass(eq=False)
class Recipe:
    """How one node is computed: for each index in `shape`, from what is read there.

    The shape is that of the loops, not always of the result: a reduction goes over its input.  `reads` has a view of
    that shape, or a number, for each input of the node; only a `place` has a rule of its own for what it reads.
    """

    node: Node
    kind: str  # elementwise, reduce, copy, place, made or opaque
    shape: tuple[int, ...]
    reads: tuple[Any, ...]
    position: int  # in the graph

    def __post_init__(self) -> None:
        self.size = prod(self.shape)
        views = [r for r in self.reads if r.__class__ is View]
        # The nodes whose memory it reads, each once; not those that a loop makes for itself.
        self.bases = tuple({v.base: None for v in views if self.kind == "opaque" or not is_made(v.base)})

    @property
    def reduces(self) -> tuple[int, ...]:
        """The dimensions of `shape` that are longer than 1 and that a reduction reduces."""
        if self.kind != "reduce":
            return ()
        return tuple([a for a in self.node.attrs["axis"] if self.shape[a] != 1])

    @property
    def reduces_rows(self) -> bool:
        """Whether what it reduces are the last dimensions, so that the elements of each result come in a row."""
        axes = self.reduces
        rest = [a for a, size in enumerate(self.shape) if size != 1 and a not in axes]
        return not rest or max(rest) < min(axes, default=0)

    @property
    def target(self) -> View:
        """Where a reduction's result lies, as a view with the shape of the loops: reduced dimensions do not move."""
        axes = self.node.attrs["axis"]
        kept = tuple([1 if a in axes else size for a, size in enumerate(self.shape)])
        return View(self.node, 0, kept, row_major(kept)).broadcast(self.shape)

    @property
    def operations(self) -> int:
        """The arithmetic operations of one round of its loops."""
        if self.kind == "reduce":
            return 1
        if self.kind != "elementwise" or self.node.op is None:
            return 0
        return operations(self.node.op)

    @property
    def count(self) -> Count:
        """What a library takes to compute it."""
        return library_count(self.node, dict(zip(self.node.inputs, self.reads)) | {self.node: whole(self.node)})

    @property
    def cost(self) -> float:
        """What computing one element costs, in bytes of memory traffic."""
        return self.node.op.cost if self.kind == "elementwise" and self.node.op is not None else 0.25


def recipes_of(graph: Graph) -> tuple[dict[Node, Recipe], dict[Node, View]]:
    """The recipe of each node that is computed, and what each node is a view of.

    What is made by counting or filling gets a recipe only where its memory is asked for: as an output, or by a library.
    """
    views = views_of(graph)
    recipes: dict[Node, Recipe] = {}
    inputs = set(graph.inputs)
    in_memory = {views[node].base for node in graph.outputs}
    for position, node in enumerate(graph.nodes):
        if node.op is None or node in inputs or views[node].base is not node or is_made(node):
            continue
        kind = _kind(node, views)
        reads = tuple([views[i] if isinstance(i, Node) else i for i in node.inputs])
        if kind == "opaque":
            in_memory |= {r.base for r in reads if isinstance(r, View)}
            recipes[node] = Recipe(node, kind, (), reads, position)
            continue
        shape = node.inputs[0].shape if kind in ("reduce", "copy") else node.shape
        if kind != "place":
            reads = tuple([r.broadcast(shape) if isinstance(r, View) else r for r in reads])
        recipes[node] = Recipe(node, kind, shape, reads, position)
    for position, node in enumerate(graph.nodes):
        if node in in_memory and is_made(node):
            kind = "made" if node.size else "opaque"
            recipes[node] = Recipe(node, kind, node.shape, (), position)
    return dict(sorted(recipes.items(), key=lambda item: item[1].position)), views


def _kind(node: Node, views: dict[Node, View]) -> str:
    if any(isinstance(i, Node) and 0 in i.shape for i in node.inputs) or 0 in node.shape:
        return "opaque"  # loops of no rounds are not worth rules of their own
    if node.name in REDUCTIONS:
        return "copy" if node.size == node.inputs[0].size else "reduce"
    if node.name == "reshape":
        return "copy"
    if node.name == "place":
        part = views[node.inputs[0]]
        return "opaque" if part.base.name == "arange" or spans(node, part) is None else "place"
    return "elementwise" if has_steps(node) else "opaque"


def library(node: Node) -> str:
    """Why a node has no place in a loop."""
    if 0 in node.shape or any(isinstance(i, Node) and 0 in i.shape for i in node.inputs):
        return f"{node.name} of no elements is a library call"
    return why_not(node)
