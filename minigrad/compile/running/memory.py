"""The arena: values that are not needed at the same time share memory.

Only values between steps are in the arena.  Inputs belong to the caller, and results get new memory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from ctypes import addressof, c_char
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...devices.registry import CPU
from ..nodes.thresholds import POOLED_BYTES

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
BYTE = np.dtype(np.uint8)


@dataclass
class Arena:
    """`slots` are the sizes of the arena's pieces in bytes; `place` maps each value to its slot."""

    slots: list[int] = field(default_factory=list)
    place: dict[Hashable, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of the arena."""
        return sum(self.slots)


def arena_for(steps: Sequence[tuple[Iterable[Any], Iterable[Any]]], size_of: Callable[[Any], int | None]) -> Arena:
    """An arena for steps, each of which reads some values and then writes some.

    A value lives from the step that writes it to the last step that reads it.  `size_of` returns its bytes, or None if
    it has memory elsewhere.  A value takes the smallest free slot that is large enough, or enlarges the largest one.

    >>> sizes = {"a": 100, "b": 60, "c": 80}
    >>> made = arena_for([((), "a"), ("a", "b"), ("b", "c"), ("c", ())], sizes.get)
    >>> made.slots, made.place
    ([100, 60], {'a': 0, 'b': 1, 'c': 0})
    """
    last = {value: number for number, (reads, writes) in enumerate(steps) for value in (*reads, *writes)}
    made = Arena()
    free: list[tuple[int, int, int]] = []  # free slots, sorted: (bytes, the step that freed it, its number)
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
    """Memory of this many bytes that begins at a cache line."""
    memory = (CPU.pool.take if size >= POOLED_BYTES else np.empty)((size + ALIGNMENT,), BYTE)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def address(array: Any) -> int:
    """Where the memory of an array begins."""
    try:
        return addressof(c_char.from_buffer(array))  # takes a quarter of the time
    except (TypeError, ValueError):  # it is read-only, empty, or not contiguous
        return int(array.__array_interface__["data"][0])
