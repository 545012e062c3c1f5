"""Loops and calls: find the rounds of a loop, and the operations of one call, to show each as one box.

A graph does not store loops or calls.  But its operations come in the order in which they were made, each with its
place in the code.  If the same lines make the same operations several times in a row, they are a loop.  The operations
of one call of a library function have the same place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .naming import call_of, place_of, written_in_code
from .scene import Box, Path, Scene, Scopes, common

LONGEST = 200  # operations of a round
ROUNDS, WORTH = 3, 12  # the fewest rounds of a loop, and the fewest operations in all its rounds


class Call(NamedTuple):
    """A call in the user's code: the function's name, and the first box of its operations."""

    name: str
    first: int


class Turn(NamedTuple):
    """Where a box is in a loop: the first box of the loop, the place in the round, and the name of the round."""

    start: int
    place: int
    name: str


def with_rounds(scene: Scene) -> Scene:
    """The scene with a scope around each round of each loop."""
    made = scene.made
    seen: dict[object, int] = {}
    kinds = []
    for i in made:
        box = scene.boxes[i]
        (node,) = box.nodes
        kinds.append(seen.setdefault((node.name, node.shape, place_of(node), box.scope), len(seen)))
    scopes = [box.scope for box in scene.boxes]
    inside: dict[int, Turn] = {}
    rounds: dict[int, int] = {}
    names = Scopes()
    for start, period, count in repeats(kinds):
        first = scene.boxes[made[start]]
        place = place_of(first.nodes[0])
        *_, name = names.inside(first.scope, f"line {place[1]}" if place is not None else "round")
        rounds[start] = count
        for k in range(period * count):
            inside[made[start + k]] = Turn(start, k % period, f"{name} [{k // period}]")
    for i, turn in inside.items():
        scopes[i] = (*scopes[i], turn.name)
    for i, beside in _alongside(scene, inside, rounds).items():
        scopes[i] = scopes[beside]
    return scene.in_scopes(scopes)


def _alongside(scene: Scene, inside: Mapping[int, Turn], rounds: Mapping[int, int]) -> dict[int, int]:
    """Boxes that belong to one round of a loop each, though they were made before or after the loop, and a box in it.

    They are parameters and operations that only one round reads, and operations that read only one round, where each
    round of the loop has one.
    """
    users = {i: [edge[1:] for edge in edges] for i, edges in scene.users().items() if i not in inside}
    sources: dict[int, list[tuple[int, int]]] = {}
    for source, target, slot in scene.edges:
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


def with_calls(scene: Scene) -> tuple[Scene, set[Path]]:
    """The scene with a scope around the operations of each call of a composed function, and these scopes.

    In a graph, the operations carry their calls, which may lie in other calls.  In the history of a tensor, the
    operations of one call have the same place in the user's code.
    """
    scope, scopes, made = [box.scope for box in scene.boxes], Scopes(), scene.made
    found: set[Path] = set()
    for call, inside in _members(scene).items():
        home = reduce(common, [scope[i] for i in inside])
        depth = len(home)
        whole = home and sum(scope[i][:depth] == home for i in made) == len(inside)  # of a module, which has a scope
        if len(inside) > 1 and not whole:
            path = scopes.inside(home, _title(call, scene.boxes[inside[-1]], home in found))
            found.add(path)
            for i in inside:
                scope[i] = (*path, *scope[i][depth:])
    users = scene.users()
    for i, box in enumerate(scene.boxes):
        if box.kind == "constant" and not box.name and i in users:
            scope[i] = reduce(common, [scope[edge.target] for edge in users[i]])
    return scene.in_scopes(scope), found


def _members(scene: Scene) -> dict[Any, list[int]]:
    """The operations in each call: a composite, or a call in the code; outer calls come before the calls in them."""
    found: dict[Any, list[int]] = {}
    rest = []
    for i in scene.made:
        composite = scene.boxes[i].nodes[0].composite
        for call in composite.path if composite is not None else ():
            found.setdefault(call, []).append(i)
        rest += [i] * (composite is None)
    rest.sort(key=lambda i: scene.boxes[i].nodes[0].serial)
    own = set(written_in_code([scene.boxes[i].nodes[0] for i in rest]))
    for _, group in groupby(rest, key=lambda i: (scene.boxes[i].nodes[0].where, scene.boxes[i].scope)):
        run = list(group)
        last = scene.boxes[run[-1]].nodes[0]
        name = call_of(last)
        if last in own and name is not None and all(scene.boxes[i].nodes[0].name != name for i in run):
            found[Call(name, run[0])] = run
    return found


def _title(call: Any, last: Box, nested: bool) -> str:
    """What a call is called: as the program writes its result, or by its function."""
    if nested:
        return str(call.name)
    if last.called:
        return last.title
    return f"{call.name} → {last.name}" if last.name else call.name


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
