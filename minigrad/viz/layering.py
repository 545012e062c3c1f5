"""The layer of each box of a picture: after the boxes that it is computed from, and frame after frame.

A frame takes as many layers as its contents need.  A box that comes after any box of a frame comes after the whole
frame.  So parts that depend on each other stand in a column, and independent parts stand side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from .scene import Path, common


def layers(edges: Sequence[tuple[int, int]], paths: Sequence[Path]) -> list[int]:
    """The layer of each box, which is in the frame that its path names.

    >>> layers([(0, 1), (1, 2)], [("a",), ("a",), ("b",)])
    [0, 1, 2]
    """
    return _frame_by_frame(edges, paths) or _one_by_one(edges, len(paths))


def _one_by_one(edges: Sequence[tuple[int, int]], count: int) -> list[int]:
    """The layers without regard to frames, for scopes that the computation leaves and enters again."""
    start = _stacked(range(count), edges, {})
    assert start is not None  # edges follow the order in which the boxes were made
    return [start[box] for box in range(count)]


def _frame_by_frame(edges: Sequence[tuple[int, int]], paths: Sequence[Path]) -> list[int] | None:
    """Each frame's contents by themselves, the innermost first; then it is one tall box among the others."""
    inside: dict[Path, dict[Hashable, None]] = {(): {}}  # frame -> its boxes and the frames in it, in their order
    for box, path in enumerate(paths):
        for depth in range(len(path)):
            inside.setdefault(path[:depth], {})[path[: depth + 1]] = None
        inside.setdefault(path, {})[box] = None
    between: dict[Path, list[tuple[Hashable, Hashable]]] = {path: [] for path in inside}
    for source, target in edges:
        a, b = paths[source], paths[target]
        depth = len(common(a, b))
        ends = a[: depth + 1] if len(a) > depth else source, b[: depth + 1] if len(b) > depth else target
        between[a[:depth]].append(ends)
    heights: dict[Hashable, int] = {}
    starts: dict[Hashable, int] = {}
    for path in sorted(inside, key=len, reverse=True):
        found = _stacked(inside[path], between[path], heights)
        if found is None:
            return None
        starts |= found
        heights[path] = max([start + heights.get(each, 1) for each, start in found.items()], default=0)
    offset: dict[Path, int] = {(): 0}
    for path in sorted(inside, key=len):
        if path:
            offset[path] = offset[path[:-1]] + starts[path]
    return [offset[path] + starts[box] for box, path in enumerate(paths)]


def _stacked(
    things: Sequence[Hashable] | Mapping[Hashable, None] | range, edges: Sequence[tuple[Hashable, Hashable]],
    heights: Mapping[Hashable, int],
) -> dict[Hashable, int] | None:
    """Where each thing begins: as early as what it comes after allows, and then as late, where that makes no more edges
    longer than shorter.  So a weight, and what is done to a weight, comes right before it is used.

    None if things go round in a circle.
    """
    after: dict[Hashable, list[Hashable]] = {thing: [] for thing in things}
    before = dict.fromkeys(after, 0)
    for source, target in edges:
        after[source].append(target)
        before[target] += 1
    start = dict.fromkeys(after, 0)
    waiting = dict(before)
    order = [thing for thing in after if not waiting[thing]]
    for thing in order:  # which grows meanwhile
        end = start[thing] + heights.get(thing, 1)
        for target in after[thing]:
            start[target] = max(start[target], end)
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    if len(order) < len(after):
        return None
    for thing in reversed(order):
        if after[thing] and before[thing] <= len(after[thing]):
            start[thing] = min([start[target] for target in after[thing]]) - heights.get(thing, 1)
    return start
