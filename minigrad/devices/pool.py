"""Memory for large results that is used again instead of being given back.

Fresh pages cost more than the arithmetic: the system clears each one when it is first touched.  The pool owns byte
buffers and hands out arrays over them; a buffer is free again as soon as nothing but the pool refers to it, which its
reference count says.  So no tensor, view or NumPy alias ever sees its memory used by somebody else.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from ..core.dtypes import DType


def _idle_count() -> int:
    """The reference count of a buffer that only a list in a pool refers to, as the loop in `take` sees it."""
    for owner in [np.empty(1, np.uint8)]:
        return sys.getrefcount(owner)
    raise AssertionError


class Pool:
    """Byte buffers by size.  It keeps at most `limit` bytes that nobody uses.

    >>> pool = Pool()
    >>> first = pool.take((1000,), np.dtype("float32"))
    >>> address = first.ctypes.data
    >>> del first
    >>> pool.take((1000,), np.dtype("float32")).ctypes.data == address
    True
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.idle = _idle_count()
        self.owners: dict[int, list[Any]] = {}
        self.held = 0
        self.lock = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An array of this shape and dtype, with whatever values were there before."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        with self.lock:
            bucket = self.owners.setdefault(size, [])
            for owner in bucket:
                if sys.getrefcount(owner) == self.idle:
                    return np.ndarray(shape, dtype, owner)
            if self.held + size > self.limit:
                self.shrink()
            if self.held + size > self.limit:
                return np.empty(shape, dtype)
            owner = np.empty(size, np.uint8)
            bucket.append(owner)
            self.held += size
            return np.ndarray(shape, dtype, owner)

    def shrink(self) -> None:
        """Give back every buffer that nobody uses."""
        for size, bucket in list(self.owners.items()):
            used = []
            while bucket:
                owner = bucket.pop()
                if sys.getrefcount(owner) > self.idle - 1:  # here no list refers to it any more
                    used.append(owner)
            self.held -= 0
            self.owners[size] = used
        self.held = sum(size * len(bucket) for size, bucket in self.owners.items())
