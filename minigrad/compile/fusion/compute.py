"""Kinds of computation: what it takes to compute each node of a graph.

Each kind is a class.  It says at which level a kernel computes such a node, how the node reads its inputs, which rows
it needs and what it costs; `lowering.write` has one function for each kind, which writes what its loops compute.  A
new kind of loop is a class in `KINDS` and such a function.  What no loop computes is left to a library.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from ...core.node import Node
from ..loops.operations import REDUCTIONS
from ..loops.scalar import has_steps, why_not
from ..nodes.graph import Graph
from ..nodes.view import View, is_made, row_major, views_of, whole
from .count import Count, library_count, operations
from .levels import ACROSS_ROWS, PER_ELEMENT, PER_ROW, Level, level_of
from .spans import spans

if TYPE_CHECKING:
    from .group import Group

LONGEST_ROW = 1 << 16  # elements that a kernel goes through more than once
Views = dict[Node, View]
Shape = tuple[int, ...]


class Access(Enum):
    """Which element of a value is read, where a computation is at some element of its loops."""

    SINGLE = "one"  # the only one
    IN_ORDER = "order"  # the one at the same position
    BY_ROW = "rows"  # the one of the row
    PLACED = "placed"  # the one that lies here in a larger array, if there is one
    ELSEWHERE = "elsewhere"


SINGLE, IN_ORDER, BY_ROW, PLACED, ELSEWHERE = Access


class Recipe:
    """How one node is computed: for each index in `shape`, from what is read there.

    The shape is that of the loops, not always of the result: a reduction goes over its input.  `reads` has a view of
    that shape, or a number, for each input of the node.
    """

    reduces = False  # whether the value is complete only when the loop that computes it has ended
    repeatable = True  # whether several kernels may compute it, each for itself
    row: int | None = None  # how long the rows have to be where a kernel goes through `size` elements, if it matters
    operations = 0  # of arithmetic, for each element
    cost = 0.25  # of computing an element, in bytes of memory traffic that take as long
    elsewhere = "it is read at other positions than it is computed at"  # why it may not be where its inputs are

    def __init__(self, node: Node, views: Views, position: int) -> None:
        self.node, self.position = node, position  # in the graph
        self.shape = self.loops_over(node)
        self.size = prod(self.shape)
        self.reads = tuple([self.read(views[i]) if isinstance(i, Node) else i for i in node.inputs])
        self.views = tuple([r for r in self.reads if r.__class__ is View])
        self.bases = tuple({v.base: None for v in self.views if self.loads(v.base)})  # the nodes read from memory

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        """Whether a node is computed in this way."""
        raise NotImplementedError

    @staticmethod
    def loops_over(node: Node) -> Shape:
        """The shape of its loops."""
        return node.shape

    def read(self, view: View) -> View:
        """An input as the loops read it."""
        return view.broadcast(self.shape)

    def loads(self, base: Node) -> bool:
        """Whether the value of an input comes from memory: a loop counts and fills for itself."""
        return not is_made(base)

    @property
    def target(self) -> View:
        """Where the result lies, as a view with the shape of the loops."""
        return whole(self.node)

    # In a kernel ------------------------------------------------------------------------------------------------------

    def level_in(self, elements: int, row: int | None) -> Level | None:
        """How often a kernel of so many elements in rows of `row` computes it; None if it has no loop for it."""
        return level_of(self.size, elements, row)

    def access(self, view: View) -> Access:
        """How it reads one of its views."""
        if view.base.size == 1:
            return SINGLE
        if view.in_order:
            return IN_ORDER
        return BY_ROW if 0 < view.repeats <= LONGEST_ROW else ELSEWHERE

    def needs(self, view: View, level: Level, group: Group) -> tuple[int, int | None] | None:
        """The elements and the row of a kernel that computes both this and what it reads, at a level of a group.

        One element: any number will do.  None: no kernel can.
        """
        access = self.access(view)
        if access is SINGLE:
            return 1, None
        if access is IN_ORDER:
            return group.elements, group.row
        if access is BY_ROW and level == PER_ELEMENT and group.row is None:
            return view.size, view.repeats  # what computes it becomes the heads of the rows of a wider kernel
        if access is BY_ROW and level == PER_ROW and view.size == group.elements:
            return group.elements, group.row
        return None

    def runs(self, group: Group) -> list[tuple[int, int]]:
        """For each view that it goes through in a group, the sizes of its last dimension and of the one before.

        The view goes on for so many elements with one stride, and so many times with another.
        """
        return _runs(view for view in self.views if view.base not in group.levels)


class Elementwise(Recipe):
    """An element is computed from the elements at the same position."""

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return has_steps(node)

    @property
    def cost(self) -> float:  # type: ignore[override]
        return self.node.op.cost  # type: ignore[union-attr]

    @property
    def operations(self) -> int:  # type: ignore[override]
        return operations(self.node.op)


class Reduction(Recipe):
    """Many elements become one.  Where these are the rows of a kernel, it is complete at the end of each row."""

    reduces, repeatable, operations = True, False, 1

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.name in REDUCTIONS and node.size != node.inputs[0].size

    @staticmethod
    def loops_over(node: Node) -> Shape:
        return node.inputs[0].shape  # type: ignore[no-any-return]

    @cached_property
    def row(self) -> int | None:  # type: ignore[override]
        """How many elements become one, if they come in a row: if the last dimensions are reduced."""
        length, axes = self.size // self.node.size, self.node.attrs["axis"]
        long = [axis in axes for axis, size in enumerate(self.shape) if size != 1]
        return length if long == sorted(long) and length <= LONGEST_ROW and self.node.size > 1 else None

    @property
    def target(self) -> View:
        """Where the result lies: reduced dimensions do not move."""
        axes = self.node.attrs["axis"]
        kept = tuple([1 if a in axes else size for a, size in enumerate(self.shape)])
        return View(self.node, 0, kept, row_major(kept)).broadcast(self.shape)

    def level_in(self, elements: int, row: int | None) -> Level | None:
        level = super().level_in(elements, row)
        if level is None:
            return None
        return PER_ROW if level == PER_ELEMENT and self.row else ACROSS_ROWS

    def runs(self, group: Group) -> list[tuple[int, int]]:
        return super().runs(group) + (_runs([self.target]) if self.node in group.partials else [])


class Copy(Recipe):
    """The same elements one after the other: a reshape that no strides describe, a reduction of single elements."""

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.name == "reshape" or (node.name in REDUCTIONS and node.size == node.inputs[0].size)

    @staticmethod
    def loops_over(node: Node) -> Shape:
        return node.inputs[0].shape  # type: ignore[no-any-return]


class Place(Recipe):
    """A part of an array that is 0 elsewhere."""

    elsewhere = "it is placed elsewhere than it is computed at"

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.name != "place":
            return False
        part = views[node.inputs[0]]
        return part.base.name != "arange" and spans(node, part) is not None

    def read(self, view: View) -> View:
        return view

    def access(self, view: View) -> Access:
        return PLACED

    def runs(self, group: Group) -> list[tuple[int, int]]:
        parts = spans(self.node, self.reads[0]) or []
        return [(parts[-1].size, parts[-2].size)] if len(parts) > 1 else []


class Filled(Recipe):
    """A number everywhere, or a count of the positions: what loops make for themselves where they read it.

    It is computed where it has to be in memory: as an output, or for a library.
    """

    repeatable = False


class Library(Recipe):
    """What no loop computes: a library reads all inputs from memory, and makes the result."""

    repeatable = False
    by = "a library"

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return True

    @staticmethod
    def loops_over(node: Node) -> Shape:
        return ()

    def read(self, view: View) -> View:
        return view

    def loads(self, base: Node) -> bool:
        return True

    def access(self, view: View) -> Access:
        return IN_ORDER

    @property
    def count(self) -> Count:
        """What the library takes to compute it."""
        return library_count(self.node, dict(zip(self.node.inputs, self.reads)) | {self.node: whole(self.node)})

    @property
    def why(self) -> str:
        """Why it is not computed in a loop."""
        return f"{self.node.name} of no elements is a library call" if _is_empty(self.node) else why_not(self.node)


class UserKernel(Library):
    """A kernel of yours, which is called like a library."""

    by = "a kernel of yours"

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.op is not None and node.op.kind == "own"


CALLS: list[type[Recipe]] = [UserKernel, Library]  # these also take what has no elements: no loop needs rules for it
KINDS: list[type[Recipe]] = [Elementwise, Reduction, Copy, Place, *CALLS]


def recipes_of(graph: Graph) -> tuple[dict[Node, Recipe], Views]:
    """How each node is computed, by the first kind that takes it, and what each node is a view of."""
    views = views_of(graph)
    recipes: dict[Node, Recipe] = {}
    inputs = set(graph.inputs)
    in_memory = {views[node].base for node in graph.outputs}
    for position, node in enumerate(graph.nodes):
        if node.op is None or node in inputs or views[node].base is not node or is_made(node):
            continue
        recipe = recipes[node] = _kind_of(node, views)(node, views, position)
        if isinstance(recipe, Library):
            in_memory.update(recipe.bases)
    for position, node in enumerate(graph.nodes):
        if node in in_memory and is_made(node):
            recipes[node] = (Filled if node.size else Library)(node, views, position)
    return dict(sorted(recipes.items(), key=lambda item: item[1].position)), views


def _kind_of(node: Node, views: Views) -> type[Recipe]:
    """The first kind that takes a node."""
    for kind in CALLS if _is_empty(node) else KINDS:
        if kind.takes(node, views):
            return kind
    raise AssertionError("a library takes everything")


def _is_empty(node: Node) -> bool:
    return 0 in node.shape or any(isinstance(i, Node) and 0 in i.shape for i in node.inputs)


def _runs(views: Iterable[View]) -> list[tuple[int, int]]:
    dims = [view.dims for view in views if not (is_made(view.base) and view.base.name == "full")]
    return [(each[-1][0], each[-2][0]) for each in dims if len(each) > 1]
