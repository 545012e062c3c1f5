"""Recomputes values in the kernels that read them, where that is cheaper than storing and loading them.

Fusion puts a node into the first kernel that it fits.  Kernels that read it and loop over the same elements can compute
it again: a cast, a product with a constant, the mask of a ReLU.  Both ways are priced in bytes of memory traffic, from
the last node to the first, so that long chains move step by step, a few nodes at a time.
"""

from __future__ import annotations

from ...core.node import Node
from .compute import Compute, Level
from .group import MOST_NODES, Group, Moved

CHEAP = 2.0  # bytes of memory traffic: the most that an input costs which is recomputed together with its reader
MOST_TOGETHER = 8  # the most nodes that move together
SHARED = 0.5  # the part of the price for storing a node with several readers: the others will read it, too


def recompute(
    computes: dict[Node, Compute], home: dict[Node, Group], computed_in: dict[Node, Group], kept: set[Node]
) -> list[Moved]:
    """Move or copy nodes into the kernels that read them, where that costs less than memory traffic."""
    return _Movers(computes, home, computed_in, kept).run()


class _Movers:
    def __init__(
        self, computes: dict[Node, Compute], home: dict[Node, Group], computed_in: dict[Node, Group], kept: set[Node]
    ) -> None:
        self.computes, self.home, self.kept = computes, home, kept
        self.readers: dict[Node, list[Compute]] = {}
        self.read_in: dict[Node, dict[Group, dict[Compute, None]]] = {}  # which groups read it, for which nodes
        for compute in computes.values():
            for base in compute.bases:
                self.readers.setdefault(base, []).append(compute)
            self._note_reads(compute, computed_in[compute.node])

    def run(self) -> list[Moved]:
        moved = []
        for node in reversed(self.computes):
            group = self.home[node]
            if node in self.kept or node not in group.levels or not self.computes[node].repeatable:
                continue
            reading = self._reading_groups(node)
            others = [g for g in reading if g is not group and node not in g.levels]
            if not others or any(g.library is not None for g in others):
                continue
            levels = {g: level for g in others if (level := self._level(node, g))}
            if len(levels) < len(others):
                continue
            still_read = group in reading
            cone = self._cone(node, group, levels)
            if self._price(cone, group, levels, still_read) > node.nbytes * (1 + len(others)):
                continue
            for member in cone:
                for other, level in levels.items():
                    self._move(member, other, level)
            if not still_read:
                self._leave(node, group)
            moved += [Moved(m, "recomputed" if still_read or m is not node else "moved", len(others)) for m in cone]
        return moved

    def _cone(self, node: Node, group: Group, levels: dict[Group, Level]) -> list[Node]:
        """A node and the cheap operations that it is computed from, as far as they are not in memory.

        If the node moved alone, its inputs would be stored instead, and nothing would be gained.
        """
        cone = [node]
        for member in cone:
            for view in self.computes[member].views:
                base = view.base
                if len(cone) == MOST_TOGETHER or base in cone or base not in group.levels:
                    continue
                alike = base.size == node.size and view.in_order and self.computes[base].repeatable
                if not alike or base in self.kept or self.computes[base].cost > CHEAP or self._is_stored(base, group):
                    continue
                if all(base not in g.levels and self._level(base, g) == level for g, level in levels.items()):
                    cone.append(base)
        return cone

    def _is_stored(self, node: Node, group: Group) -> bool:
        """Whether a node of a group is stored anyway."""
        return node in self.kept or any(node not in g.levels for g in self._reading_groups(node) if g is not group)

    def _reading_groups(self, node: Node) -> dict[Group, dict[Compute, None]]:
        return self.read_in.get(node, {})

    def _level(self, node: Node, group: Group) -> Level | None:
        """How often a group would compute a node of another group; None if it reads the node at other positions."""
        level = group.level_of(node.size)
        if level is None:
            return None
        as_it_is = (1, None), (group.elements, group.row)
        for reader in self.read_in[node].get(group, ()):
            for view in reader.views:
                if view.base is node and reader.needs(view, level, group) not in as_it_is:
                    return None
        return level

    def _price(self, cone: list[Node], group: Group, levels: dict[Group, Level], still_read: bool) -> float:
        """The cost of computing these nodes in other groups, as traffic and arithmetic."""
        node = cone[0]
        price = -self.computes[node].cost * node.size if not still_read else 0.0
        for member in cone:
            price += self.computes[member].cost * member.size * len(levels)
        for base in dict.fromkeys(b for member in cone for b in self.computes[member].bases if b not in cone):
            for other, level in levels.items():
                if other.size + len(cone) > MOST_NODES:
                    return float("inf")
                if base in other.levels and (other.levels[base] != level or base.size != node.size):
                    return float("inf")
                if base not in other.levels and base not in other.loads:
                    price += base.nbytes
            if base in group.levels and not self._is_stored(base, group):
                share = 1.0 if len(self.readers[base]) == 1 else SHARED
                price += share * base.nbytes  # this node has to be stored then
            elif not still_read and base in group.loads:
                others = [reader for reader in self.read_in[base].get(group, ()) if reader.node is not node]
                price -= 0 if others else base.nbytes
        return price

    def _move(self, node: Node, group: Group, level: Level) -> None:
        group.levels[node] = level
        group.loads.pop(node, None)
        self._note_reads(self.computes[node], group)
        for base in self.computes[node].bases:
            if base not in group.levels:
                group.loads[base] = None

    def _leave(self, node: Node, group: Group) -> None:
        """Remove a node from a group."""
        del group.levels[node]
        for base in self.computes[node].bases:
            reading = self.read_in[base]
            del reading[group][self.computes[node]]
            if not reading[group]:
                del reading[group]

    def _note_reads(self, compute: Compute, group: Group) -> None:
        for base in compute.bases:
            self.read_in.setdefault(base, {}).setdefault(group, {})[compute] = None
