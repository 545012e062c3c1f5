"""The pictures behind closed scopes, drawn beforehand, so that a page needs no kernel.

A picture shows one scope, and its neighbours closed: every operation is drawn about once, however deep the model is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..core.node import Node
from .folding import Outline
from .naming import Flow, nameless, scope_name
from .notation import symbol_of
from .phases import BACKWARD, UPDATE, readers_of
from .repeats import PHASE_SCOPES, with_calls, with_leaves, with_rounds, with_visits
from .rules import Called
from .scene import Box, Path, Scene, common

SEEN, BESIDE = 16, 6  # boxes of a picture, as far as there are scopes to close, and those that say enough alone
ALIKE, NUMBERED, PARTS = 48, 100, 300  # scopes of a pile side by side, with numbers in them, and pictures, at most
WHOLE = 200  # boxes of a scene that is also shown with everything open


def folded(scene: Scene, budget: int) -> list[Part]:
    """The picture to begin with, one for each closed box in it, one for each closed box in these, and so on.

    A picture has at most `budget` boxes, as far as there are scopes to close; calls, the backward pass and the update
    are closed at first, and rounds of loops have scopes.  A pile opens as its scopes side by side; of one that is too
    large, the first scope opens.  The last picture has everything open, if that can be read.
    """
    scene = scene.in_scopes([tuple(map(scope_name, box.scope)) for box in scene.boxes])
    scene, calls = with_calls(with_visits(with_rounds(scene)))
    scene = with_leaves(scene, calls)
    count = Counter(box.scope[:depth] for box in scene.boxes for depth in range(1, len(box.scope) + 1))
    scene = Scene(tuple([_as_its_scope(box, count) for box in scene.boxes]), scene.edges)
    outline, shut = Outline(scene), {*calls, (BACKWARD,), (UPDATE,)}
    opened = [_opened(outline, (), budget, shut)]  # of each part: the scopes that are open in it
    found = [Part(outline.closed(opened[0]), "", 0, {})]
    numbers: dict[tuple[Path | None, int], int] = {}  # of parts, by the path and the size of the closed box
    for here, part in enumerate(found):  # which grows meanwhile
        for box in part.scene.boxes:
            path = box.path or ()
            if box.kind == "group" and (path, box.count) not in numbers and len(found) < PARTS:
                numbers[path, box.count] = len(found)
                above = [path[:depth] for depth in range(len(path))]
                run = outline.run_of[path]
                if alone := len(run) > (ALIKE if box.shown is None else NUMBERED):
                    box = outline.pile_of((path,))
                inside = {path, *_opened(outline, path, budget, shut)} if box.count == 1 else set()
                around = [i for each in (run if box.count > 1 else [path]) for i in outline.members[each]]
                apart = () if alone else above
                opened.append({*above, *inside, *opened[here]})  # its neighbours are as they were seen beside it
                found.append(_part(outline.closed(opened[-1], apart, around), box, here))
    if len(found) > 1 and len(scene.boxes) <= WHOLE:
        found.append(Part(outline.closed(outline.members), "everything", 0, {}))
    for here, part in enumerate(found):
        keys = [(box.path, box.count) for box in part.scene.boxes]
        part.doors.update({i: numbers[key] for i, key in enumerate(keys) if numbers.get(key, here) != here})
    return found


def _as_its_scope(box: Box, count: Mapping[Path, int]) -> Box:
    """The box of an operation that is alone in a module has the name of the module: there is nothing to open."""
    *scope, name = box.scope or [Flow()]
    if count[box.scope] > 1 or isinstance(name, Flow):
        return box
    if box.nodes[0].op is None:
        return replace(box, scope=tuple(scope))
    title = " = ".join(filter(None, (box.name, name)))
    return replace(box, scope=tuple(scope), title=title, about=(box.title, *box.about))


class Part(NamedTuple):
    """The picture of one scope: its contents, and the closed boxes that they are connected with.

    `doors` give, by the number of a closed box, the part in which it is open.  The first part has no title, and is the
    parent of itself.
    """

    scene: Scene
    title: str
    parent: int
    doors: dict[int, int]


class BoxNames:
    """What values are called in some pictures.

    >>> y = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Linear(3, 2))(mg.ones(2)).sum()
    >>> BoxNames(mg.viz.graph(y).parts).seen_from(y.node)(y.node.inputs[0])
    '1 Linear'
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.single: dict[Node, Box] = {}
        self.beside: dict[Node, dict[Node, Box]] = {}  # of what is in a picture, and not outside: all its boxes
        pictures = [{node: box for box in part.scene.boxes for node in box.nodes} for part in parts]
        for boxes in pictures:
            for node, box in boxes.items():
                if len(box.nodes) == 1:
                    self.single.setdefault(node, box)
                    if box.kind != "outside":
                        self.beside.setdefault(node, boxes)
        self.first = pictures[0]  # whose outermost frames are whole models
        self.readers = readers_of([*self.first])  # of each value, as all nodes are in that picture
        self.named = {node for node, box in self.single.items() if box.name and "#" not in box.name}  # by the code

    def of(self, node: Node) -> str:
        """Its name in the user's code, or what stands in its box."""
        box = self.single.get(node)
        return nameless(node) if box is None else box.name or box.title

    def seen_from(self, node: Node) -> Called:
        """What values are called in a formula of a node.

        What is in a closed box is called by that box.  What has no name, and is in a frame where the node is not, is
        called by the frame; that of a whole model does not count.  If several values leave a box or a frame, each has
        its own name too.
        """
        boxes = self.beside.get(node, {})
        home = boxes[node].scope if boxes else ()

        def called(each: Node) -> str:
            name, found = self.of(each), boxes.get(each)
            if found is None or found.path in PHASE_SCOPES:
                return name
            inside, layer = {*found.nodes}, found.called
            if found.path is None:
                shared = len(common(home, found.scope)) or int(boxes is self.first)
                if len(found.scope) <= shared or each in self.named:
                    return name
                frame, layer = found.scope[: shared + 1], found.scope[shared]
                inside = {value for value, box in boxes.items() if box.scope[: shared + 1] == frame}
            leaving = [
                value for value in inside if value.op is not None and any(
                    reader not in inside and (reader.origin is None) == (node.origin is None)
                    for reader in self.readers.get(value, ()))
            ]
            if len(leaving) < 2:
                return layer
            return name if each in self.named else f"{symbol_of(name)} of {layer}"

        return called


