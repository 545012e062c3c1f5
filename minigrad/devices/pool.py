"""Memory for large results, which is reused instead of being returned to the system.

Fresh pages cost more than the arithmetic: the system clears each one when it is first touched.  The pool hands out
arrays over memory of its own and keeps a weak reference to each: every view, NumPy alias and DLPack export of an array
keeps that array alive, so when the reference dies, nothing refers to the memory any more, and it is free again.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

import numpy as np

from ..core.dtypes import DType


class Memory(np.ndarray[Any, Any]):
    """Bytes that a pool owns.

    It is a class of its own because NumPy lets a view of a view refer to the owner of the memory, past the array in
    between, but stops where the class changes: so views of an array over `Memory` refer to that array.
    """


FINEST = 16  # a piece of memory is at most a sixteenth larger than the array for which it was made


def size_class(size: int) -> int:
    """The size of the piece of memory for an array of `size` bytes: arrays of similar sizes share pieces.

    Batches and sequences whose lengths differ a little would otherwise leave a piece for each length.

    >>> size_class(1_000_000), size_class(1_010_000), size_class(1_048_576)
    (1015808, 1015808, 1048576)
    """
    step = 1 << max((size - 1).bit_length() - FINEST.bit_length(), 0)
    return -(-size // step) * step


class Pool:
    """Memory by size.  It keeps at most `limit` unused bytes.

    There is no lock: an array can die at any moment, also in the middle of `take` in the same thread (the collector
    runs at any time).  Each step is one operation on a list or a dict, which no other thread can come between.

    >>> pool = Pool()
    >>> first = pool.take((1000,), np.dtype("float32"))
    >>> address = first.ctypes.data
    >>> second = first[10:]
    >>> del first
    >>> pool.take((1000,), np.dtype("float32")).ctypes.data == address
    False
    >>> del second
    >>> pool.take((1000,), np.dtype("float32")).ctypes.data == address
    True
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.free: dict[int, list[Memory]] = {}  # by size class
        self.lent: dict[int, weakref.ref[Any]] = {}  # by id of the array

    def take(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An array of this shape and dtype, with whatever values were there before."""
        size = dtype.itemsize * prod(shape)
        if not size:
            return np.empty(shape, dtype)
        size = size_class(size)
        try:
            memory = self.free[size].pop()
        except (KeyError, IndexError):
            memory = self._allocate(size)
        array = np.ndarray(shape, dtype, memory)
        key = id(array)
        self.lent[key] = weakref.ref(array, lambda _: self._give_back(key, memory))
        return array

    def _allocate(self, size: int) -> Memory:
        try:
            return Memory(size, np.uint8)
        except MemoryError:
            self.shrink()
            return Memory(size, np.uint8)

    def _give_back(self, key: int, memory: Memory) -> None:
        self.lent.pop(key, None)
        if self.idle + memory.nbytes > self.limit:
            self.shrink()  # the sizes kept here have not been used lately
        if memory.nbytes <= self.limit:
            self.free.setdefault(memory.nbytes, []).append(memory)

    @property
    def idle(self) -> int:
        """The unused bytes that are kept."""
        return sum(size * len(found) for size, found in list(self.free.items()))

    def shrink(self) -> None:
        """Return all unused memory to the system."""
        self.free = {}

