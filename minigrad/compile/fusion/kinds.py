"""Kinds of computation: a class for each way in which nodes are computed.

A class defines at which level a kernel computes such a node, how the node reads its inputs, which rows it needs and
what it costs.  `lowering.elements` has one method per kind, which writes the statements of its loops.  So a new kind of
loop needs a class in `KINDS` and such a function.  A library computes the nodes that no loop computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import float32, float64, int32, int64
from ...core.node import Node
from ...core.primitive import P
from ..loops.operations import REDUCTIONS, SCANS, has_steps, identity
from ..nodes.graph import Check, Graph
from ..nodes.thresholds import LONGEST_ROW, ROWS_TO_COPY, SHORTEST_ROW, SHORTEST_VECTOR
from ..nodes.view import Dims, View, coalesced, is_filled, row_major, views_of, whole
from .compute import (
    ACROSS_ROWS,
    ELSEWHERE,
    IN_ORDER,
    ONCE,
    PER_ELEMENT,
    PER_ROW,
    PLACED,
    Access,
    Compute,
    Level,
    Looped,
    Views,
)
from .count import Count, eager_count, functions_of, library_count, operations

if TYPE_CHECKING:
    from .spans import Span


class Elementwise(Compute):
    """Computes an element from the elements at the same position."""

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return has_steps(node)

    @property
    def cost(self) -> float:  # type: ignore[override]
        return self.node.op.cost  # type: ignore[union-attr]

    @property
    def operations(self) -> int:  # type: ignore[override]
        return operations(self.node.op)


class Reduction(Compute):
    """Reduces many elements to one.  If these are a row of the kernel, the value is complete at the end of the row."""

    over_input, reduces, operations = True, True, 1

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.name in REDUCTIONS and node.size != node.inputs[0].size

    @property
    def reduction(self) -> str:  # type: ignore[override]
        return self.node.name

    @cached_property
    def row(self) -> int | None:  # type: ignore[override]
        """The number of elements that become one, if they form a row: if the last dimensions are reduced."""
        length, axes = self.size // self.node.size, self.node.attrs["axis"]
        long = [axis in axes for axis, size in enumerate(self.shape) if size != 1]
        return length if long == sorted(long) and length <= LONGEST_ROW and self.node.size > 1 else None

    @cached_property
    def outer(self) -> int:  # type: ignore[override]
        """The number of elements in the dimensions before the first one that is reduced."""
        return prod(self.shape[: min(a for a in self.node.attrs["axis"] if self.shape[a] != 1)])

    @property
    def target(self) -> View:
        """The place of the result, which does not move along reduced dimensions."""
        axes = self.node.attrs["axis"]
        kept = tuple([1 if a in axes else size for a, size in enumerate(self.shape)])
        return View(self.node, 0, kept, row_major(kept)).broadcast(self.shape)

    def level_in(self, elements: int, row: int | None) -> Level | None:
        level = super().level_in(elements, row)
        if level is None:
            return None
        return PER_ROW if level == PER_ELEMENT and self.row else ACROSS_ROWS

    def walks(self, group: Looped) -> list[Dims]:
        return super().walks(group) + ([self.target.dims] if self.node in group.partials else [])


class Scan(Compute):
    """Running totals along a dimension: of the rounds of a row, or of a run of rows, whose totals are kept in a row."""

    operations, cost = 1, 8.0

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.name not in SCANS or node.dtype.kind == "b":
            return False
        rounds, *inner = node.shape[node.attrs["axis"] :]
        return rounds > 1 and (prod(inner) == 1 or prod(inner) >= SHORTEST_ROW)

    @cached_property
    def row(self) -> int:  # type: ignore[override]
        axis = self.node.attrs["axis"]
        columns = prod(self.shape[axis + 1 :])
        return columns if columns > 1 else self.shape[axis]  # type: ignore[no-any-return]

    @cached_property
    def run(self) -> int:  # type: ignore[override]
        axis = self.node.attrs["axis"]
        return self.shape[axis] if prod(self.shape[axis + 1 :]) > 1 else 1  # type: ignore[no-any-return]

    def level_in(self, elements: int, row: int | None) -> Level | None:
        return PER_ELEMENT if self.size == elements else None


class Copy(Compute):
    """Copies elements in order: a reshape that is not a view, or a reduction of single elements."""

    over_input = True

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.name == "reshape" or (node.name in REDUCTIONS and node.size == node.inputs[0].size)


class Place(Compute):
    """Places an array as a part of a larger array that is 0 elsewhere."""

    aligned = False
    elsewhere = "it is placed elsewhere: written into a larger array, at other positions"

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.name != "place":
            return False
        part = views[node.inputs[0]]
        from .spans import spans

        return part.base.name != "arange" and spans(node, part) is not None

    def spans(self) -> list[Span]:
        """Where the part lies in the whole, outermost dimension first."""
        from .spans import spans

        return spans(self.node, self.reads[0]) or []

    def access(self, view: View) -> Access:
        return PLACED

    def edges(self, columns: int) -> list[int]:
        """Where the part begins and ends in a row of the whole; empty if it covers rows, or has holes in them."""
        found, inner = [], 1
        for span in reversed(self.spans()):
            if not span.covered and span.size * inner == columns:
                found = [span.start * inner, (span.start + span.length) * inner]
            inner *= span.size
        return found

    def walks(self, group: Looped) -> list[Dims]:
        return [[(span.size, span.stride) for span in self.spans()]]


class Gather(Compute):
    """Reads elements at positions from memory, as in `x[i]`: i has positions in the leading dimensions of x."""

    cost = 4.0
    elsewhere = "it is read at positions that an index array holds"
    first = 1  # the first input that holds positions

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.name == "gather" and not isinstance(node.dtype, tuple)

    @property
    def indexed(self) -> tuple[int, ...]:
        """The dimensions in which positions are given."""
        return tuple(self.node.inputs[0].shape[: len(self.node.inputs) - self.first])

    @property
    def front(self) -> int:
        """The number of dimensions of the positions, which are in front of the other dimensions in its loops."""
        return len(self.shape) - len(self.node.inputs[0].shape) + len(self.indexed)

    def seen(self, number: int, view: View) -> View:
        if number == 0:
            return view
        if number < self.first:
            return view.broadcast(self.shape)
        inner = len(self.shape) - self.front
        upright = View(view.base, view.offset, (*view.shape, *[1] * inner), (*view.strides, *[0] * inner))
        return upright.broadcast(self.shape)

    def within(self, view: View, step: int = 0) -> View:
        """A view in the shape of the loops, of the elements at position 0 in all indexed dimensions."""
        inner = view.strides[len(self.indexed) :]
        return View(view.base, view.offset, self.shape, (*[step] * self.front, *inner))

    @property
    def touched(self) -> list[View]:
        return [self.within(self.reads[0], step=1), *self.views[1:]]

    @property
    def positions(self) -> list[tuple[View, int]]:
        """The views of positions, and the sizes of their dimensions."""
        return list(zip(self.reads[self.first :], self.indexed))

    @property
    def checks(self) -> list[Check]:
        given = zip(self.node.inputs[self.first :], self.positions)
        return [
            Check(index, size, self.node)
            for index, (view, size) in given if not is_counted(view, size)
        ]

    def access(self, view: View) -> Access:
        return ELSEWHERE if view is self.reads[0] and view.base.size > 1 else super().access(view)

    def walks(self, group: Looped) -> list[Dims]:
        return [self.within(self.reads[0]).dims, *[view.dims for view, _ in self.positions]]


SCATTERS = {"scatter_add": "sum", "scatter_max": "max"}  # how they combine numbers


class Scatter(Gather):
    """Adds values to an array at positions, or takes maxima: a reduction across rows whose place in it is read.

    The array comes from memory, or is filled with the number that changes no sum or maximum.  A GPU has a library for
    it, which adds in any order.
    """

    reduces, operations, cost = True, 1, 1.0
    first = 2

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.name not in SCATTERS or node.dtype.kind == "b" or not node.device.is_standard:
            return False
        base = views[node.inputs[0]].base
        if is_filled(base):
            return base.attrs.get("value") == identity(SCATTERS[node.name], node.dtype)
        return base.size > 1 and node.dtype.itemsize > 2

    def looped(self) -> tuple[int, ...]:
        base, _, *indices = self.node.inputs
        return (*np.broadcast_shapes(*[index.shape for index in indices]), *base.shape[len(indices) :])

    @property
    def reduction(self) -> str:  # type: ignore[override]
        return SCATTERS[self.node.name]

    @property
    def start(self) -> View | None:  # type: ignore[override]
        """The array that it adds to, or takes maxima with, if that comes from memory."""
        base: View = self.reads[0]
        return None if is_filled(base.base) else base

    @property
    def target(self) -> View:
        return self.within(whole(self.node))

    @property
    def touched(self) -> list[View]:
        return self.views

    def level_in(self, elements: int, row: int | None) -> Level | None:
        level = super().level_in(elements, row)
        return None if level in (None, ONCE) else ACROSS_ROWS  # a loop over rows would add a single number in each

    def walks(self, group: Looped) -> list[Dims]:
        return [self.target.dims, *[view.dims for view in self.views[1:] if view.base not in group.levels]]


def is_counted(view: View, size: int) -> bool:
    """Whether the elements of a view are whole numbers, counted by a loop, that are all positions from 0 to `size`."""
    base = view.base
    if base.name != "arange" or not is_filled(base) or base.dtype.kind not in "iu":
        return False
    start, step = base.attrs["start"], base.attrs["step"]
    ends = start, start + step * (base.size - 1)
    return all(end.__class__ is int and 0 <= end < size for end in ends)


class Filled(Compute):
    """Fills memory with one number or with positions, for an output or a library; loops need no memory for these."""


class Library(Compute):
    """Calls a library, which reads all inputs from memory: for nodes that no loop computes."""

    loops = aligned = False
    by = "a library"
    launched = False  # whether loops compute it after all, in a kernel that no other node joins

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return True

    def access(self, view: View) -> Access:
        return IN_ORDER

    @property
    def count(self) -> Count:
        """The cost of the call; of a write, without a copy of what it writes into."""
        count = eager_count if self.is_write else library_count
        return count(self.node, dict(zip(self.node.inputs, self.reads)) | {self.node: whole(self.node)})

    @property
    def is_write(self) -> bool:
        """Whether it returns an array with new values at some places."""
        return self.node.op is P.put

    @cached_property
    def why(self) -> str:
        """The reason why no loop computes it, or the call whose result it is."""
        node = self.node.inputs[0] if self.node.op is P.project else self.node
        if functions_of(node.attrs):
            return f"the functions of {node.name} have kernels of their own"
        if _is_empty(self.node):
            return f"{node.name} of no elements is a library call"
        if node.op is not None and node.op.expr is not None:
            return f"{node.name} of integers is a library call: some values are errors"
        return f"{node.name} is a library call"


class Control(Library):
    """Runs the functions of a loop or branch, which have kernels of their own."""

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return bool(functions_of(node.attrs))

    @property
    def by(self) -> str:  # type: ignore[override]
        from .tally import rounds_text

        return rounds_text(self.node.attrs)


class UserKernel(Library):
    """Calls a user's kernel like a library."""

    by = "a kernel of your own"

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        return node.op is not None and node.op.kind == "own"

    @property
    def why(self) -> str:  # type: ignore[override]
        return f"{self.node.name} is a kernel of your own"


