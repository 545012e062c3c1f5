"""Loops: what a graph repeats, one round after the other, so that it can be shown once.

A graph does not know that a loop made it.  But its operations come in the order of their making, with the line of code
of each: where the same lines make the same operations again and again, that was a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .scene import Scene, place_of

LONGEST = 200  # operations of a round
ROUNDS, WORTH = 3, 12  # rounds, and operations in all of them: fewer are not worth a box


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
    users: dict[int, list[tuple[int, int]]] = {}
    for source, target, slot in scene.edges:
        users.setdefault(source, []).append((target, slot))
    inside: dict[int, tuple[int, int, str]] = {}  # box -> where its loop begins, its place in its round, its round
    rounds: dict[int, int] = {}
    for start, period, count in repeats(kinds):
        place = place_of(boxes[made[start]].nodes[0])
        name = f"line {place[1]}" if place is not None else "round"
        rounds[start] = count
        for k in range(period * count):
            inside[made[start + k]] = (start, k % period, f"{name} [{k // period}]")
    weights: dict[tuple[int, int, int], list[tuple[int, str]]] = {}  # those that one round uses, by where it does
    for i, box in enumerate(boxes):
        used_by = {inside[user][2] if user in inside else "" for user, _ in users.get(i, ())}
        if box.kind == "parameter" and len(used_by) == 1 and "" not in used_by:
            user, slot = users[i][0]
            start, offset, name = inside[user]
            weights.setdefault((start, offset, slot), []).append((i, name))
    for i, (_, _, name) in inside.items():
        boxes[i] = replace(boxes[i], scope=(*boxes[i].scope, name))
    for (start, _, _), found in weights.items():
        if len(found) == rounds[start]:  # each round has its own
            for i, name in found:
                boxes[i] = replace(boxes[i], scope=(*scene.boxes[users[i][0][0]].scope, name))
    return Scene(tuple(boxes), scene.edges)


def repeats(kinds: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where a sequence repeats itself: the beginning, the length of a round and how many there are, none overlapping.

    >>> repeats([9, *[1, 2, 3, 4] * 3, 7])
    [(1, 4, 3)]
    """
    sequence = np.array(kinds)
    covered: list[tuple[int, int, int, int]] = []  # how much, and the three
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
