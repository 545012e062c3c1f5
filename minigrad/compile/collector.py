"""Python's garbage collector, asked to wait while a graph is made.

It looks through all that is new again and again as objects are made, and a trace makes many that all stay: of ten
thousand nodes, half of the time would be its.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
