"""Old names of public functions, methods, classes and arguments: they work for two releases, and name the new one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .source import warn_caller


def renamed(old: str, new: Callable[..., Any], since: str) -> Callable[..., Any]:
    """`new` under the name that it had before version `since`.  Each call warns.

    >>> total = renamed("mg.total", mg.sum, since="0.2")
    """
    room, dot, _ = old.rpartition(".")

    @wraps(new)
    def under_its_old_name(*args: Any, **kwargs: Any) -> Any:
        warn_renamed(old, room + dot + new.__name__, since)
        return new(*args, **kwargs)

    return under_its_old_name


def warn_renamed(old: str, new: str, since: str) -> None:
    """Warn at the user's line.  A function calls this for an old argument."""
    warn_caller(f"{old} is now {new}; the old name will be removed in {end_of(since)}", DeprecationWarning)


def end_of(since: str) -> str:
    """The version without the old name: two releases after the one that has the new name.

    >>> end_of("0.2"), end_of("1.9")
    ('0.4', '1.11')
    """
    major, minor = map(int, since.split("."))
    return f"{major}.{minor + 2}"
