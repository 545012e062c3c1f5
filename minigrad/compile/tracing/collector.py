"""Python's garbage collector, asked to wait while a graph is made.

It looks through all that is new again and again as objects are made, and a trace makes many that all stay: of ten
thousand nodes, half of the time would be its.
"""

from __future__ import annotations

import gc
import os
from threading import get_ident

WAITING: set[int] = set()  # the threads that have switched the collector off


class no_collection:
    """No garbage is collected in this block, unless another thread asks for it.

    Where Ctrl-C stops `__exit__` before its first line, `__del__` switches the collector on as soon as the exception is
    dropped.

    >>> import gc
    >>> with no_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    thread = 0  # that has switched the collector off here

    def __enter__(self) -> None:
        if gc.isenabled():
            self.thread = get_ident()  # first: from here on the collector is switched on at the end
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
    """In a forked process, do what a thread would have done that the process does not have."""
    if WAITING and get_ident() not in WAITING:
        WAITING.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switch_on)