def _opened(outline: Outline, path: Path, budget: int, shut: Collection[Path]) -> set[Path]:
    """The scopes that are open in the picture of a scope: all, where there is room; else those that hold most of it.

    A layer, which has more operations than parts, stays closed if there is no room and more to see beside it.
    """
    depth = len(path)
    inside = [each for each in outline.members if len(each) > depth and each[:depth] == path]
    closed = {each for each in inside if any(each[: len(other)] == other for other in shut if len(other) > depth)}
    free = {*inside} - closed
    around = outline.members[path]
    above = {path[:d] for d in range(depth + 1)}

    def seen(scopes: Collection[Path]) -> int:
        return len(outline.closed(above.union(scopes), around=around).boxes)

    if seen(free) <= budget:
        return free
    hidden = {i for each in closed for i in outline.members[each]}
    count = len({*around} - hidden)
    opened: set[Path] = set()
    for each in sorted(inside, key=len):
        shown = len({*outline.members[each]} - hidden)
        if each in free and 2 * shown > count and each[:-1] in {path, *opened}:
            alone = sum([outline.scene.boxes[i].scope == each for i in outline.members[each]])
            is_layer = alone > len(outline.runs.get(each, ()))
            if not is_layer or seen({*opened, each}) <= budget or seen(opened) < BESIDE:
                opened.add(each)
    return opened


def _part(closed: Scene, box: Box, parent: int) -> Part:
    """The picture in which a box of its parent is open: what is in the box keeps the scopes inside it."""
    own, depth = set(box.nodes), len(box.path or ()) - (box.count > 1)
    boxes = []
    for each in closed.boxes:
        inside, given = each.nodes[0] in own, each.kind != "group" and each.nodes[0].op is None
        kind = each.kind if inside or given else "outside"
        boxes.append(replace(each, scope=each.scope[depth:] if inside else (), kind=kind))
    return Part(Scene(tuple(boxes), closed.edges), box.title, parent, {})
