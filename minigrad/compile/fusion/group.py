"""Groups, which are the nodes of one kernel, their loops, and the partition of a graph into groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd, isqrt
from typing import Any, NamedTuple

from ...core.node import Node
from ...core.primitive import P
from ..loops.operations import accumulated_in
from ..nodes.graph import Check, Graph, Titled, later
from ..nodes.thresholds import (
    ADDITIONS_IN_A_ROW,
    ELEMENTS_OF_A_PARTIAL,
    ENOUGH_CHUNKS,
    FEW_PARTIALS,
    FEWEST_ROUNDS,
    FEWEST_TO_REDUCE,
    LARGE_MATRIX,
    MOST_CHUNKS,
    SHORTEST_CHUNK,
    SHORTEST_ROW,
)
from ..nodes.view import Dims, View
from .compute import IN_ORDER, ONCE, PER_ELEMENT, PER_ROW, SINGLE, Compute, Level, Looped, level_of
from .kinds import Library, Place

# Loops: the elements of a kernel are cut into rows and columns, and rows into chunks ----------------------------------


@dataclass(frozen=True)
class Chunking:
    """How a reduction across rows is divided into chunks.

    The result of a floating-point sum depends on its grouping.  So the chunks depend on the shape alone, not on the
    number of threads.
    """

    most: int = MOST_CHUNKS  # the most chunks
    least: int = SHORTEST_CHUNK  # the fewest elements in a chunk
    spread: int = ELEMENTS_OF_A_PARTIAL  # the fewest elements for each partial result
    long: bool = True  # whether a thread computes many elements: on a GPU, it computes one, and loops are short
    lanes: int = 8  # float32 in a vector of a product by loops; 0 if libraries compute all products
    registers: int = 16  # vectors
    products: bool = False  # whether loops compute all products of matrices: libraries are slower


@dataclass(frozen=True)
class Loops:
    """The loops of a kernel: `rows` × `columns`, or one over all elements (`flat`).

    A round takes `steps` elements of a row: the number for which all views are evenly spaced, if that is too few for a
    row.  A kernel that reduces across rows has `chunks` of `chunk` rows (or elements), each with partial results.  If
    the chunks are `apart`, no two of them reduce to the same place, and their results are final.  A kernel with running
    totals of rows has chunks too: a chunk is a run.  With a `triangle`, the rows are those of matrices with this number
    of rows, and end at the column of the last row of a range.
    """

    elements: int
    columns: int
    flat: bool
    steps: int = 1
    chunks: int = 0
    chunk: int = 0
    apart: bool = False
    triangle: int = 0

    @property
    def rows(self) -> int:
        return 1 if self.flat else self.elements // self.columns

    @property
    def parts(self) -> int:
        """The number of partial results for each place."""
        return 1 if self.apart else self.chunks

    @property
    def units(self) -> int:
        """The number of chunks, rows or elements that threads can share."""
        return self.chunks or (self.elements if self.flat else self.rows)

    def __str__(self) -> str:
        columns = f"{self.columns // self.steps} × {self.steps}" if self.steps > 1 else str(self.columns)
        what = f"{self.elements} element{'s' * (self.elements != 1)}" if self.flat else f"{self.rows} rows of {columns}"
        return f"{what} in {self.chunks} chunks{', each with its own results' * self.apart}" if self.chunks else what


def loops_of(group: Looped, computes: dict[Node, Compute], chunking: Chunking) -> Loops:
    """The loops of a group: rows as reductions need them, or so long that every view is evenly spaced in a row."""
    elements, flat = group.elements, False
    columns, steps = (group.row, 1) if group.row is not None else _row(_runs(group, computes), chunking)
    to_steps = steps > 1 and any(computes[node].target.dims[-1:] == [(steps, 1)] for node in group.partials)
    if to_steps and columns < FEWEST_TO_REDUCE * steps:
        columns, steps = steps, 1
    if not columns:
        columns, flat = elements, not _is_cut(group, computes)
    if group.run > 1:
        return Loops(elements, columns, flat, steps, elements // (columns * group.run), group.run)
    if not group.partials:
        return Loops(elements, columns, flat, steps)
    units = elements if flat else elements // columns
    widest = max(node.size for node in group.partials)
    enough = _chunks_for_sums(group, computes, 1 if flat else columns, units)
    enough = max(enough, min(chunking.most, elements // chunking.least))
    chunks = max(1, min(enough, elements // (chunking.spread * widest), units))
    outer, *others = {computes[node].outer for node in group.partials}
    apart = chunking.long and outer > 1 and not others and units % outer == 0
    if apart and outer >= min(chunks, ENOUGH_CHUNKS):
        return Loops(elements, columns, flat, steps, outer, units // outer, apart=True)
    length = -(-units // chunks)
    return Loops(elements, columns, flat, steps, -(-units // length), length)


def _is_cut(group: Looped, computes: dict[Node, Compute]) -> bool:
    """Whether all elements are one row, because a row is cut where a placed part ends: no loop has choices then.

    Threads cannot share a single row.
    """
    if group.partials or group.run > 1:
        return False
    return any(c.edges(group.elements) for n in group.levels if isinstance(c := computes[n], Place))


def _chunks_for_sums(group: Looped, computes: dict[Node, Compute], columns: int, units: int) -> int:
    """In how many chunks few floats are added to one place in a row: rounding errors grow with their number.

    A sum of everything stays: its loops add up in blocks (`loops.bands`).  The partial results are added up, too, so
    there are never more of them than additions in a chunk.
    """
    additions = 0
    for node in group.partials:
        compute = computes[node]
        if node.size > 1 and compute.reduction == "sum" and accumulated_in(node).kind == "f":
            parts = split(compute.target.dims, columns)
            totals = parts is not None and not any(stride for _, stride in parts[1])  # a row's sum is in a register
            additions = max(additions, units * (1 if totals else columns) // node.size)
    return -(-additions // max(ADDITIONS_IN_A_ROW, isqrt(additions)))


def _row(runs: list[tuple[int, int]], chunking: Chunking) -> tuple[int, int]:
    """The length of a row, and the elements of a round; (0, 1) if rows would be too short."""
    if not runs:
        return 0, 1
    steps = gcd(*[last for last, _ in runs])
    if steps >= SHORTEST_ROW:
        return steps, 1
    rounds = gcd(*[before if last == steps else last // steps for last, before in runs])
    if chunking.long and steps > 1 and rounds >= FEWEST_ROUNDS:
        return steps * rounds, steps
    return 0, 1


def _runs(group: Looped, computes: dict[Node, Compute]) -> list[tuple[int, int]]:
    """The sizes of the last two dimensions of all arrays that the nodes loop over, last one first."""
    runs = []
    for node in (*group.levels, *group.partials):
        compute = computes[node]
        if compute.size == group.elements and node not in group.finishes:
            runs += [(dims[-1][0], dims[-2][0]) for dims in compute.walks(group) if len(dims) > 1]
    return runs


def split(dims: Dims, columns: int) -> tuple[Dims, Dims] | None:
    """Dimensions cut into those of rows and those of columns; None if there is no such cut.

    >>> split([(6, 1)], 3), split([(2, 1), (3, 2)], 3)
    (([(2, 3)], [(3, 1)]), ([(2, 1)], [(3, 2)]))
    """
    outer: Dims = list(dims)
    inner: Dims = []
    left = columns
    while left > 1:
        if not outer:
            return None
        size, stride = outer.pop()
        if left % size == 0:
            inner.insert(0, (size, stride))
            left //= size
        elif size % left == 0:
            inner.insert(0, (left, stride))
            outer.append((size // left, stride * left))
            left = 1
        else:
            return None
    return outer, inner


# Groups ---------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Group:
    """The nodes of one kernel over `elements` in rows of `row` (None: nothing needs rows).

    `levels` holds how often each node is computed.  `partials` are reductions across rows: this kernel reduces each of
    its chunks of rows, and a later kernel, which has the node in `levels` and in `finishes`, reduces the partial
    results.  A group with a `library` call has no other node.
    """

    depth: int  # larger than the depths of all groups whose results it reads
    elements: int = 1
    row: int | None = None
    library: Library | None = None
    run: int = 1  # the number of rows that follow one another, because totals run over them

    def __post_init__(self) -> None:
        self.levels: dict[Node, Level] = {}
        self.partials: dict[Node, None] = {}
        self.finishes: dict[Node, None] = {}
        read = () if self.library is None else self.library.bases
        self.loads: dict[Node, None] = dict.fromkeys(read)  # the nodes that it reads from memory
        self.stores: list[Node] = []  # the nodes that others read from memory, or that are outputs
        self.merged_into: Group | None = None
        self.is_read = False  # whether another group reads it
        self.inplace: dict[Node, Node] = {}  # a node that is stored -> the node whose memory it overwrites
        self.loops: Loops | None = None  # None for a library call
        self.name = ""

    @property
    def size(self) -> int:  # the number of nodes that it computes
        return len(self.levels) + len(self.partials)

    def current(self) -> Group:
        """The group that this one was merged into, or this one."""
        group = self
        while group.merged_into is not None:
            group = group.merged_into
        return group

    def take(self, other: Group) -> None:
        """Add all nodes of another group."""
        self.levels |= other.levels
        self.partials |= other.partials
        self.finishes |= other.finishes
        self.loads |= other.loads
        self.is_read |= other.is_read
        other.merged_into = self

    def finish(self, node: Node, level: Level) -> None:
        """Add a reduction across rows whose partial results this group reduces."""
        self.levels[node] = level
        self.finishes[node] = None

    def level_of(self, size: int) -> Level | None:
        """How often it would compute `size` values; None if no loop of it fits."""
        return level_of(size, self.elements, self.row)

    def widen(self, elements: int) -> None:
        """Become a part of a kernel over more elements, which computes this group's nodes per row or once."""
        if self.elements != elements:
            level = ONCE if self.elements == 1 else PER_ROW
            self.levels = {node: level if old == PER_ELEMENT else old for node, old in self.levels.items()}
            self.elements = elements


