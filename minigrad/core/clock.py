"""Which buffers were written into since when: how a stale gradient is caught without a version number on tensors.

The clock ticks only when a buffer is overwritten.  A node stamps the time when it is recorded; when its gradient is
computed and the clock has moved, the buffers that it saved are looked up here.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .source import Where, caller


class Clock:
    """`now` is the number of writes so far; reading it is all that recording a node costs."""

    __slots__ = ("now",)
    now: int


CLOCK = Clock()
CLOCK.now = 0
_ticks = itertools.count(1).__next__  # atomic, where `now += 1` is not


class Written:
    """The last write into a buffer: when, and by which line."""

    __slots__ = ("buffer", "time", "where")
    buffer: Any  # a weak reference
    time: int
    where: Where


WRITTEN: dict[int, Written] = {}  # by id of the buffer, which the entry refers to weakly


def buffer_of(array: Any) -> Any:
    """The array that owns the memory which `array` looks at."""
    base = array.base
    while base is not None and base.__class__ is array.__class__:
        array = base
        base = array.base
    return array


def mark_written(array: Any) -> None:
    """Note that the memory of `array` has just been overwritten, by the caller's line."""
    buffer = buffer_of(array)
    key = id(buffer)
    entry = WRITTEN.get(key)
    if entry is None or entry.buffer() is not buffer:
        entry = WRITTEN[key] = Written()
        entry.buffer = weakref.ref(buffer, lambda _: WRITTEN.pop(key, None))
    entry.where = caller(2)
    entry.time = CLOCK.now = _ticks()


def written_since(array: Any, time: int) -> Where | None:
    """The line that wrote into the memory of `array` after `time`, or None."""
    buffer = buffer_of(array)
    entry = WRITTEN.get(id(buffer))
    return entry.where if entry is not None and entry.buffer() is buffer and entry.time > time else None
