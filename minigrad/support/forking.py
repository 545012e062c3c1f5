"""Locks that a forked process can use.

A fork copies only the thread that forks.  If another thread holds a lock at that moment, the child could never take
the lock: nothing would release it.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from .source import OURS

LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """A reentrant lock.  In a forked process it is free, unless the thread that forked held it.

    >>> lock = new_lock()
    >>> with lock, lock:
    ...     pass
    """
    lock = threading.RLock()
    LOCKS.add(lock)
    return lock


def _free_locks() -> None:
    for lock in (*LOCKS, *_locks_of_properties()):
        if not lock._is_owned():
            lock._at_fork_reinit()


def _locks_of_properties() -> Iterator[Any]:
    """The locks of cached properties.  Before Python 3.12, computing such a property holds a lock."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS:
            for cls in list(vars(module).values()):
                if isinstance(cls, type):
                    found = [p for p in list(vars(cls).values()) if isinstance(p, cached_property)]
                    yield from [p.lock for p in found]  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
