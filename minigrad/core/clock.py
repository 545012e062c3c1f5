"""One clock for everything that is made or overwritten: how a stale gradient is caught without a version on tensors.

A node's serial number is the time when it was recorded.  When a buffer is overwritten, the time is noted here; when a
gradient is computed and something was overwritten since its node was recorded, what the node saved is looked up here.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from ..support.source import Where, caller

tick = itertools.count(1).__next__  # atomic, where `now += 1` is not


class LastWrite:
    """When anything at all was last overwritten: nodes younger than that need no look-up."""

    time = 0


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


def mark_written(array: Any, depth: int = 1, where: Where | None = None) -> None:
    """Note that the memory of `array` was just overwritten: `where`, or by the caller, `depth` frames up or further."""
    buffer = buffer_of(array)
    key = id(buffer)
    entry = WRITTEN.get(key)
    where = where or caller(depth + 1)
    if entry is None or entry.buffer() is not buffer:
        entry = Written()
        entry.buffer = weakref.ref(buffer, lambda _: WRITTEN.pop(key, None))
        entry.where, entry.time = where, 0
        WRITTEN[key] = entry  # complete: an interrupt may come at any time
    LastWrite.time = now = tick()
    entry.where, entry.time = where, now


def written_since(array: Any, time: int) -> Where | None:
    """The line that wrote into the memory of `array` after `time`; None if there is none, or `array` is a number."""
    if not hasattr(array, "base"):
        return None
    buffer = buffer_of(array)
    entry = WRITTEN.get(id(buffer))
    return entry.where if entry is not None and entry.buffer() is buffer and entry.time > time else None
