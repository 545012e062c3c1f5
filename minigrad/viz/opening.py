"""The pictures that somebody gets to see who opens and closes scopes: drawn beforehand, so that no kernel is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .folding import BUDGET, Outline, Path
from .scene import Scene
from .turns import with_rounds

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
    scenes = {begin: outline.closed(set(begin))}
    enough = VIEWS if len(scene.boxes) < MANY else FEW
    for state in wanted:  # which grows meanwhile
        for _, other in _moves(scenes[state], state):
            if other not in scenes and len(scenes) < enough:
                closed = outline.closed(set(other))
                room = boxes - sum(len(each.boxes) for each in scenes.values())
                if len(closed.boxes) <= min(most, room):
                    scenes[other] = closed
                    wanted.append(other)
    if everything not in scenes and len(scene.boxes) <= most:
        scenes[everything] = outline.closed(set(everything))
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