class LoopProduct(Library):
    """Multiplies matrices by loops, where these are better than a library.

    There are three cases.  A matrix would be a copy of windows, which loops read in place; or it lies in panels; or its
    elements are integers: BLAS has no product of integers.  `left` has the dimensions of the rows and of the sums of
    the left operand, `right` those of the sums and of the columns of the right one.
    """

    by, launched = "loops", True
    why = "a product by loops is a kernel of its own"  # type: ignore[assignment]

    def __init__(self, node: Node, views: Views, position: int) -> None:
        super().__init__(node, views, position)
        found = [_through_copy(view, views) for view in self.views]
        self.reads = tuple([view for view, _ in found])
        self.views = [view for view, _ in found]
        self.bases = tuple(dict.fromkeys(view.base for view in self.views))
        self.left, self.right = [_halves(view, count) for view, count in found]
        self.stack: tuple[Dims, Dims] = [], []  # the dimensions of a stack of products, in both operands

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.op is not P.matmul or node.dtype not in (float32, float64, int32, int64) or node.ndim != 2:
            return False
        found = [_through_copy(views[x], views)[0] for x in node.inputs]
        windows = any(view.size > view.base.size and 0 not in view.strides for view in found)
        if node.dtype in (float32, float64) and not (windows or _in_panels(found[1], node.inputs[1].shape)):
            return False
        return LoopProduct(node, views, 0).fits

    @property
    def fits(self) -> bool:
        """Whether its columns are long enough for vectors."""
        columns = self.right[1]
        if not columns or columns[-1][0] < SHORTEST_VECTOR or any(is_filled(view.base) for view in self.views):
            return False
        return columns[-1][1] == 1 or self.node.shape[-2] >= ROWS_TO_COPY


