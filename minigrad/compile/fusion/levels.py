"""Levels: how often a kernel over rows × columns computes a value."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """How often a value is computed, from most to least often."""

    PER_ELEMENT = 1
    PER_ROW = 2
    ONCE = 3
    ACROSS_ROWS = 4  # reduced over all rows: complete at the end of the kernel, so another kernel finishes it


PER_ELEMENT, PER_ROW, ONCE, ACROSS_ROWS = Level


def level_of(size: int, elements: int, row: int | None) -> Level | None:
    """How often a kernel over `elements` in rows of `row` computes `size` values; None if no loop of it fits.

    >>> [level_of(size, 12, 4) for size in (12, 3, 1, 5)]
    [<Level.PER_ELEMENT: 1>, <Level.PER_ROW: 2>, <Level.ONCE: 3>, None]
    """
    if size == elements:
        return PER_ELEMENT
    return ONCE if size == 1 else PER_ROW if row and size * row == elements else None
