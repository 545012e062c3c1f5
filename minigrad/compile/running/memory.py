"""The arena: which values share memory, because they are not needed at the same time.

Only what passes between steps is planned.  What comes in belongs to the caller, and results get memory of their own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes: a line of the cache, and the widest vector


@dataclass
class Arena:
    """`slots` are the sizes in bytes of the pieces of an arena, `place` says in which one each value lies."""

    slots: list[int] = field(default_factory=list)
    place: dict[Hashable, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """What all of it takes."""
        return sum(self.slots)


def arena_for(steps: Sequence[tuple[Iterable[Any], Iterable[Any]]], size_of: Callable[[Any], int | None]) -> Arena:
    """An arena for steps that each read some values and then write some.

    A value lives from the step that writes it to the last one that reads it; `size_of` gives its bytes, or None if it
    has memory elsewhere.  The smallest free slot that is large enough is taken; else the largest is made larger.

    >>> sizes = {"a": 100, "b": 60, "c": 80}
    >>> made = arena_for([((), "a"), ("a", "b"), ("b", "c"), ("c", ())], sizes.get)
    >>> made.slots, made.place
    ([100, 60], {'a': 0, 'b': 1, 'c': 0})
    """
    last = {value: number for number, (reads, writes) in enumerate(steps) for value in (*reads, *writes)}
    made = Arena()
    free: list[tuple[int, int, int]] = []  # slots that nobody needs: (bytes, when it became free, which), sorted
    for number, (reads, writes) in enumerate(steps):
        written = list(writes)
        for value in written:
            size = size_of(value)
            if size is not None and value not in made.place:
                made.place[value] = _slot(made.slots, free, size)
        for value in dict.fromkeys((*reads, *written)):
            if last[value] == number and value in made.place:
                slot = made.place[value]
                insort(free, (made.slots[slot], number, slot))
    return made


def _slot(slots: list[int], free: list[tuple[int, int, int]], size: int) -> int:
    if not free:
        slots.append(size)
        return len(slots) - 1
    smallest_fitting = bisect_left(free, (size,))
    _, _, slot = free.pop(min(smallest_fitting, len(free) - 1))
    slots[slot] = max(slots[slot], size)
    return slot


def aligned(size: int) -> Any:
    """So many bytes that begin where a line of the cache does."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
