"""Groups, which are the nodes of one kernel, and the partition of a graph into groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ...core.node import Node
from ..loops.scalar import accumulated_in
from ..nodes.graph import Check, Graph
from ..nodes.tally import listing_inside
from ..nodes.thresholds import FEW_PARTIALS
from ..nodes.titled import Titled
from ..nodes.view import View
from .compute import IN_ORDER, ONCE, PER_ELEMENT, PER_ROW, SINGLE, Compute, Level, level_of
from .kinds import Library
from .loop_shape import Chunking, Loops


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
    run: int = 1  # so many rows follow one another, because totals run over them

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
        """The group that has taken in this one, or this one."""
        group = self
        while group.merged_into is not None:
            group = group.merged_into
        return group

    def take(self, other: Group) -> None:
        """Take in all nodes of another group."""
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


class Multiplied(NamedTuple):
    """A product of the matrices of a kernel, or of their transposes if `turned`, with matrices on their right."""

    right: View
    out: View
    turned: bool


@dataclass(frozen=True, eq=False)
class Block:
    """A kernel over `rows` of a stack of matrices at a time, with products before it (`into`) and after it (`out`).

    The values in `inside` exist only in scratch memory.  If `triangular`, a block ends at the column of its last row.
    """

    into: tuple[Library, ...]
    out: tuple[tuple[Library, Node, Multiplied], ...]  # with the value of the kernel that each multiplies, and how
    inside: tuple[Node, ...]
    shape: tuple[int, ...]  # of the stack and of one matrix
    rows: int
    triangular: bool

    @property
    def products(self) -> tuple[Library, ...]:
        """All products."""
        return (*self.into, *[product for product, *_ in self.out])

    def listing(self, names: Mapping[Node, str]) -> str:
        """The size of a block, and the products in it."""
        *_, height, width = self.shape
        ends = ", up to the column of the last row" if self.triangular else ""
        before, after, inside = [
            ", ".join([names[node] for node in nodes]) or "nothing"
            for nodes in ([p.node for p in self.into], [p.node for p, *_ in self.out], self.inside)
        ]
        size = f"{self.rows} rows of {height} × {width}{ends}"
        return f"{size}; {before} before, {after} after; {inside} only in scratch memory"


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Titled):
    """A graph as a list of groups, in an order in which they can run; groups of equal depth are independent."""

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

    @cached_property
    def outputs(self) -> list[View]:
        """Each output as a view of memory."""
        return [self.views[node] for node in self.graph.outputs]

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

    def donated(self, wanted: Mapping[Node, Node]) -> tuple[Partition, dict[Node, str]]:
        """The partition with outputs stored in the memory of inputs, as `wanted`, and why some outputs are not.

        The kernel that reads an element last has to overwrite it.  So this kernel must make a single pass, must read
        the source at the position at which it writes, and must run after all other readers.  A kernel that no other
        kernel waits for is delayed until then.
        """
        if not wanted:
            return self, {}
        own = {group: copy(group) for group in self.groups}
        for group in own.values():
            group.inplace = dict(group.inplace)
        refused: dict[Node, str] = {}
        for output, source in wanted.items():
            home = self.home.get(output)
            if home is None or home.library is not None:
                refused[output] = "no kernel of ours computes it"
                continue
            group, depth = own[home], self._depth_after(source, home, own)
            reason = self._refused(group, output, source)
            if not reason and depth is None:
                reason = "a kernel that may run at the same time or later reads the source"
            if reason or depth is None:
                refused[output] = reason
                continue
            group.depth, group.inplace[output] = depth, source
        return replace(self, groups=tuple(sorted(own.values(), key=lambda g: g.depth))), refused

    def _depth_after(self, source: Node, group: Group, own: Mapping[Group, Group]) -> int | None:
        """The depth at which a group runs after all other readers of the source; None if others wait for the group, or
        overwrite before that depth what it reads.
        """
        others = max([own[g].depth for g in self._users.get(source, ()) if g is not group], default=-1)
        if others < own[group].depth:
            return own[group].depth
        made = {*group.stores, *group.partials}
        waiting = any(g is not group for node in made for g in self._users.get(node, ()))
        before = [g for g in own.values() if g.depth <= others + 1 and g is not own[group]]
        earlier = {node for g in before for node in g.inplace.values()}
        return None if waiting or not earlier.isdisjoint(group.loads) else others + 1

    def _refused(self, group: Group, output: Node, source: Node) -> str:
        if source.dtype != output.dtype or source.size != output.size:
            return "it has another dtype or size"
        if group.levels.get(output) != PER_ELEMENT or group.row is not None or output in group.finishes:
            return "its kernel makes more than one pass, or computes it for several others"
        if source in group.inplace.values() or output in group.inplace:
            return "something else is stored there"
        for node in (*group.levels, *group.partials):
            compute = self.computes[node]
            for view in compute.views:
                if view.base is source and compute.access(view) not in (SINGLE, IN_ORDER):
                    return "its kernel reads the source at other positions too"
        return ""

    def __repr__(self) -> str:
        return f"<Partition of {len(self.graph)} nodes: {len(self.groups)} groups, {len(self.kernels)} of them kernels>"

    def listing(self) -> str:
        """The nodes of each kernel, and why some nodes are in different kernels."""
        names = self.graph.names()
        lines: list[str] = []
        for group in self.groups:
            lines += _described(group, names, self.computes)
            if group in self.blocks:
                lines.append(f"  in blocks: {self.blocks[group].listing(names)}")
        if self.reasons:
            lines.append("not in one kernel:")
            lines += [f"  {names[a]} → {names[b]}: {why}" for (a, b), why in self.reasons.items()]
        return "\n".join(lines)


def _described(group: Group, names: dict[Node, str], computes: dict[Node, Compute]) -> list[str]:
    if group.library is not None:
        given = [names[r.base] if isinstance(r, View) else repr(r) for r in group.library.reads]
        call = f"{names[group.library.node]}({', '.join(given)}), by {group.library.by}"
        return [f"{group.name} (level {group.depth}): {call}", *listing_inside(group.library.node.attrs, "partition")]
    lines = [f"{group.name} (level {group.depth}): {group.loops}"]
    what = {PER_ELEMENT: "for each element", PER_ROW: "for each row", ONCE: "once"}
    for level in (ONCE, PER_ROW, PER_ELEMENT):
        nodes = [names[node] for node, at in group.levels.items() if at == level]
        if nodes:
            lines.append(f"  {what[level]}: {', '.join(nodes)}")
    if group.partials:
        lines.append(f"  across rows, to be finished later: {', '.join(names[node] for node in group.partials)}")
    lines.append(f"  reads {', '.join(names[node] for node in group.loads) or 'nothing'}")
    lines.append(f"  writes {', '.join(names[node] for node in group.stores) or 'partial results only'}")
    lines += [f"  {names[a]} is stored where {names[b]} was" for a, b in group.inplace.items()]
    return lines
