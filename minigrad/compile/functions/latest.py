"""A table that keeps the entries that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ...support.forking import new_lock

KEPT = 128  # entries
Entry = TypeVar("Entry")


class Latest(Generic[Entry]):
    """Entries by key: beyond `KEPT`, the one that was not used for longest is dropped.

    >>> table = Latest()
    >>> table.shared("a", list).append(1)
    >>> table.shared("a", list), len(table)
    ([1], 1)
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Entry] = OrderedDict()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._kept)

    def shared(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        """The entry of a key, which `make()` makes where there is none."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = make()
        with self._lock:
            made = self._kept.setdefault(key, made)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made
