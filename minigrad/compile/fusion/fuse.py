"""Fusion: puts nodes into common kernels, so that the values between them never go through memory.

Fusion takes the nodes in topological order.  It puts each node into the kernel that computes its inputs, if the node
*fits*: if both loop over their elements in the same order, or if one has one value per row of the other.  A reduction
over rows fits as well, because a second pass over the row can read its result.

Kernels must not wait for each other in a cycle.  So every group has a *depth*, and reads only results of groups with a
smaller depth.  A node joins the deepest groups among its inputs or, if it does not fit, starts a deeper group.  A group
that no other group reads yet can still move to a larger depth.  This rules out cycles without a search, and groups of
the same depth can run in parallel: the listing calls the depth their level.

A reduction across rows, such as the gradient of a bias or a sum of everything, is complete only after all rows.  Its
kernel leaves partial results.  The node itself becomes a member of a deeper group, which finishes the reduction: for
other nodes of that group it is a node like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.node import Node
from ...core.override import overridable
from ..loops.operations import accumulated_in
from ..nodes.graph import Graph
from ..nodes.thresholds import MOST_NODES, MOST_OUTPUTS
from ..nodes.view import View
from .compute import ACROSS_ROWS, ONCE, PER_ELEMENT, Compute, Level, level_of
from .group import Chunking, Group, Partition, loops_of
from .kinds import AnyProduct, Library, LoopProduct, Scan, computes_of

LATE = "another input"  # so begins the reason of an input that is ready before others
Reads = list[tuple[View, Group]]  # the views that a node reads, and the groups that compute them


class Misfit(Exception):
    """The reason why a node does not fit into the kernel of its inputs."""


@overridable
def fuse(graph: Graph, chunking: Chunking | None = None) -> Partition:
    """Divide a graph among kernels and library calls."""
    chunking = chunking or Chunking()
    pays = {Scan: chunking.long, LoopProduct: chunking.lanes > 0}
    left_out = [kind for kind, here in pays.items() if not here]
    computes, views = computes_of(graph, left_out, [AnyProduct] if chunking.products else [])
    checks = [check for compute in computes.values() for check in compute.checks]
    graph = graph.checking(checks)
    looked_at = [check.node for check in graph.checks]
    fusion = Fusing(computes, {views[node].base for node in (*graph.outputs, *looked_at)})
    for compute in computes.values():
        fusion.place(compute)
    home = {node: group.current() for node, group in fusion.home.items()}
    readers = [group.current() for group in fusion.computed_in.values()]
    effects = {views[node].base for node in graph.effects}
    groups = settled(home, readers, computes, fusion.kept, effects, chunking)
    return Partition(graph, tuple(groups), computes, views, fusion.reasons, chunking=chunking)


class Fit(NamedTuple):
    """The place of a node: the groups to join, the elements and row of their kernel, and the node's level there."""

    groups: list[Group]
    elements: int
    row: int | None
    level: Level


