"""Keeps several writes together, although Ctrl-C can raise KeyboardInterrupt between any two instructions."""

from __future__ import annotations

from collections.abc import Callable

from .errors import MinigradError


def all_or_none(writes: Callable[[], object]) -> None:
    """Call `writes`; if it is interrupted, call it again, so that all of it is written.

    Writing twice must give the same result as writing once.  Code that may fail belongs before this call.

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
