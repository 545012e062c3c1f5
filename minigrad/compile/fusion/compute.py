"""`Compute`: how a node of a graph is computed, and at which level a kernel does it.

`kinds.py` has one class for each way of computing a node.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from math import prod
from typing import Any, Protocol

from ...core.node import Node
from ..nodes.graph import Check
from ..nodes.thresholds import LONGEST_ROW
from ..nodes.view import Dims, View, is_filled, whole

Views = dict[Node, View]


class Level(IntEnum):
    """How often a value is computed, from most to least often."""

    PER_ELEMENT = 1
    PER_ROW = 2
    ONCE = 3
    ACROSS_ROWS = 4  # reduced over all rows: complete at the end of the kernel, so another kernel finishes it


PER_ELEMENT, PER_ROW, ONCE, ACROSS_ROWS = Level


def level_of(size: int, elements: int, row: int | None) -> Level | None:
    """How often a kernel over `elements` in rows of `row` computes `size` values; None if no loop of it fits.

    >>> [level_of(size, 12, 4) for size in (12, 3, 1, 5)]
    [<Level.PER_ELEMENT: 1>, <Level.PER_ROW: 2>, <Level.ONCE: 3>, None]
    """
    if size == elements:
        return PER_ELEMENT
    return ONCE if size == 1 else PER_ROW if row and size * row == elements else None


class Access(Enum):
    """The element of a value that a computation reads at some position of its loops."""

    SINGLE = "one"  # the only element
    IN_ORDER = "order"  # the element at the same position
    BY_ROW = "rows"  # the element of the row
    PLACED = "placed"  # the element that is placed here in a larger array, if there is one
    ELSEWHERE = "elsewhere"


SINGLE, IN_ORDER, BY_ROW, PLACED, ELSEWHERE = Access


class Looped(Protocol):
    """What a computation reads of the group that it is in: how far its loops go, and which nodes they compute."""

    elements: int
    row: int | None
    run: int
    levels: dict[Node, Level]
    partials: dict[Node, None]
    finishes: dict[Node, None]


class Compute:
    """How one node is computed, by loops over `shape`.

    This is not always the shape of the result: a reduction loops over its input.  `reads` has a view of that shape, or
    a number, for each input of the node.
    """

    loops = True  # whether loops compute it
    over_input = False  # whether the loops go over the input instead of the result
    aligned = True  # whether inputs are read in the shape of the loops
    reduces = False  # whether the value is complete only after its loop
    reduction = ""  # the name of this reduction, in `REDUCTIONS`
    outer = 1  # the number of parts of the loops, one after the other, that reduce to parts of the result
    start: View | None = None  # what a reduction across rows starts with, if that is not the same number everywhere
    row: int | None = None  # the length of rows that it needs in a kernel of `size` elements; None if any length fits
    run = 1  # the number of rows that belong together, and follow one another
    operations = 0  # arithmetic operations per element
    cost = 0.25  # of an element, as bytes of memory traffic that take the same time
    elsewhere = "it is read at other positions than it is computed at"  # the reason if `needs` returns None

    def __init__(self, node: Node, views: Views, position: int) -> None:
        self.node, self.position = node, position  # in the graph
        self.shape = self.looped()
        self.size = prod(self.shape)
        reads: list[Any] = []
        self.views: list[View] = []
        bases: dict[Node, None] = {}
        for number, read in enumerate(node.inputs):
            if isinstance(read, Node):
                read = self.seen(number, views[read])
                self.views.append(read)
                if not (self.loops and is_filled(read.base)):
                    bases[read.base] = None
            reads.append(read)
        self.reads = tuple(reads)
        self.bases = tuple(bases)  # the nodes whose memory it reads, each once; without those that a loop makes itself

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        """Whether a node is computed in this way."""
        raise NotImplementedError

    def looped(self) -> tuple[int, ...]:
        """The shape of its loops."""
        return self.node.inputs[0].shape if self.over_input else self.node.shape if self.loops else ()

    def seen(self, number: int, view: View) -> View:
        """An input, as its loops read it."""
        return view.broadcast(self.shape) if self.aligned else view

    @property
    def target(self) -> View:
        """The place of the result, as a view with the shape of the loops."""
        return whole(self.node)

    @property
    def touched(self) -> list[View]:
        """Views with as many elements as it reads."""
        return self.views

    @property
    def checks(self) -> list[Check]:
        """The conditions for its result to be right."""
        return []

    # In a kernel ------------------------------------------------------------------------------------------------------

    def level_in(self, elements: int, row: int | None) -> Level | None:
        """How often a kernel over `elements` in rows of `row` computes it; None if no loop of it fits."""
        return level_of(self.size, elements, row)

    def access(self, view: View) -> Access:
        """How it reads one of its views."""
        if view.base.size == 1:
            return SINGLE
        if view.in_order:
            return IN_ORDER
        return BY_ROW if 0 < view.repeats <= LONGEST_ROW else ELSEWHERE

    def needs(self, view: View, level: Level, group: Looped) -> tuple[int, int | None] | None:
        """The elements and the row of a kernel that computes this node and the view's node, now at a level of a group.

        One element means that any number fits; None means that no kernel can compute both.
        """
        access = self.access(view)
        if access is SINGLE:
            return 1, None
        if access is IN_ORDER:
            return group.elements, group.row
        if access is BY_ROW and level == PER_ELEMENT and group.row is None:
            return view.size, view.repeats  # its loop becomes the loop over the rows of a wider kernel
        if access is BY_ROW and level == PER_ROW and view.size == group.elements:
            return group.elements, group.row
        return None

    def walks(self, group: Looped) -> list[Dims]:
        """The dimensions of all arrays that it loops over in a group: rows are cut along these."""
        levels = group.levels
        return [v.dims for v in self.views if v.base not in levels and (v.base.inputs or v.base.name != "full")]