class Factor(NamedTuple):
    """A product in blocks of rows: `left` @ `right` = `out`, each a stack of matrices.

    The parts are views of memory, or nodes in scratch memory; in a plan, these are numbers.  Where `left` is `turned`,
    the products of all blocks of its rows add up.
    """

    left: Any
    right: Any
    out: Any
    turned: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """A kernel over `rows` of a stack of matrices at a time, with products before it (`into`) and after it (`out`).

    The values in `inside` exist only in scratch memory.  If `triangular`, a block ends at the column of its last row.
    """

    into: dict[Library, Factor]
    out: dict[Library, Factor]
    inside: tuple[Node, ...]
    shape: tuple[int, ...]  # of the stack and of one matrix
    rows: int
    triangular: bool

    @property
    def products(self) -> tuple[Library, ...]:
        """All products."""
        return (*self.into, *self.out)

@dataclass(frozen=True, eq=False, repr=False)
class Partition(Titled):
    """A graph as a list of groups, in an order in which they can run; groups of equal depth are independent."""

    with_blocks = later("minigrad.compile.fusion.blocks", "with_blocks")  # needed if `may_have_blocks`
    listing = later("minigrad.compile.look.texts", "partition_listing")
    graph: Graph
    groups: tuple[Group, ...]
    computes: dict[Node, Compute]
    views: dict[Node, View]
    reasons: dict[tuple[Node, Node], str]  # (read, reader) -> why they are not in one kernel
    blocks: Mapping[Group, Block] = field(default_factory=dict)  # kernels that run together with products
    chunking: Chunking = field(default_factory=Chunking)

    def __post_init__(self) -> None:
        for group in self.groups:
            group.stores += [n for n in group.finishes if n in self.gathered and n not in group.stores]
        for number, group in enumerate(self.groups):
            group.name = group.name or f"kernel_{number}"

    @property
    def may_have_blocks(self) -> bool:
        """Whether there are a large kernel over rows, and two matrix products, which may stand before and after it."""
        products = [group for group in self.groups if group.library is not None and group.library.node.op is P.matmul]
        return len(products) > 1 and any(g.row is not None and g.elements >= LARGE_MATRIX for g in self.groups)

    @cached_property
    def outputs(self) -> list[View]:
        """Each output as a view of memory."""
        return [self.views[node] for node in self.graph.outputs]

    @property
    def kept(self) -> set[Node]:
        """The values that are stored whether or not a kernel reads them: for outputs and for checks."""
        looked_at = [check.node for check in self.checks]
        return {self.views[node].base for node in (*self.graph.outputs, *looked_at)}

    @cached_property
    def chunks_of(self) -> dict[Node, int]:
        """The number of partial results of each reduction across rows."""
        return {n: g.loops.parts for g in self.groups if g.loops is not None for n in g.partials}

    @cached_property
    def gathered(self) -> set[Node]:
        """The reductions across rows that are finished before the loop that reads them.

        Inside that loop, many partial results would be read in large steps.
        """
        return {n for g in self.groups for n in g.finishes if self._is_gathered(n, g)}

    def _is_gathered(self, node: Node, group: Group) -> bool:
        whole = group.loops is not None and group.loops.flat and not group.loops.chunks
        several = group.levels[node] == PER_ELEMENT and self.chunks_of[node] > FEW_PARTIALS
        return whole and several and accumulated_in(node) == node.dtype

    @property
    def kernels(self) -> list[Group]:
        """The groups that become kernels, without library calls."""
        return [group for group in self.groups if group.library is None or group.library.launched]

    def partial_bytes(self, node: Node) -> int:
        """The size of the partial results of a reduction across rows."""
        return int(node.size * accumulated_in(node).itemsize) * self.chunks_of[node]

    @cached_property
    def home(self) -> dict[Node, Group]:
        """The group that stores each node."""
        return {node: group for group in self.groups for node in group.stores}

    @cached_property
    def checked(self) -> dict[Group | None, list[tuple[Check, View]]]:
        """The checks after each group, with the views to check; None: the checks of inputs."""
        checked: dict[Group | None, list[tuple[Check, View]]] = {}
        for check in self.checks:
            view = self.views[check.node]
            checked.setdefault(self.home.get(view.base), []).append((check, view))
        return checked

    @property
    def checks(self) -> Sequence[Check]:
        """The checks of the graph."""
        return self.graph.checks

    @cached_property
    def _users(self) -> dict[Node, list[Group]]:
        """The groups that read or finish each node."""
        users: dict[Node, list[Group]] = {}
        for group in self.groups:
            for node in (*group.loads, *group.finishes):
                users.setdefault(node, []).append(group)
        return users

    def donated(self, wanted: Mapping[Node, Node]) -> Partition:
        """The partition with outputs stored in the memory of inputs, as `wanted`, where that is possible.

        The step that reads an element last must overwrite it.  So a kernel must make a single pass, and read the
        source at the position at which it writes.  It must run after all other readers: if no other step waits for it,
        it is delayed until then.  A write into a part of an array must be the only one that reads the array.
        """
        if not wanted:
            return self
        own = {group: copy(group) for group in self.groups}
        for group in own.values():
            group.inplace = dict(group.inplace)
        for output, source in wanted.items():
            steps = self._steps_between(source, output)
            ways = [(own[self.home[node]], node, base) for node, base in steps if node in self.home]
            depths = [self._depth_after(base, group, own) for group, _, base in ways]
            if len(ways) < len(steps) or -1 in depths or not all(self._may_overwrite(*way) for way in ways):
                continue
            for depth, (group, node, base) in zip(depths, ways):
                group.depth, group.inplace[node] = depth, base
        return replace(self, groups=tuple(sorted(own.values(), key=lambda g: g.depth)))

    def _steps_between(self, source: Node, output: Node) -> list[tuple[Node, Node]]:
        """The values on the way from an array to the last write into it, each with the one whose memory it may take."""
        found, node = list[tuple[Node, Node]](), output
        while node is not source:
            compute = self.computes.get(node)
            base = compute.bases[0] if isinstance(compute, Library) and compute.is_write else source
            found.insert(0, (node, base))
            node = base
        return found

    def _depth_after(self, source: Node, group: Group, own: Mapping[Group, Group]) -> int:
        """The depth at which a group runs after all other readers of the source; -1 if others wait for the group, or
        overwrite before that depth what it reads.
        """
        others = max([own[g].depth for g in self._users.get(source, ()) if own[g] is not group], default=-1)
        if others < group.depth:
            return group.depth
        made = {*group.stores, *group.partials}
        waiting = any(own[g] is not group for node in made for g in self._users.get(node, ()))
        before = [g for g in own.values() if g.depth <= others + 1 and g is not group]
        earlier = {node for g in before for node in g.inplace.values()}
        return -1 if waiting or not earlier.isdisjoint(group.loads) else others + 1

    def _may_overwrite(self, group: Group, node: Node, source: Node) -> bool:
        """Whether a step reads an element of the source last where it writes the same element of a node."""
        if source.dtype != node.dtype or source.size != node.size or self._is_returned(source):
            return False
        if group.library is not None:
            if not group.library.is_write:
                return False
            base, *others = group.library.views
            return base.in_order and source.device.is_standard and all(view.base is not source for view in others)
        if group.levels.get(node) != PER_ELEMENT or group.row is not None or node in group.finishes:
            return False
        if source in group.inplace.values() or node in group.inplace:
            return False
        computes = [self.computes[each] for each in (*group.levels, *group.partials)]
        read = [compute.access(view) for compute in computes for view in compute.views if view.base is source]
        return all(access in (SINGLE, IN_ORDER) for access in read)

    def _is_returned(self, node: Node) -> bool:
        return any(view.base is node for view in self.outputs)

    def __repr__(self) -> str:
        return f"<Partition of {len(self.graph)} nodes: {len(self.groups)} groups, {len(self.kernels)} of them kernels>"