class AnyProduct(LoopProduct):
    """Multiplies matrices, and stacks of matrices, by loops where libraries are slower, as in a browser."""

    def __init__(self, node: Node, views: Views, position: int) -> None:
        super().__init__(node, views, position)
        if node.ndim > 2:
            one, other = [[*zip(node.shape[:-2], stacked(view, node).strides)] for view in self.views]
            self.stack = [dim for dim in one if dim[0] > 1], [dim for dim in other if dim[0] > 1]
            self.left, self.right = [
                (coalesced(view.shape[-2:-1], view.strides[-2:-1]), coalesced(view.shape[-1:], view.strides[-1:]))
                for view in self.views
            ]

    @staticmethod
    def takes(node: Node, views: Views) -> bool:
        if node.op is not P.matmul or node.dtype not in (float32, float64):
            return False
        matrices = all(isinstance(x, Node) and x.ndim > 1 for x in node.inputs)
        return matrices and AnyProduct(node, views, 0).fits


def stacked(view: View, node: Node) -> View:
    """Matrices, repeated as the stack of a node has them."""
    return view.broadcast((*node.shape[:-2], *view.shape[-2:]))


def _through_copy(view: View, views: Views) -> tuple[View, int]:
    """The elements that a view of a copied matrix reads before the copy, and how many dimensions are its rows."""
    base = view.base
    if base.name != "reshape" or base.ndim != 2 or len(view.shape) != 2 or base.inputs[0] not in views:
        return view, 1
    source = views[base.inputs[0]]
    shape, strides = source.shape, source.strides
    for count in range(len(shape) + 1):
        if prod(shape[:count]) == base.shape[0]:
            if view.shape == base.shape and view.in_order:
                return source, count
            if view.offset == 0 and view.shape == base.shape[::-1] and view.strides == (1, base.shape[1]):
                turned = shape[count:] + shape[:count], strides[count:] + strides[:count]
                return View(source.base, source.offset, *turned), len(shape) - count
    return view, 1


