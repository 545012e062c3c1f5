"""Switches Python's garbage collector off while a graph is made.

A trace creates many objects, and all of them stay alive.  The collector would visit them repeatedly and find nothing:
for ten thousand nodes, that takes half of the time.
"""

from __future__ import annotations

import gc
import os
from threading import get_ident

WAITING: set[int] = set()  # the threads that have switched the collector off


class no_collection:
    """Switch the collector off in this block, unless another thread switches it on.

    If Ctrl-C stops `__exit__` before its first line, `__del__` switches the collector on once the exception is freed.

    >>> import gc
    >>> with no_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    thread = 0  # the thread that has switched the collector off here

    def __enter__(self) -> None:
        if gc.isenabled():
            self.thread = get_ident()  # first, so that `__exit__` switches the collector on in any case
            WAITING.add(self.thread)
            gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.thread:
            gc.enable()
            WAITING.discard(self.thread)
            self.thread = 0

    def __del__(self) -> None:
        self.__exit__()


def _switch_on() -> None:
    """Switch the collector on in a forked process, which does not have the thread that would do it."""
    if WAITING and get_ident() not in WAITING:
        WAITING.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switch_on)