class Fusing:
    """Puts nodes into groups, one after the other."""

    def __init__(self, computes: dict[Node, Compute], kept: set[Node]) -> None:
        self.computes = computes
        self.kept = kept  # the nodes that must be in memory at the end
        self.home: dict[Node, Group] = {}  # the group that has a node's value
        self.computed_in: dict[Node, Group] = {}  # the group that reads its inputs: differs for reductions across rows
        self.last_effect: Group | None = None
        self.reading: dict[Any, Group] = {}  # (depth, array, elements) -> a group that reads the array
        self.reasons: dict[tuple[Node, Node], str] = {}

    def place(self, compute: Compute) -> None:
        """Put a node into a group."""
        if isinstance(compute, Library):
            self._place_library(compute)
            return
        reads = self._computed_reads(compute)
        depth = 0
        for view, group in reads:
            if group.library is not None:
                self.reasons[view.base, compute.node] = group.library.why
            depth = max(depth, group.depth + (group.library is not None))
        while True:
            here = [(view, group) for view, group in reads if group.depth == depth]
            try:
                fit = self.fit(compute, here)
                break
            except Misfit as misfit:
                for view, _ in here:
                    self.reasons[view.base, compute.node] = str(misfit)
                depth += 1
        fit = self._put_off(compute, reads, here, fit, depth)
        ready = {v.base: g.depth + (g.library is not None) for v, g in reads}
        latest = max(ready, key=ready.__getitem__, default=compute.node)
        why = f"{LATE} ({latest.name}) is ready only later"
        for view, group in reads:
            if group.depth < depth:
                group.is_read = True
                self.reasons.setdefault((view.base, compute.node), why)
            else:
                self.reasons.pop((view.base, compute.node), None)
        self._add(compute, self._joined(fit, compute, depth), fit.level)

    def _put_off(self, compute: Compute, reads: Reads, here: Reads, fit: Fit, depth: int) -> Fit:
        """Move groups that no group reads yet to the depth of this node, if they fit there."""
        early = dict.fromkeys(g for _, g in reads if g.depth < depth and not g.is_read and not g.partials)
        for group in early:
            if group.library is not None:
                continue
            candidates = here + [(view, g) for view, g in reads if g is group]
            try:
                fit = self.fit(compute, candidates)
            except Misfit:
                continue
            here, group.depth = candidates, depth
        return fit

    def _computed_reads(self, compute: Compute) -> Reads:
        home = self.home
        return [(v, home[v.base].current()) for v in compute.views if v.base in home and v.base in compute.bases]

    def _place_library(self, compute: Library) -> None:
        reads = self._computed_reads(compute)
        group = Group(max([g.depth + 1 for _, g in reads], default=0), library=compute)
        if compute.node.effect is not None:
            if self.last_effect is not None:
                group.depth = max(group.depth, self.last_effect.depth)
            self.last_effect = group  # later effects may not run before it
        self.home[compute.node] = self.computed_in[compute.node] = group
        for view, other in reads:
            other.is_read = True
            self.reasons[view.base, compute.node] = compute.why

    # Where a node fits ------------------------------------------------------------------------------------------------

    def fit(self, compute: Compute, here: Reads, others: Iterable[Group] = ()) -> Fit:
        """How a node joins the groups that it reads from, and `others`.

        A `Misfit` is the reason why it cannot join them.
        """
        demands = []
        for view, group in here:
            need = compute.needs(view, group.levels[view.base], group)
            if need is None:
                raise Misfit(compute.elsewhere)
            demands.append(need)
        groups = list(dict.fromkeys([*[group for _, group in here], *others]))
        sizes = [*[n for n, _ in demands], *[g.elements for g in groups]]
        elements = max([compute.size, *sizes])
        rows = {row for _, row in demands if row}
        rows |= {g.row for g in groups if g.row and g.elements == elements}
        if len(rows) > 1:
            lengths = " and ".join(map(str, sorted(rows)))
            raise Misfit(f"rows of different length: {lengths}")
        row = rows.pop() if rows else None
        level = compute.level_in(elements, row)
        if level is None:
            raise Misfit(f"a loop of {compute.size} elements against one of {elements}")
        for g in groups:
            theirs = level_of(g.elements, elements, row if g.row is None else None)
            if g.elements != elements and (not theirs or (theirs == ONCE and g.partials)):
                raise Misfit(f"a loop of {g.elements} elements against one of {elements}")
        runs = {run for run in (compute.run, *[g.run for g in groups]) if run > 1}
        across = level == ACROSS_ROWS or any(g.partials for g in groups)
        if len(runs) > 1 or (runs and across):
            raise Misfit("running totals need a kernel without other sums across rows")
        if sum([g.size for g in groups]) >= MOST_NODES:
            raise Misfit(f"the kernel has {MOST_NODES} nodes already")
        if compute.row and compute.size == elements:
            if row not in (None, compute.row):
                why = f"it reduces rows of {compute.row} elements"
                raise Misfit(f"{why}, the kernel has rows of {row}")
            row = compute.row
        if self._outputs(groups) + (compute.node in self.kept) > MOST_OUTPUTS:
            raise Misfit(f"the kernel has {MOST_OUTPUTS} results of the program already")
        return Fit(groups, elements, row, level)

    def _outputs(self, groups: list[Group]) -> int:
        if len(self.kept) <= MOST_OUTPUTS:
            return 0
        return sum(node in self.kept for group in groups for node in group.levels)

    # Joining ----------------------------------------------------------------------------------------------------------

    def _joined(self, fit: Fit, compute: Compute, depth: int) -> Group:
        """Join several groups; if there are none, take a group that reads the same array, or a new one."""
        groups, elements, row, _ = fit
        if not groups:
            for base in compute.bases:
                other = self.reading.get((depth, base, elements))
                if other is None:
                    continue
                other = other.current()
                fits = other.depth == depth and other.elements == elements
                fits = fits and (other.row == row or other.row is None or row is None) and other.run == compute.run
                if fits and other.size < MOST_NODES and self._outputs([other]) < MOST_OUTPUTS:
                    groups, row = [other], row or other.row
                    break
        if not groups:
            groups = [Group(depth, elements)]
        group = max(groups, key=lambda g: g.size)
        for other in groups:
            other.widen(elements)
        for other in groups:
            if other is not group:
                group.take(other)
        group.row = row
        group.run = max([compute.run, *[g.run for g in groups]])
        if len(groups) > 1:
            self._join_finishes(group)
        return group

    def _join_finishes(self, group: Group) -> None:
        """Join the groups that finish the reductions of one kernel, if they loop over as many elements."""
        seen: dict[tuple[int, int, int | None], Group] = {}
        for node in group.partials:
            finish = self.home[node].current()
            first = seen.setdefault((finish.depth, finish.elements, finish.row), finish)
            if first is not finish and first.size + finish.size < MOST_OUTPUTS:
                first.take(finish)

    def _add(self, compute: Compute, group: Group, level: Level) -> None:
        node = compute.node
        self.computed_in[node] = self.home[node] = group
        if level == ACROSS_ROWS:
            group.partials[node] = None
            self.home[node] = self._finish(node, group)
        else:
            group.levels[node] = level
        for base in compute.bases:
            if base not in group.levels:
                group.loads[base] = None
                self.reading[group.depth, base, group.elements] = group

    def _finish(self, node: Node, group: Group) -> Group:
        """A deeper group that finishes a reduction; reductions of the same size share it."""
        finish = None
        for other in group.partials:
            known = self.home[other].current() if other is not node else None
            if known is not None and (known.depth, known.elements) == (group.depth + 1, node.size):
                finish = known if known.size < MOST_OUTPUTS else None
        if finish is None:
            finish = Group(group.depth + 1, node.size)
        finish.finish(node, PER_ELEMENT)
        return finish


