"""Fusion by hand: divides a graph into kernels that the caller chooses, or says why that is not possible.

The rules and the kernels are those of `fuse`, so this shows what changes when a node moves to another kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from ...core.node import Node
from ...support.errors import CompileError
from .compute import ACROSS_ROWS, BY_ROW, PER_ELEMENT
from .fuse import Fusing, Misfit, settled
from .group import Group, Partition
from .kinds import Library

UNFINISHED = "a reduction across rows is complete only when the kernel has gone through all of them"


class Finish(NamedTuple):
    """A member of a kernel that reduces the partial results of a reduction across rows."""

    node: Node


Member = Node | Finish


def members_of(partition: Partition) -> list[list[Member]]:
    """The members of each kernel of a partition, in the form that `divided` takes."""
    kernels: list[list[Member]] = []
    for group in partition.groups:
        nodes = [group.library.node] if group.library is not None else [*group.levels, *group.partials]
        computed = [n for n in dict.fromkeys(nodes) if n not in group.finishes or n in group.partials]
        kernels.append([*computed, *map(Finish, group.finishes)])
    return kernels


def divided(partition: Partition, kernels: Sequence[Collection[Member]]) -> Partition:
    """The graph of a partition divided into these kernels, which must contain all computed nodes.

    >>> from minigrad.compile.fusion.fuse import fuse
    >>> partition = fuse(mg.trace(lambda x: mg.tanh(x) * 2 + 1, mg.ones(4)))
    >>> tanh, multiply, add = partition.computes
    >>> divided(partition, [[tanh], [multiply, add]])
    <Partition of 3 nodes: 2 groups, 2 of them kernels>
    """
    return _ByHand(partition, [list(kernel) for kernel in kernels if kernel]).partition()


class _ByHand:
    def __init__(self, old: Partition, kernels: list[list[Member]]) -> None:
        self.old, self.computes, self.kernels = old, old.computes, kernels
        self.kept = old.kept
        self.first: dict[Member, int] = {}  # the kernel that stores a member for all others
        for number, kernel in enumerate(kernels):
            for member in kernel:
                self.first.setdefault(member, number)
        self.rules = Fusing(self.computes, self.kept)
        self.groups: dict[int, Group] = {}

    def partition(self) -> Partition:
        """The kernels in an order in which they can run, with their loads and stores."""
        levels = self._levels()
        for number in sorted(levels, key=lambda n: (levels[n], n)):
            self.groups[number] = self._group(self.kernels[number], 2 * levels[number])
        computed_in = {m: self.groups[n] for m, n in self.first.items() if not isinstance(m, Finish)}
        home = dict(computed_in)
        for node, group in computed_in.items():
            if node in group.partials:
                put_together = self.first.get(Finish(node))
                home[node] = self.groups[put_together] if put_together is not None else self._finish(node, group)
        old, effects = self.old, set(self.old.graph.effects)
        groups = settled(home, computed_in.values(), self.computes, self.kept, effects, old.chunking)
        return replace(old, groups=tuple(groups), blocks={})

    def _sources(self, member: Member) -> list[Member]:
        """The members of kernels that a member reads."""
        if isinstance(member, Finish):
            return [member.node]
        bases = self.computes[member].bases
        found: list[Member] = [Finish(base) if Finish(base) in self.first else base for base in bases]
        return [source for source in found if source in self.first]

    def _levels(self) -> dict[int, int]:
        """The length of the longest chain of kernels before each kernel."""
        after: dict[int, set[int]] = {}
        for number, kernel in enumerate(self.kernels):
            read = [source for member in kernel for source in self._sources(member) if source not in kernel]
            after[number] = {self.first[source] for source in read}
        levels: dict[int, int] = {}
        try:
            for number in TopologicalSorter(after).static_order():
                levels[number] = max([levels[other] + 1 for other in after[number]], default=0)
        except CycleError as error:
            names = " and ".join(_listed(self.kernels[number]) for number in sorted(set(error.args[1])))
            raise CompileError(f"kernels would wait for each other: {names}") from None
        return levels

    def _group(self, kernel: list[Member], depth: int) -> Group:
        finishes = [member.node for member in kernel if isinstance(member, Finish)]
        nodes = sorted([m for m in kernel if not isinstance(m, Finish)], key=lambda n: self.computes[n].position)
        for node in nodes:
            if node in finishes:
                raise CompileError(f"{node.name} cannot be finished where its parts are computed: {UNFINISHED}")
            compute = self.computes[node]
            if isinstance(compute, Library):
                if len(kernel) > 1:
                    raise CompileError(f"{_name(node)} can't be in a kernel with others: {compute.why}")
                return Group(depth, library=compute)
        group = Group(depth, max([*[node.size for node in finishes], *[self.computes[node].size for node in nodes]]))
        rows = self._rows(nodes, {*nodes, *finishes}, group.elements)
        if len(rows) > 1:
            raise CompileError(f"{_listed(nodes)}: rows of different length: {' and '.join(map(str, sorted(rows)))}")
        group.row = rows.pop() if rows else None
        for node in finishes:
            level = group.level_of(node.size)
            if not level:
                raise CompileError(f"{_listed(kernel)}: a loop of {node.size} elements against one of {group.elements}")
            group.finish(node, level)
        for node in nodes:
            self._put(node, group)
        return group

    def _rows(self, nodes: list[Node], members: set[Node], elements: int) -> set[int]:
        """The lengths of rows that nodes need in a kernel over this many elements."""
        rows = set()
        for node in nodes:
            compute = self.computes[node]
            if compute.size != elements:
                continue
            if compute.row:
                rows.add(compute.row)
            inside = [v for v in compute.views if v.base in members]
            rows |= {v.repeats for v in inside if compute.access(v) is BY_ROW}
        return rows

    def _put(self, node: Node, group: Group) -> None:
        compute = self.computes[node]
        here = [(v, group) for v in compute.views if v.base in group.levels]
        early = [v.base for v in compute.views if v.base in group.partials]
        try:
            if any(base not in group.levels for base in early):
                raise Misfit(UNFINISHED)
            fit = self.rules.fit(compute, here, [group])
        except Misfit as misfit:
            others = [n for n in (*group.levels, *group.partials) if n is not node]
            raise CompileError(f"{_name(node)} does not fit into the kernel of {_listed(others)}: {misfit}") from None
        group.run = max(group.run, compute.run)
        if fit.level == ACROSS_ROWS:
            group.partials[node] = None
        else:
            group.levels[node] = fit.level

    def _finish(self, node: Node, group: Group) -> Group:
        finish = Group(group.depth + 1, node.size)
        finish.finish(node, PER_ELEMENT)
        return finish


def _name(member: Member) -> str:
    return member.node.name if isinstance(member, Finish) else member.name


def _listed(members: Collection[Member]) -> str:
    return ", ".join(map(_name, members))
