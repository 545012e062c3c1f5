"""Writes that belong together: Ctrl-C raises KeyboardInterrupt between any two instructions of Python."""

from __future__ import annotations

from collections.abc import Callable

from .errors import MinigradError


def all_or_none(writes: Callable[[], object]) -> None:
    """Call `writes`, and where it is stopped on the way call it again: so either all is written, or nothing is.

    Writing twice has to give the same as writing once.  What may fail belongs before it, not in it.

    >>> state = {}
    >>> def writes():
    ...     state["shape"] = (2,)
    ...     state["values"] = [1.0, 2.0]
    >>> all_or_none(writes)
    >>> state
    {'shape': (2,), 'values': [1.0, 2.0]}
    """
    try:
        writes()
    except MinigradError:
        raise
    except BaseException:
        writes()
        raise
