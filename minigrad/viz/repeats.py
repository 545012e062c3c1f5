"""Loops and calls: find the rounds of a loop, and the operations of one call, to show each as one box.

A graph does not store loops or calls.  But its operations come in the order in which they were made, each with its
place in the code.  If the same lines make the same operations several times in a row, they are a loop.  The operations
of one call of a library function have the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..core.mode import TANGENT, ModuleName
from ..core.node import Node
from ..support.source import line_of
from .naming import Flow, call_of, loop_around, written_in_code
from .notation import expression_at
from .phases import BACKWARD, PHASES, UPDATE
from .scene import Path, Scene, Scopes, common

LONGEST = 200  # operations of a round
PHASE_SCOPES: list[Path] = [(phase,) for phase in PHASES]
ROUNDS, WORTH = 3, 12  # the fewest rounds of a loop, and the fewest operations in all its rounds


class Turn(Flow):
    """The name of the scope of a round of a loop; what is made of all rounds at last lies in them too."""


class Call(NamedTuple):
    """A call: the name of its operations, and the first box of them or the call whose gradient they are."""

    name: str
    of: Any


def with_visits(scene: Scene) -> Scene:
    """The scene with a scope of its own for each call of a module that is called again after others: `field 2`.

    A module was called again if it was left, and then an operation was made in it.  The name of another model of the
    same class is equal, but it is another object.  The gradients of a module are not made one after the other: they
    are those of a second call if one of them was made before.
    """
    seen: dict[Path, set[object]] = {}  # what each scope has made in this call
    scopes, names = [box.scope for box in scene.boxes], Scopes()
    latest: Path = ()
    renamed: dict[Path, Path] = {}
    for i in scene.made:
        (node,), path = scene.boxes[i].nodes, scene.boxes[i].scope
        key = node.name, node.shape, path
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            is_call = part[0] not in (BACKWARD, UPDATE) and not isinstance(part[-1], Flow)
            left = latest[:depth] != part or (isinstance(part[-1], ModuleName) and part[-1] is not latest[depth - 1])
            again = left and part in seen and (is_call or key in seen[part]) and not isinstance(part[-1], Turn)
            if again or part not in renamed:
                inner = [other for other in renamed if other[:depth] == part]
                for other in inner:
                    del renamed[other], seen[other]
                renamed[part] = names.inside(renamed.get(part[:-1], ()), part[-1], kind=type(part[-1]))
            seen.setdefault(part, set()).add(key)
        scopes[i], latest = renamed.get(path, path), path
    return scene.in_scopes(scopes)


def with_rounds(scene: Scene) -> Scene:
    """The scene with a scope around each round of each loop."""
    made = scene.made
    nodes = [scene.boxes[i].nodes[0] for i in made]
    places = [(line_of(node.where), node.offset) for node in nodes]
    written = [expression_at(node.where) or node.where for node in nodes]  # Python may move an instruction in a loop
    kinds = [(node.name, node.shape, at, scene.boxes[i].scope) for i, node, at in zip(made, nodes, written)]
    scopes = [box.scope for box in scene.boxes]
    inside: dict[int, Any] = {}  # where a box is: the first box of its loop, the place in the round, the round's name
    rounds: dict[int, int] = {}
    names = Scopes()
    for loop in loops_of(kinds, places):
        start, end = loop.start, loop.start + loop.period
        if loop.period == 1 and nodes[start] not in nodes[end].sources:
            continue  # parts of one value, or a value of each round of a loop
        home = common(*[scopes[i] for i in made[start:end]])
        *_, name = names.inside(home, loop_around(nodes[start:end]) or "round")
        rounds[start] = loop.rounds
        for k, number, place in loop.turns():
            turn = Turn(f"{name} [{number}]")
            inside[made[k]] = start, place, turn
            scopes[made[k]] = (*home, turn, *scopes[made[k]][len(home) :])
    for i, beside in _alongside(scene, inside, rounds).items():
        scopes[i] = scopes[beside]
    return scene.in_scopes(scopes)


class Loop(NamedTuple):
    """A loop: its first operation, those of a round, and the rounds; and how many of a first round are before these.

    That round lacks some operations: what has no gradient is not recorded.  Or it has more: the first dtype may differ.
    """

    start: int
    period: int
    rounds: int
    before: int

    def turns(self) -> Iterator[tuple[int, int, int]]:
        """Each operation, with the number of its round, and its place there; -1 in a round that lacks some."""
        for i in range(self.start - self.before, self.start + self.period * self.rounds):
            number, place = divmod(i - self.start, self.period)
            yield i, max(number, -1) + bool(self.before), -1 if number < 0 else place


def loops_of(kinds: Sequence[object], places: Sequence[Any]) -> list[Loop]:
    """The loops in a sequence.  A round begins at its first line, as far as as many rounds remain.

    >>> loops_of(["c", "d", *["a", "b", "c", "d"] * 3], [2, 3, *[0, 1, 2, 3] * 3])
    [Loop(start=2, period=4, rounds=3, before=2)]
    >>> loops_of(["a", "+", "b", "a", *["a", "b", "a"] * 4], [0, 0, 1, 2, *[0, 1, 2] * 4])
    [Loop(start=4, period=3, rounds=4, before=4)]
    """
    found = []
    for start, period, count in repeats(kinds):
        end, more = start + period * count, 0
        while more < period and end + more < len(kinds) and kinds[end + more] == kinds[start + more]:
            more += 1
        start += min(range(more + 1), key=lambda by: places[start + by])
        found.append(Loop(start, period, count, _before(kinds, places, start, period)))
    return found


def _before(kinds: Sequence[object], places: Sequence[Any], start: int, period: int) -> int:
    """How many operations before the first round are those of one that lacks some, or has more at the same lines.

    The rounds of one call have no lines to compare.
    """
    turn, found = [*kinds[start : start + period]], 0
    for i in reversed(range(start if places[start] < places[start + period - 1] else 0)):
        if kinds[i] in turn:
            while turn.pop() != kinds[i]:
                pass
            found = start - i
        elif not places[start] <= places[i] <= places[i + 1]:
            break
    return found


def _alongside(scene: Scene, inside: Mapping[int, Any], rounds: Mapping[int, int]) -> dict[int, int]:
    """Boxes that belong to one round of a loop each, though they were made before or after the loop, and a box in it.

    They are parameters and operations that only one round reads, and operations that read only one round, where each
    round of the loop has one.
    """
    beside: dict[tuple[bool, int], list[tuple[int, int]]] = {}  # of a box outside: boxes inside, and slots
    for source, target, slot in scene.edges:
        if source not in inside:
            beside.setdefault((False, source), []).append((target, slot))
        elif target not in inside:
            beside.setdefault((True, target), []).append((source, slot))
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for (after, i), others in beside.items():
        box, (other, slot) = scene.boxes[i], others[0]
        turns = {inside[each][::2] if each in inside else None for each, _ in others}
        made_there = box.nodes[0].op is not None and box.scope == scene.boxes[other].scope
        if len(turns) == 1 and None not in turns and (made_there or box.kind == "parameter"):
            start, place, _ = inside[other]
            key = start, after, place, slot, box.nodes[0].name, box.nodes[0].shape
            found.setdefault(key, []).append((i, other))
    alike = [each for (start, *_), each in found.items() if len(each) == rounds[start]]  # type: ignore[index]
    return {i: other for each in alike for i, other in each}


def with_calls(scene: Scene) -> tuple[Scene, set[Path]]:
    """The scene with a scope around the operations of each call of a composed function, and these scopes.

    In a graph, the operations carry their calls, which may lie in other calls.  In the history of a tensor, the
    operations of one call have the same place in the user's code.
    """
    scope, scopes, made = [box.scope for box in scene.boxes], Scopes(), scene.made
    found: set[Path] = set()
    own = set(written_in_code([scene.boxes[i].nodes[0] for i in made]))
    for call, inside in _members(scene, own).items():
        home = common(*[scope[i] for i in inside])
        depth = len(home)
        whole = home and sum(scope[i][:depth] == home for i in made) == len(inside)  # of a module, which has a scope
        if len(inside) > 1 and not whole:
            last = scene.boxes[inside[-1]]
            is_written = home not in found and last.nodes[0] in own and last.nodes[0].origin is None
            path = scopes.inside(home, last.title if is_written else call.name)
            found.add(path)
            for i in inside:
                scope[i] = (*path, *scope[i][depth:])
    return scene.in_scopes(scope), found


def with_leaves(scene: Scene, calls: Collection[Path]) -> Scene:
    """The scene with what is not computed where it is read, in the first phase that reads it.

    What is read in several calls of its module lies beside them.  What a model has lies in the module, around calls of
    functions, loops and branches; what comes from outside is seen at once.
    """
    scopes, readers = [box.scope for box in scene.boxes], dict[int, list[Path]]()
    for source, target, _ in scene.edges:
        readers.setdefault(source, []).append(scopes[target])
    for i, read in readers.items():
        box = scene.boxes[i]
        if box.nodes[0].op is not None:
            continue
        phase = min([path[:1] for path in read if path[:1] in PHASE_SCOPES], key=PHASE_SCOPES.index, default=())
        home = common(*[path for path in read if path[: len(phase)] == phase])
        if box.name or box.kind != "constant":
            while home in calls or (home and isinstance(home[-1], Flow) and home[-1] not in box.scope):
                home = home[:-1]
            if not box.scope and (not phase or (box.kind == "input" and phase != (UPDATE,))):
                home = phase
            if len(home) < len(phase) + len(box.scope):
                home = (*home, f"parameters of {box.scope[0]}")
        scopes[i] = home
    return scene.in_scopes(scopes)


def _members(scene: Scene, own: Collection[Node]) -> dict[Any, list[int]]:
    """The operations in each call: a composite, or a call in the code; outer calls come before the calls in them.

    The values of the nodes in `own` are those of expressions in the code.
    """
    found: dict[Any, list[int]] = {}
    rest = []
    for i in scene.made:
        node = scene.boxes[i].nodes[0]
        composite = (node.origin or node).composite
        for call in composite.path if composite is not None else ():
            found.setdefault(call if node.origin is None else Call(f"∂{call.name}", call), []).append(i)
        rest += [i] * (composite is None)
    rest.sort(key=lambda i: scene.boxes[i].nodes[0].serial)
    before: list[int] = []  # what the function that a call of `jvp` is given computes, each at its own line
    for _, group in groupby(rest, key=lambda i: (scene.boxes[i].nodes[0].where, scene.boxes[i].scope)):
        run = list(group)
        last = scene.boxes[run[-1]].nodes[0]
        name = call_of(last)
        if name == "jvp":
            run, before = [*before, *run], []
        tangents = [k for k, i in enumerate(run) if scene.boxes[i].nodes[0].toward == TANGENT]
        if tangents and name != "jvp":
            before += run[max(0, tangents[0] - 1) :]  # the first tangents are those of the value before them
        is_call = last in own or any(scene.boxes[i].nodes[0].origin for i in run)
        if is_call and name is not None and all(scene.boxes[i].nodes[0].name != name for i in run):
            found[Call(name, run[0])] = run
    return found


def rounds_of(kinds: Sequence[object], places: Sequence[Any]) -> dict[int, tuple[range, str]]:
    """The first whole round of the loop that each place in a sequence is in, and the name of its own round.

    >>> rounds_of(["a", *["b", "c", "d", "e"] * 3], [*range(5), *range(1, 5), *range(1, 5)])[6]
    (range(1, 5), 'round 1')
    """
    return {i: (range(loop.start, loop.start + loop.period), f"round {number}")
            for loop in loops_of(kinds, places) for i, number, _ in loop.turns()}


def repeats(kinds: Sequence[object]) -> list[tuple[int, int, int]]:
    """The repeats in a sequence, without overlaps: the start, the length of a round and the number of rounds.

    >>> repeats([9, *[1, 2, 3, 4] * 3, 7])
    [(1, 4, 3)]
    """
    numbers: dict[object, int] = {}
    sequence, start, found = [numbers.setdefault(kind, len(numbers)) for kind in kinds], 0, []
    while start < len(sequence):
        best = 0, 0  # what a repeat that begins here covers, and minus its period
        for period in range(1, min(LONGEST, len(sequence) // ROUNDS) + 1):
            end = start + period
            while end < len(sequence) and sequence[end] == sequence[end - period]:
                end += 1
            count = (end - start) // period
            if count >= ROUNDS and period * count >= WORTH:
                best = max(best, (period * count, -period))
        covered, period = best
        if covered:
            found.append((start, -period, covered // -period))
        start += covered or 1
    return found
