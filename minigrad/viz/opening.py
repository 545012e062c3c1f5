"""The pictures behind open and closed scopes, drawn beforehand, so that a page needs no kernel.

There are two ways through a graph.  `views_of` opens a scope in place, in a frame among its neighbours.  `parts_of`
shows one scope at a time, and its neighbours closed: every operation is drawn about once, however deep the model is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..nn.module import Module
from .folding import BUDGET, Outline, Path
from .models import with_types
from .repeats import with_calls, with_rounds
from .scene import Box, Edge, Scene

SEEN = 16  # boxes of a picture, as far as there are scopes to close
LOOPS = 60  # boxes of a scene in which the rounds of loops get scopes
ALIKE, PARTS = 100, 300  # scopes of a pile that open side by side, and pictures, at most
PILE = 9  # layers that are alike: so many are one pile, fewer stand side by side
WHOLE = 120  # boxes of a scene that is also shown with everything open
VIEWS, BOXES = 12, 600  # of all pictures of one scene, at most
MANY, FEW = 5_000, 4  # boxes of a scene that is large, and pictures of such a one


class View(NamedTuple):
    """A picture of a scene with some scopes closed.

    `doors` says of closed scopes, by the number of their box, in which view they are open; `exits` says of frames, by
    their path, in which they are closed.
    """

    scene: Scene
    doors: dict[int, int]
    exits: dict[Path, int]


def views_of(
    scene: Scene, budget: int = BUDGET, most: int = 500, boxes: int = BOXES, rounds: bool = True
) -> list[View]:
    """The picture to begin with, then those that are nearest to it, one opened or closed scope away from another.

    All have at most so many `boxes`.  The last one has everything open, if that is not too much to see.  With `rounds`,
    each round of a loop in a large scene becomes a scope.  A kernel is one scope: it is opened or closed as a whole.
    """
    if rounds and len(scene.boxes) > budget:
        scene = with_rounds(scene)
    outline = Outline(scene)
    begin = frozenset(outline.worth_opening(budget))
    everything = frozenset(outline.members)
    wanted = [begin]
    scenes = {begin: outline.closed(begin)}
    enough = VIEWS if len(scene.boxes) < MANY else FEW
    for state in wanted:  # which grows meanwhile
        for _, other in _moves(scenes[state], state):
            if other not in scenes and len(scenes) < enough:
                room = boxes - sum(len(each.boxes) for each in scenes.values())
                if outline.seen(other) <= min(most, room):
                    scenes[other] = outline.closed(other)
                    wanted.append(other)
    if everything not in scenes and len(scene.boxes) <= most:
        scenes[everything] = outline.closed(everything)
    order = [state for state in scenes if state != everything or state == begin]
    order += [everything] if everything in scenes and everything != begin else []
    number = {state: i for i, state in enumerate(order)}
    views = []
    for state in order:
        doors: dict[int, int] = {}
        exits: dict[Path, int] = {}
        for what, other in _moves(scenes[state], state):
            if other in number:
                (doors if isinstance(what, int) else exits)[what] = number[other]  # type: ignore[index]
        views.append(View(scenes[state], doors, exits))
    return views


def _moves(scene: Scene, opened: frozenset[Path]) -> Iterator[tuple[int | Path, frozenset[Path]]]:
    """What can be opened or closed in a picture, and which scopes are open then."""
    for i, box in enumerate(scene.boxes):
        if box.path is not None:
            yield i, opened | {box.path}
    for path in frames_of(scene):
        yield path, frozenset(other for other in opened if other[: len(path)] != path)


def frames_of(scene: Scene) -> list[Path]:
    """The scopes that are drawn as frames, in the order in which something is first in them."""
    return list(dict.fromkeys(box.scope[:depth] for box in scene.boxes for depth in range(1, len(box.scope) + 1)))


def folded(
    scene: Scene, models: Sequence[Module], budget: int, shut: Collection[Path] = (), whole: int = WHOLE
) -> list[Part]:
    """The parts of a scene, in which calls and `shut` are closed at first, and the rounds of long loops have scopes."""
    scene, calls = with_calls(with_types(scene, models))
    return parts_of(with_rounds(scene) if len(scene.boxes) > LOOPS else scene, budget, calls.union(shut), whole)


class Part(NamedTuple):
    """The picture of one scope: its contents, and the closed boxes that they are connected with.

    `doors` give, by the number of a closed box, the part in which it is open; `inner` are the boxes that lie in the
    scope itself.  The first part has no title, and is the parent of itself.
    """

    scene: Scene
    title: str
    parent: int
    inner: frozenset[int]
    doors: dict[int, int]


def parts_of(scene: Scene, budget: int, shut: Collection[Path] = (), whole: int = WHOLE) -> list[Part]:
    """The picture to begin with, one for each closed box in it, one for each closed box in these, and so on.

    A picture has at most so many boxes, as far as there are scopes to close; those in `shut` are closed at first.  Of a
    long pile, the first scope opens: the others are like it.  The last picture has everything open, if those are at
    most `whole` boxes.
    """
    outline = Outline(scene, PILE)
    begin = outline.closed(_opened(outline, (), budget, shut))
    found = [Part(begin, "", 0, frozenset(range(len(begin.boxes))), {})]
    numbers: dict[tuple[Path | None, int], int] = {}  # of parts, by the path and the size of the closed box
    for here, part in enumerate(found):  # which grows meanwhile
        for box in [part.scene.boxes[i] for i in sorted(part.inner)]:
            if box.path is not None and (box.path, box.count) not in numbers and len(found) < PARTS:
                numbers[box.path, box.count] = len(found)
                above = [box.path[:depth] for depth in range(len(box.path))]
                path, run = box.path, outline.run_of[box.path]
                if box.count > ALIKE:
                    box = outline.pile_of((path,))
                inside = {path, *_opened(outline, path, budget, shut)} if box.count == 1 else set()
                around = [i for each in (run if box.count > 1 else [path]) for i in outline.members[each]]
                apart = above if len(run) <= ALIKE else ()
                found.append(_part(outline.closed({*above, *inside}, apart, around), box, here))
    if len(found) > 1 and len(scene.boxes) <= whole:
        found.append(Part(scene, "everything", 0, frozenset(range(len(scene.boxes))), {}))
    return [part._replace(doors=_doors(part, numbers, here)) for here, part in enumerate(found)]


def _opened(outline: Outline, path: Path, budget: int, shut: Collection[Path]) -> set[Path]:
    """The scopes that are open in the picture of a scope: all, where there is room; else those that hold most of it."""
    depth = len(path)
    inside = [each for each in outline.members if len(each) > depth and each[:depth] == path]
    closed = {each for each in inside if any(each[: len(other)] == other for other in shut)}
    around = outline.members[path] if path else None
    everything = {path[:d] for d in range(depth + 1)}.union(inside) - closed
    if len(outline.closed(everything, around=around).boxes) <= budget:
        return set(inside) - closed
    hidden = {i for each in closed for i in outline.members[each]}
    count = len({*(range(len(outline.scene.boxes)) if around is None else around)} - hidden)
    opened: set[Path] = set()
    for each in sorted(inside, key=len):
        shown = len({*outline.members[each]} - hidden)
        if each not in closed and 2 * shown > count and each[:-1] in {path, *opened}:
            opened.add(each)
    return opened


def _part(closed: Scene, box: Box, parent: int) -> Part:
    """What is left of a picture when only one box of its parent is looked at."""
    assert box.path is not None
    own, depth = set(box.nodes), len(box.path) - (box.count > 1)
    inner = {i for i, each in enumerate(closed.boxes) if each.nodes[0] in own}
    edges = [edge for edge in closed.edges if edge.source in inner or edge.target in inner]
    seen = sorted(inner.union(*[edge[:2] for edge in edges]))
    place = {i: new for new, i in enumerate(seen)}
    boxes = []
    for i in seen:
        each = closed.boxes[i]
        outside = each.kind if each.nodes[0].op is None else "outside"
        scope = each.scope[depth:] if i in inner else ()
        boxes.append(replace(each, scope=scope, kind=each.kind if i in inner else outside))
    moved = [Edge(place[edge.source], place[edge.target], edge.slot) for edge in edges]
    return Part(Scene(tuple(boxes), tuple(moved)), box.title, parent, frozenset(place[i] for i in inner), {})


def _doors(part: Part, numbers: dict[tuple[Path | None, int], int], here: int) -> dict[int, int]:
    found = {i: numbers.get((box.path, box.count), here) for i, box in enumerate(part.scene.boxes)}
    return {i: other for i, other in found.items() if other != here}
