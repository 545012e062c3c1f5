"""Recomputing: a value that another kernel needs may take less time to compute again than to store and to load.

Fusion puts a node into the first kernel that it fits.  Where its readers are in other kernels, they may as well
compute it themselves, if they go through the same elements: a cast, a product with a constant, the mask of a ReLU.
Both ways are priced in bytes of memory traffic, from the last node to the first, so that whole chains move step by
step.
"""

from __future__ import annotations

from ..core.node import Node
from .groups import MOST_NODES, Group, Moved
from .levels import FULL, ONCE, ROW
from .recipes import Recipe
from .views import View


def recompute(
    recipes: dict[Node, Recipe], home: dict[Node, Group], computed_in: dict[Node, Group], kept: set[Node]
) -> list[Moved]:
    """Move nodes into the kernels that read them, or clone them there, where that costs less than memory does."""
    return _Movers(recipes, home, computed_in, kept).run()


def nbytes(node: Node) -> int:
    """The bytes of a node's value."""
    return node.size * int(node.dtype.itemsize)


class _Movers:
    def __init__(
        self, recipes: dict[Node, Recipe], home: dict[Node, Group], computed_in: dict[Node, Group], kept: set[Node]
    ) -> None:
        self.recipes, self.home, self.kept = recipes, home, kept
        self.places = {node: {group: None} for node, group in computed_in.items()}  # the groups that compute a node
        self.readers: dict[Node, list[Recipe]] = {}
        for recipe in recipes.values():
            for base in recipe.bases:
                self.readers.setdefault(base, []).append(recipe)

    def run(self) -> list[Moved]:
        moved = []
        for node in reversed(self.recipes):
            group = self.home[node]
            recipe = self.recipes[node]
            if node in self.kept or recipe.kind in ("reduce", "opaque", "made") or node not in group.levels:
                continue
            others = [g for g in self._reading_groups(node) if g is not group]
            if not others or any(g.opaque is not None for g in others):
                continue
            still_read = group in self._reading_groups(node)
            levels = {g: self._level(node, g) for g in others}
            saved = nbytes(node) * (1 + len(others))
            if "" in levels.values() or self._price(recipe, group, others, still_read) > saved:
                continue
            for other in others:
                self._move(recipe, other, levels[other])
            if not still_read:
                del self.places[node][group]
                del group.levels[node]
            moved.append(Moved(node, "recomputed" if still_read else "moved", len(others)))
        return moved

    def _reading_groups(self, node: Node) -> dict[Group, None]:
        return {group: None for reader in self.readers.get(node, ()) for group in self.places[reader.node]}

    def _level(self, node: Node, group: Group) -> str:
        """How often a group would compute a node of another one; empty if it reads it at other positions."""
        size = node.size
        readers = [reader for reader in self.readers[node] if group in self.places[reader.node]]
        if any(reader.kind == "place" for reader in readers):
            return ""
        if size == 1:
            return ONCE if group.elements > 1 else FULL
        level = FULL if size == group.elements else ROW if group.row and size * group.row == group.elements else ""
        for reader in readers:
            for read in reader.reads:
                if isinstance(read, View) and read.base is node and not read.in_order:
                    if level != ROW or not read.repeats or read.size != group.elements:
                        return ""
        return level

    def _price(self, recipe: Recipe, group: Group, others: list[Group], still_read: bool) -> float:
        """The traffic and the arithmetic that computing a node in other groups takes."""
        price = (len(others) - (not still_read)) * recipe.cost * recipe.size
        for base in recipe.bases:
            for other in others:
                if base in other.levels or other.size >= MOST_NODES:
                    return float("inf")
                if base not in other.loads:
                    price += nbytes(base)
            computed_here = base in group.levels and base not in self.kept
            if computed_here and not any(g is not group for g in self._reading_groups(base)):
                price += nbytes(base)  # which has to be stored then
            elif not still_read and base in group.loads and not self._else_read(base, group, recipe.node):
                price -= nbytes(base)
        return price

    def _else_read(self, base: Node, group: Group, node: Node) -> bool:
        """Whether a group reads a node for something besides one of its readers."""
        return any(group in self.places[r.node] for r in self.readers[base] if r.node is not node)

    def _move(self, recipe: Recipe, group: Group, level: str) -> None:
        node = recipe.node
        group.levels[node] = level
        group.loads.pop(node, None)
        self.places[node][group] = None
        for base in recipe.bases:
            if base not in group.levels:
                group.loads[base] = None
