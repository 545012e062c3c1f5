"""Loops and calls: find the rounds of a loop, and the operations of one call, to show each as one box.

A graph does not store loops or calls.  But its operations come in the order in which they were made, each with its
place in the code.  If the same lines make the same operations several times in a row, they are a loop.  The operations
of one call of a library function have the same place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from .naming import call_of, place_of, written_in_code
from .scene import Scene

LONGEST = 200  # operations of a round
ROUNDS, WORTH = 3, 12  # the fewest rounds of a loop, and the fewest operations in all its rounds


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
    inside: dict[int, tuple[int, int, str]] = {}  # box -> the start of its loop, its place in its round, the round
    rounds: dict[int, int] = {}
    for start, period, count in repeats(kinds):
        place = place_of(boxes[made[start]].nodes[0])
        name = f"line {place[1]}" if place is not None else "round"
        rounds[start] = count
        for k in range(period * count):
            inside[made[start + k]] = (start, k % period, f"{name} [{k // period}]")
    # Parameters that only one round uses, by the place of their use.
    weights: dict[tuple[int, int, int], list[tuple[int, str]]] = {}
    for i, box in enumerate(boxes):
        used_by = {inside[user][2] if user in inside else "" for user, _ in users.get(i, ())}
        if box.kind == "parameter" and len(used_by) == 1 and "" not in used_by:
            user, slot = users[i][0]
            start, offset, name = inside[user]
            weights.setdefault((start, offset, slot), []).append((i, name))
    for i, (_, _, name) in inside.items():
        boxes[i] = replace(boxes[i], scope=(*boxes[i].scope, name))
    for (start, _, _), found in weights.items():
        if len(found) == rounds[start]:  # each round has its own parameter
            for i, name in found:
                boxes[i] = replace(boxes[i], scope=(*scene.boxes[users[i][0][0]].scope, name))
    return Scene(tuple(boxes), scene.edges)


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
