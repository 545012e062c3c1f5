"""Python's garbage collector, asked to wait while a graph is made.

It looks through all that is new again and again as objects are made, and a trace makes many that all stay: of ten
thousand nodes, half of the time would be its.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

WAITING: set[int] = set()  # the threads that have switched the collector off


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage is collected in this block, unless another thread asks for it.

    >>> import gc
    >>> with no_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    try:
        if was_enabled:
            WAITING.add(get_ident())
        gc.disable()
        yield
    finally:
        if was_enabled:
            WAITING.discard(get_ident())
            gc.enable()


def _switch_on() -> None:
    """In a forked process, do what a thread would have done that the process does not have."""
    if WAITING and get_ident() not in WAITING:
        WAITING.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switch_on)
