"""Loops and calls: find the rounds of a loop, and the operations of one call, to show each as one box.

A graph does not store loops or calls.  But its operations come in the order in which they were made, each with its
place in the code.  If the same lines make the same operations several times in a row, they are a loop.  The operations
of one call of a library function have the same place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .naming import call_of, place_of, written_in_code
from .scene import Scene

LONGEST = 200  # operations of a round
ROUNDS, WORTH = 3, 12  # the fewest rounds of a loop, and the fewest operations in all its rounds


class Turn(NamedTuple):
    """Where a box is in a loop: the first box of the loop, the place in the round, and the name of the round."""

    start: int
    place: int
    name: str


def with_rounds(scene: Scene) -> Scene:
    """The scene with a scope around each round of each loop."""
    made = [i for i, box in enumerate(scene.boxes) if box.nodes[0].op is not None]
    seen: dict[object, int] = {}
    kinds = []
    for i in made:
        box = scene.boxes[i]
        (node,) = box.nodes
        kinds.append(seen.setdefault((node.name, node.shape, place_of(node), box.scope), len(seen)))
    boxes = list(scene.boxes)
    inside: dict[int, Turn] = {}
    rounds: dict[int, int] = {}
    taken: set[tuple[Any, str]] = set()
    for start, period, count in repeats(kinds):
        first = boxes[made[start]]
        place = place_of(first.nodes[0])
        name = f"line {place[1]}" if place is not None else "round"
        while (first.scope, name) in taken:  # two loops in one line
            name += "′"
        taken.add((first.scope, name))
        rounds[start] = count
        for k in range(period * count):
            inside[made[start + k]] = Turn(start, k % period, f"{name} [{k // period}]")
    for i, turn in inside.items():
        boxes[i] = replace(boxes[i], scope=(*boxes[i].scope, turn.name))
    for i, beside in _alongside(scene, inside, rounds).items():
        boxes[i] = replace(boxes[i], scope=boxes[beside].scope)
    return Scene(tuple(boxes), scene.edges)


def _alongside(scene: Scene, inside: Mapping[int, Turn], rounds: Mapping[int, int]) -> dict[int, int]:
    """Boxes that belong to one round of a loop each, though they were made before or after the loop, and a box in it.

    They are parameters and operations that only one round reads, and operations that read only one round, where each
    round of the loop has one.
    """
    users: dict[int, list[tuple[int, int]]] = {}
    sources: dict[int, list[tuple[int, int]]] = {}
    for source, target, slot in scene.edges:
        if source not in inside:
            users.setdefault(source, []).append((target, slot))
        if target not in inside and source in inside:
            sources.setdefault(target, []).append((source, slot))
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for after, neighbours in ((False, users), (True, sources)):
        for i, others in neighbours.items():
            box, (other, slot) = scene.boxes[i], others[0]
            turns = {inside[each][::2] if each in inside else None for each, _ in others}
            made_there = box.nodes[0].op is not None and box.scope == scene.boxes[other].scope
            if len(turns) == 1 and None not in turns and (made_there or box.kind == "parameter"):
                start, place, _ = inside[other]
                key = after, start, place, slot, box.nodes[0].name, box.nodes[0].shape
                found.setdefault(key, []).append((i, other))
    alike = [each for (_, start, *_), each in found.items() if len(each) == rounds[start]]  # type: ignore[index]
    return {i: other for each in alike for i, other in each}


def with_calls(scene: Scene) -> tuple[Scene, set[tuple[str, ...]]]:
    """The scene with a scope around the operations of each call in the user's code, and these scopes."""
    made = [i for i, box in enumerate(scene.boxes) if box.nodes[0].op is not None]
    own = set(written_in_code([scene.boxes[i].nodes[0] for i in made]))
    boxes = list(scene.boxes)
    call: dict[int, str | None] = {}  # box -> the scope that it gets
    taken: set[tuple[tuple[str, ...], str]] = set()
    made.sort(key=lambda i: boxes[i].nodes[0].serial)
    size = Counter(boxes[i].scope for i in made)
    for _, group in groupby(made, key=lambda i: (boxes[i].nodes[0].code, boxes[i].nodes[0].offset, boxes[i].scope)):
        run = list(group)
        last = boxes[run[-1]]
        title = last.title
        whole = last.scope and len(run) == size[last.scope]  # of a module, which has a box already
        name = call_of(last.nodes[0])
        composed = name is not None and all(boxes[i].nodes[0].name != name for i in run)
        if len(run) > 1 and composed and not whole and last.nodes[0] in own:
            while (last.scope, title) in taken:
                title += "′"
            taken.add((last.scope, title))
            call |= dict.fromkeys(run, title)
    users: dict[int, set[str | None]] = {}
    for source, target, _ in scene.edges:
        users.setdefault(source, set()).add(call.get(target))
    for i, box in enumerate(scene.boxes):
        if box.kind == "constant" and box.title == box.nodes[0].name and len(users.get(i, ())) == 1:
            (call[i],) = users[i]
    for i, name in call.items():
        if name is not None:
            boxes[i] = replace(boxes[i], scope=(*boxes[i].scope, name))
    return Scene(tuple(boxes), scene.edges), {boxes[i].scope for i, name in call.items() if name is not None}


def repeats(kinds: Sequence[int]) -> list[tuple[int, int, int]]:
    """The repeats in a sequence, without overlaps: the start, the length of a round and the number of rounds.

    >>> repeats([9, *[1, 2, 3, 4] * 3, 7])
    [(1, 4, 3)]
    """
    sequence = np.array(kinds)
    covered: list[tuple[int, int, int, int]] = []  # minus the covered length, period, start, count
    for period in range(1, min(LONGEST, len(kinds) // ROUNDS) + 1):
        same = np.concatenate([[0], sequence[:-period] == sequence[period:], [0]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(same))
        for start, end in zip(edges[::2], edges[1::2]):
            count = (int(end) - int(start)) // period + 1
            if count >= ROUNDS and period * count >= WORTH:
                covered.append((-period * count, period, int(start), count))
    found: list[tuple[int, int, int]] = []
    taken = np.zeros(len(kinds), bool)
    for negative, period, start, count in sorted(covered):
        if not taken[start : start - negative].any():
            taken[start : start - negative] = True
            found.append((start, period, count))
    return sorted(found)
