"""One clock for recorded nodes and overwritten buffers: it finds stale gradients without version numbers on tensors.

A node's serial number is the time when it was recorded.  This module stores the time of the last write into each
buffer.  A gradient compares the two for the values that its node saved.
"""

from __future__ import annotations

import itertools
import weakref
from functools import partial
from typing import Any

from ..support.source import Where, caller

tick = itertools.count(1).__next__  # atomic, unlike `now += 1`


class LastWrite:
    """The time of the last write into any buffer: younger nodes need no look-up."""

    time = 0


class Written:
    """The last write into a buffer: its time, and the line that made it."""

    __slots__ = ("buffer", "time", "where")
    buffer: Any  # a weak reference
    time: int
    where: Where


WRITTEN: dict[int, Written] = {}  # by the id of the buffer, to which the entry has a weak reference
SHARED: dict[int, Any] = {}  # weak references to buffers that others may write to, by their ids


def buffer_of(array: Any) -> Any:
    """The array that owns the memory of `array`."""
    base = array.base
    while base is not None and base.__class__ is array.__class__:
        array = base
        base = array.base
    return array


def mark_written(array: Any, depth: int = 1, where: Where | None = None) -> None:
    """Store that the line `where` has just overwritten the memory of `array`; by default the caller's line."""
    buffer = buffer_of(array)
    key = id(buffer)
    entry = WRITTEN.get(key)
    where = where or caller(depth + 1)
    if entry is None or entry.buffer() is not buffer:
        entry = Written()
        entry.buffer = weakref.ref(buffer, partial(WRITTEN.pop, key))
        entry.where, entry.time = where, 0
        WRITTEN[key] = entry  # only now, when it is complete: an interrupt may come at any time
    LastWrite.time = now = tick()
    entry.where, entry.time = where, now


def written_since(array: Any, time: int) -> Where | None:
    """The line that wrote into the memory of `array` after `time`; None if there is none, or `array` is a number."""
    if not hasattr(array, "base"):
        return None
    buffer = buffer_of(array)
    entry = WRITTEN.get(id(buffer))
    if entry is None or entry.buffer() is not buffer or entry.time <= time:
        return None
    return entry.where


def mark_shared(array: Any) -> None:
    """Store that others may write to the memory of `array` at any time, without a mark."""
    buffer = buffer_of(array)
    key = id(buffer)
    SHARED[key] = weakref.ref(buffer, partial(SHARED.pop, key))
    LastWrite.time = tick()  # they may have written already