# Loads and stores -----------------------------------------------------------------------------------------------------


def settled(
    home: dict[Node, Group], reading: Iterable[Group], computes: dict[Node, Compute],
    kept: set[Node], effects: set[Node], chunking: Chunking,
) -> list[Group]:
    """The groups that are needed, with their loops, loads and stores, in the order of their depths.

    It goes from the deepest group to the first, because the loads of later groups decide what a group stores.
    """
    groups = list(dict.fromkeys([*home.values(), *reading]))
    groups.sort(key=lambda g: g.depth)
    wanted = set(kept)
    unfinished: set[Node] = set()
    needed = []
    for group in reversed(groups):
        if group.library is not None:
            if group.library.node in wanted or group.library.node in effects:
                group.stores = [group.library.node]
                wanted |= group.loads.keys()
                needed.append(group)
            continue
        members = [n for n in group.levels if n in wanted and home[n] is group]
        partials = [n for n in group.partials if n in unfinished]
        if not members and not partials:
            continue
        in_order = {n: computes[n].position for n in _reached(group, [*members, *partials], computes)}
        order = sorted(in_order, key=in_order.__getitem__)
        group.levels = {n: group.levels[n] for n in order if n in group.levels}
        group.partials = {n: None for n in order if n in group.partials}
        group.finishes = {n: None for n in group.finishes if n in group.levels}
        bases = [base for n in order if n not in group.finishes for base in computes[n].bases]
        group.loads = {base: None for base in bases if base not in group.levels}
        group.stores = sorted(members, key=in_order.__getitem__)
        wanted |= group.loads.keys()
        unfinished |= group.finishes.keys()
        group.loops = loops_of(group, computes, chunking)
        needed.append(group)
    return _without_idle_finishes(needed[::-1])


def _reached(group: Group, roots: list[Node], computes: dict[Node, Compute]) -> set[Node]:
    """The nodes of a group that some of its nodes are computed from."""
    found, stack = set(roots), list(roots)
    while stack:
        node = stack.pop()
        if node in group.finishes:
            continue
        for base in computes[node].bases:
            if base in group.levels and base not in found:
                found.add(base)
                stack.append(base)
    return found


def _without_idle_finishes(groups: list[Group]) -> list[Group]:
    """The groups without those that only finish reductions of a single chunk, whose results are final already."""
    final: dict[Node, Group] = {}
    for group in groups:
        if group.loops is not None and group.loops.parts == 1:
            final |= {n: group for n in group.partials if accumulated_in(n) == n.dtype}
    left = []
    for group in groups:
        if group.levels and not group.partials and all(n in group.finishes and n in final for n in group.levels):
            for node in group.levels:
                final[node].stores.append(node)
        else:
            left.append(group)
    return left
