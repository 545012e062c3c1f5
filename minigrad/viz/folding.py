"""Less to look at: a whole scope as one box, and a row of scopes that are alike as one pile.

A picture of many boxes is hard to read, so scopes in it are closed.  `layers[0]` to `layers[11]`, all alike, are one
box `layers[0…11]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from ..support.table import counted
from .naming import Flow, operation_name
from .scene import Box, Edge, Path, Scene, kind_of

PILE = 9  # layers that are alike: this number of them is one pile, fewer stand side by side
RESULTS = 3  # of a group, at most, whose values stand in its box
NUMBERED = re.compile(r"^(.*?)(\d+)(\D*)$")


class Outline:
    """The scopes of a scene, and what each of them has in it.  Long rows of alike scopes are piles."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.members: dict[Path, list[int]] = {}
        for i, box in enumerate(scene.boxes):
            for depth in range(1, len(box.scope) + 1):
                self.members.setdefault(box.scope[:depth], []).append(i)
        made = {*scene.made}
        self.middle = {}  # of each scope: an operation; what belongs to a round may be made before or after the loop
        for path, each in self.members.items():
            own = [i for i in each if i in made] or each
            self.middle[path] = own[len(own) // 2]
        inner: dict[Path, list[Path]] = {}
        for path in self.members:
            inner.setdefault(path[:-1], []).append(path)
        self.arrows: dict[int, list[int]] = {}  # of each box: the numbers of the edges that begin or end there
        for number, (source, target, _) in enumerate(scene.edges):
            self.arrows.setdefault(source, []).append(number)
            self.arrows.setdefault(target, []).append(number)
        self.runs: dict[Path, list[list[Path]]] = {}  # of each scope: those in it that follow each other and are alike
        for path, siblings in inner.items():
            for _, run in groupby(siblings, key=self._likeness):
                alike = [*run]
                self.runs.setdefault(path, []).extend([alike] if len(alike) >= PILE else [[each] for each in alike])
        self.run_of = {path: run for runs in self.runs.values() for run in runs for path in run}
        self.members[()] = [*range(len(scene.boxes))]

    def _at(self, boxes: Iterable[int]) -> list[Edge]:
        """The edges that begin or end at some boxes, in their order."""
        return [self.scene.edges[k] for k in sorted({k for i in boxes for k in self.arrows.get(i, ())})]

    def _likeness(self, path: Path) -> tuple[object, ...]:
        """What two scopes have in common that are alike: the name but for its last number, and the same operations."""
        boxes, depth = [self.scene.boxes[i] for i in self.members[path]], len(path)
        made = [(box.nodes[0], len(box.scope) - depth) for box in boxes if box.nodes[0].op is not None]
        return NUMBERED.sub(r"\1\3", path[-1]), *[(node.name, node.shape, node.dtype, inside) for node, inside in made]

    def closed(
        self, opened: Collection[Path], apart: Collection[Path] = (), around: Collection[int] = ()
    ) -> Scene:
        """The scene in which all other scopes are boxes.

        Scopes that lie in one of `apart` form no piles.  Of a scene, the boxes `around` are left (by default, all), the
        boxes at the other ends of their arrows, and these arrows.
        """
        around = around or self.members[()]
        edges = self._at(around)
        seen = {*around, *[i for edge in edges for i in edge[:2]]}
        scopes = {self.scene.boxes[i].scope for i in seen}
        around_of = {scope: self._shut(scope, opened, apart) for scope in scopes}
        shut = {i: around_of[self.scene.boxes[i].scope] for i in seen}
        place = {i: self.middle[paths[0]] if paths else i for i, paths in shut.items()}  # of what it is folded into
        read: dict[int, tuple[int, ...]] = {}  # what is not computed comes right before the first box that reads it
        for source, target, slot in edges:
            if self.scene.boxes[place[source]].nodes[0].op is None:
                at = place[target], target, slot
                read[place[source]] = min(read.get(place[source], at), at)
        order = sorted(set(place.values()), key=lambda i: (read.get(i, (i, len(self.scene.boxes))), i))
        number = {i: n for n, i in enumerate(order)}
        folded = {place[i]: paths for i, paths in shut.items()}
        boxes = [self.pile_of(folded[i]) if folded[i] else self.scene.boxes[i] for i in order]
        between = [
            Edge(number[place[source]], number[place[target]], 0 if shut[target] else slot)
            for source, target, slot in edges if place[source] != place[target]
        ]
        return Scene(tuple(boxes), tuple(dict.fromkeys(between)))

    def _shut(self, scope: Path, opened: Collection[Path], apart: Collection[Path]) -> tuple[Path, ...]:
        """The scopes that are one box in which a box of this scope lies; none, if all around it are open."""
        for depth in range(1, len(scope) + 1):
            path = scope[:depth]
            if path not in opened:
                return (path,) if path[:-1] in apart else tuple([p for p in self.run_of[path] if p not in opened])
        return ()

    def pile_of(self, paths: tuple[Path, ...]) -> Box:
        """The box of closed scopes that are alike."""
        inside = [i for path in paths for i in self.members[path]]
        members = [self.scene.boxes[i] for i in inside]
        first = [node for i in self.members[paths[0]] for node in self.scene.boxes[i].nodes]
        operations = [node for node in first if kind_of(node) in ("operation", "view", "gradient")]
        names = Counter([re.sub(r"\[\d+\]$", "[…]", operation_name(node)) for node in operations])
        listed = ", ".join(f"{name} × {n}" if n > 1 else name for name, n in names.most_common())
        ends = [self.scene.boxes[i] for i in self._results(inside)]
        last = (ends or members)[-1]
        several = len({box.lines for box in ends}) != 1
        leaving = ends[-RESULTS:] if last.shown and len(ends) > 1 else []
        held = [f"{box.name or box.title}  {box.lines[0]}" for box in members if box.kind == "parameter"]
        kinds = Counter(["view" if kind_of(node) == "view" else "operation" for node in operations])
        counts = [counted(n, kind) for kind, n in sorted(kinds.items())] or [counted(len(held), "parameter")]
        count = ", ".join(counts) + (" each" if len(paths) > 1 else "")
        lines = tuple([f"{box.name or box.title} {box.lines[0]}" for box in leaving]) or last.lines
        if not last.shown:
            called = [box.name for box in ends]
            lines = (", ".join(called),) * (len(called) > 1 and all(called)) + last.lines * (not several)
            lines += (count,) * (several or isinstance(paths[0][-1], Flow))
        return Box(
            _title([path[-1] for path in paths]), "group", lines, paths[0][:-1],
            tuple([node for box in members for node in box.nodes]),
            result=any(box.result for box in members), count=len(paths), about=(count, listed, *held),
            path=paths[0], shown=last.shown, cells="" if leaving else last.cells,  # one map would stand for all results
            results=tuple([(box.name or box.title, box.nodes[0]) for box in leaving]),
        )

    def _results(self, members: Sequence[int]) -> Sequence[int]:
        """The boxes whose values leave a group.

        If a part of the same model or pass reads some of them, it is these: the others are only kept, as for gradients.
        """
        inside, boxes = {*members}, self.scene.boxes
        leaving = [edge[:2] for edge in self._at(members) if edge.source in inside and edge.target not in inside]
        near = [i for i, k in leaving if boxes[i].nodes[0].op and boxes[i].scope[:1] == boxes[k].scope[:1]]
        return sorted({*(near or [i for i in members if boxes[i].result] or [i for i, _ in leaving])})


def _title(names: Sequence[str]) -> str:
    """The name of a pile.

    >>> _title(["layers[0]", "layers[1]", "layers[2]"]), _title(["encoder"]), _title(["round [0]", "round [1]"])
    ('layers[0…2]', 'encoder', 'round')
    """
    first, last = NUMBERED.fullmatch(names[0]), NUMBERED.fullmatch(names[-1])
    if len(names) > 1 and first and last:
        whole = first[2] == "0" and first[1].endswith(" [")  # all rounds of a loop
        return first[1][:-2] if whole else f"{first[1]}{first[2]}…{last[2]}{first[3]}"
    return names[0]