def _in_panels(view: View, shape: tuple[int, ...]) -> bool:
    """Whether the columns of a matrix lie in panels, one after the other, as the pass `packed` arranges them."""
    panels = view.shape[1:]
    return len(panels) == 2 and view.strides == (panels[1], shape[0] * panels[1], 1)


def _halves(view: View, count: int) -> tuple[Dims, Dims]:
    shape, strides = view.shape, view.strides
    return coalesced(shape[:count], strides[:count]), coalesced(shape[count:], strides[count:])


# These also take empty arrays, so that loops need no rule for them.
CALLS: list[type[Compute]] = [UserKernel, Control, Library]
KINDS: list[type[Compute]] = [Elementwise, Reduction, Scan, Copy, Place, Gather, Scatter, LoopProduct, *CALLS]


def computes_of(
    graph: Graph, without: Sequence[type[Compute]] = (), first: Sequence[type[Compute]] = ()
) -> tuple[dict[Node, Compute], Views]:
    """How each node is computed, by the first kind that takes it, and each node as a view of memory.

    The kinds in `without` are left out, and those in `first` come before all others.
    """
    kinds = [*first, *[kind for kind in KINDS if kind not in without]]
    views = views_of(graph)
    computes: dict[Node, Compute] = {}
    inputs = set(graph.inputs)
    in_memory = {views[node].base for node in (*graph.outputs, *[check.node for check in graph.checks])}
    for position, node in enumerate(graph.nodes):
        if node.op is None or node in inputs or views[node].base is not node or is_filled(node):
            continue
        for kind in CALLS if _is_empty(node) else kinds:  # the last kind takes every node
            if kind.takes(node, views):
                break
        compute = computes[node] = kind(node, views, position)
        if isinstance(compute, Library):
            in_memory.update(compute.bases)
        in_memory.update(views[check.node].base for check in compute.checks)
    for position, node in enumerate(graph.nodes):
        if node in in_memory and is_filled(node):
            computes[node] = (Filled if node.size else Library)(node, views, position)
    return dict(sorted(computes.items(), key=lambda item: item[1].position)), views


def _is_empty(node: Node) -> bool:
    return 0 in [size for each in (node, *node.inputs) if isinstance(each, Node) for size in each.shape]
