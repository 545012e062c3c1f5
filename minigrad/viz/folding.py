"""Less to look at: a whole scope as one box, and a row of scopes that are alike as one pile.

A picture of more than sixty boxes is hard to read.  So scopes are opened, the outermost first, while the picture stays
within its budget; the others are closed.  `layers[0]` to `layers[11]`, all alike, are one box `layers[0…11]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import groupby

from ..support.table import counted
from .naming import symbol_of
from .scene import Box, Edge, Scene

BUDGET = 60
Path = tuple[str, ...]
NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")


def fold(scene: Scene, budget: int = BUDGET, opened: Collection[Path] | None = None) -> Scene:
    """The scene with scopes closed: all but those in `opened`, or as many as it takes to stay within the budget."""
    outline = Outline(scene)
    return outline.closed(outline.worth_opening(budget) if opened is None else set(opened))


class Outline:
    """The scopes of a scene, and what each of them has in it.  Rows of `pile` alike scopes or more are piles."""

    def __init__(self, scene: Scene, pile: int = 2) -> None:
        self.scene, self.pile = scene, pile
        self.members: dict[Path, list[int]] = {}
        for i, box in enumerate(scene.boxes):
            for depth in range(1, len(box.scope) + 1):
                self.members.setdefault(box.scope[:depth], []).append(i)
        self.inner: dict[Path, list[Path]] = {}
        for path in sorted(self.members, key=lambda path: self.members[path][0]):
            self.inner.setdefault(path[:-1], []).append(path)
        self.sources: dict[int, list[int]] = {}
        for source, target, _ in scene.edges:
            self.sources.setdefault(target, []).append(source)
        self.runs = {path: self._runs(inner) for path, inner in self.inner.items()}

    def _runs(self, siblings: Sequence[Path]) -> list[list[Path]]:
        """Scopes in one scope, those together that follow each other and are alike."""
        runs = [list(run) for _, run in groupby(siblings, key=self._likeness)]
        return [part for run in runs for part in ([run] if len(run) >= self.pile else [[path] for path in run])]

    def _likeness(self, path: Path) -> tuple[object, ...]:
        """What two scopes have in common that are alike: the same operations on the same shapes, in the same order."""
        members = self.members[path]
        place = {i: n for n, i in enumerate(members)}
        depth = len(path)
        found = []
        for i in members:
            box = self.scene.boxes[i]
            made = tuple([(node.name, node.shape, node.dtype) for node in box.nodes])
            found.append((made, len(box.scope) - depth, tuple([place.get(s) for s in self.sources.get(i, ())])))
        return tuple(found)

    def worth_opening(self, budget: int) -> set[Path]:
        """The scopes to open, the outermost first, of alike ones all or none; those that contain scopes come first."""
        opened: set[Path] = set()
        seen = len([box for box in self.scene.boxes if not box.scope]) + len(self.runs.get((), ()))
        for outer in (True, False):
            level = list(self.runs.get((), ()))
            while level:
                level.sort(key=lambda run: len(self.members[run[0]]) * len(run))
                further = []
                for run in level:
                    within = [inner for path in run for inner in self.runs.get(path, ())]
                    inside = sum(self._direct(path) for path in run) + len(within)
                    if run[0] not in opened and bool(within) >= outer and seen - 1 + inside <= budget:
                        seen += inside - 1
                        opened.update(run)
                    if run[0] in opened:
                        further += within
                level = further
        return opened

    def _direct(self, path: Path) -> int:
        return sum(self.scene.boxes[i].scope == path for i in self.members[path])

    def closed(self, opened: set[Path], runs: dict[Path, list[list[Path]]] | None = None) -> Scene:
        """The scene in which all other scopes are boxes, and other `runs` than those of the outline may be piles."""
        runs = self.runs if runs is None else runs
        group: dict[int, Path] = {}  # box -> the path that stands for what it is folded into
        piles: dict[Path, list[Path]] = {}
        pending = list(runs.get((), ()))
        while pending:
            run = pending.pop()
            shut = [path for path in run if path not in opened]
            if shut:
                piles[shut[0]] = shut
            for path in shut:
                for i in self.members[path]:
                    group[i] = shut[0]
            pending += [inner for path in run if path in opened for inner in runs.get(path, ())]
        number: dict[object, int] = {}
        boxes: list[Box] = []
        for i, box in enumerate(self.scene.boxes):
            key: object = group.get(i, i)
            if key not in number:
                number[key] = len(boxes)
                boxes.append(self._pile(piles[group[i]]) if i in group else box)
        places = [number[group.get(i, i)] for i in range(len(self.scene.boxes))]
        edges = dict.fromkeys(
            Edge(places[source], places[target], slot if target not in group else 0)
            for source, target, slot in self.scene.edges
            if places[source] != places[target]
        )
        return _in_order(boxes, list(edges))

    def _pile(self, paths: list[Path]) -> Box:
        first = self.members[paths[0]]
        operations = [self.scene.boxes[i] for i in first if self.scene.boxes[i].nodes[0].op is not None]
        names = Counter(node.name for box in operations for node in box.nodes)
        listed = ", ".join(f"{name} × {n}" if n > 1 else name for name, n in names.most_common())
        members = [i for path in paths for i in self.members[path]]
        group = Box(
            title=_title([path[-1] for path in paths]), kind="group", scope=paths[0][:-1], count=len(paths),
            lines=(counted(len(operations), "operation") + (" each" if len(paths) > 1 else ""),),
            nodes=tuple([node for i in members for node in self.scene.boxes[i].nodes]),
            result=any(self.scene.boxes[i].result for i in members), about=(listed,), path=paths[0],
        )
        last = self._result(members)
        if not last.called:
            return group
        called = last.called if last.title == group.title else symbol_of(group.title)
        return replace(group, lines=last.lines, shown=last.shown, called=called, grid=last.grid, cells=last.cells)

    def _result(self, members: Sequence[int]) -> Box:
        """The box whose value leaves a group."""
        inside = set(members)
        leaving = {source for target, sources in self.sources.items() if target not in inside for source in sources}
        ends = [i for i in members if i in leaving or self.scene.boxes[i].result]
        return self.scene.boxes[(ends or members)[-1]]


def _in_order(boxes: Sequence[Box], edges: Sequence[Edge]) -> Scene:
    """The boxes so that each comes after what it is computed from, as far as there is such an order.

    A scope that was left and entered again has no place before and after what came between: there, the first is first.
    """
    waiting = Counter(target for _, target, _ in edges)
    users: dict[int, list[int]] = {}
    for source, target, _ in edges:
        users.setdefault(source, []).append(target)
    ready = [i for i in range(len(boxes)) if not waiting[i]]
    left = dict.fromkeys(range(len(boxes)))
    order: list[int] = []
    while left:
        box = heappop(ready) if ready else next(iter(left))
        if box not in left:
            continue
        del left[box]
        order.append(box)
        for user in users.get(box, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, user)
    place = {box: i for i, box in enumerate(order)}
    moved = [Edge(place[source], place[target], slot) for source, target, slot in edges]
    return Scene(tuple([boxes[i] for i in order]), tuple(moved))


def _title(names: Sequence[str]) -> str:
    """The name of a pile.

    >>> _title(["layers[0]", "layers[1]", "layers[2]"]), _title(["encoder"])
    ('layers[0…2]', 'encoder')
    """
    first, last = NUMBERED.fullmatch(names[0]), NUMBERED.fullmatch(names[-1])
    if len(names) > 1 and first and last and first[1] == last[1]:
        return f"{first[1]}{first[2]}…{last[2]}{first[3]}"
    return names[0]
