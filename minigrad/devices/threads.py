"""A few threads for work on large arrays.  NumPy releases the interpreter's lock while it computes."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import get_ident
from time import sleep
from typing import TYPE_CHECKING, Any

from ..support.errors import ConversionError
from ..support.words import shown, whole

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BLOCK = 1 << 16  # elements that a thread computes at a time
MOST = 8  # by default: more threads would wait for memory


def _default_count() -> int:
    said = os.environ.get("OMP_NUM_THREADS", "")  # the usual variable, also for NumPy's matrix product
    if said.isdecimal() and int(said):
        return int(said)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST)


def _unknown() -> int:
    return -1


# The number of the core that the caller runs on: Linux has a function for it.  It is used where threads can be moved.
current_core: Callable[[], int] = _unknown
if sys.platform == "linux" and hasattr(os, "sched_getaffinity"):
    current_core = getattr(ctypes.PyDLL(None), "sched_getcpu", _unknown)


class Apart:
    """Threads that keep off the core of the thread that gives them work.

    In a virtual machine, Linux takes a sleeping core for a busy one, and often wakes a thread on the core of its
    caller.  There it waits until the caller has computed everything.
    """

    def __init__(self) -> None:
        self.threads: list[int] = []  # as the system numbers them
        self.core = -1  # the one that they keep off

    def add(self, thread: int | None) -> None:
        """Let one more thread keep off, from the next `move` on; some systems do not number threads."""
        if thread is not None:
            self.threads.append(thread)
            self.core = -1

    def move(self) -> None:
        """Keep all threads off the caller's core, on the other ones that the caller may use."""
        core = current_core()
        if core != self.core:
            self.core, others = core, os.sched_getaffinity(0) - {core}
            for thread in self.threads if others else ():
                with suppress(OSError):  # the system does not allow it
                    os.sched_setaffinity(thread, others)


class Threads:
    """The number of threads that share the work (`count`, with the caller's), and the helper threads."""

    def __init__(self) -> None:
        self.count = _default_count()
        self.helpers: ThreadPoolExecutor | None = None
        self.apart = Apart()

    def submit(self, work: Callable[[], object]) -> Future[object] | None:
        """Run work in a helper, in the caller's context (modes, NumPy's errstate); None if no helper can start."""
        helpers = self.helpers
        if helpers is None:
            from concurrent.futures import ThreadPoolExecutor  # its import takes as long as that of all devices

            helpers = self.helpers = ThreadPoolExecutor(self.count - 1, "minigrad", self._begin)
        self.apart.move()
        try:
            return helpers.submit(copy_context().run, work)
        except RuntimeError:  # the interpreter is shutting down
            return None

    def forget_helpers(self) -> None:
        """Start new threads when they are needed: a forked process does not have its parent's threads."""
        self.helpers, self.apart = None, Apart()

    def _begin(self) -> None:
        """A helper calls this first."""
        self.apart.add(threading.get_native_id())


THREADS = Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.forget_helpers)


def num_threads() -> int:
    """The number of threads that share the work on a large array.

    >>> mg.devices.num_threads() >= 1
    True
    """
    return THREADS.count


def set_num_threads(count: int) -> None:
    """Share the work on large arrays among `count` threads; with 1, the caller's thread computes everything.

    >>> before = mg.devices.num_threads()
    >>> mg.devices.set_num_threads(1)
    >>> mg.devices.num_threads()
    1
    >>> mg.devices.set_num_threads(before)
    """
    if whole(count, 1, 1 << 16) is None:
        raise ConversionError(f"set_num_threads: at least one thread is needed, not {shown(count)}")
    THREADS.count = count
    THREADS.forget_helpers()


def in_blocks(work: Callable[[int, int], object], size: int, step: int) -> None:
    """`work(start, stop)` for blocks of `step` that make up `size`, in no order, by all threads; then return.

    Each thread takes the next block when it has finished one, so a busy core does not delay the others.

    >>> done = []
    >>> in_blocks(lambda start, stop: done.append((start, stop)), 10, 4)
    >>> sorted(done)
    [(0, 4), (4, 8), (8, 10)]
    """
    starts = deque(range(0, size, step))

    helpers: set[int] = set()  # the threads that are at work here

    def work_off() -> None:
        while True:
            try:
                start = starts.popleft()
            except IndexError:
                return
            work(start, min(start + step, size))

    def help_out() -> None:
        helpers.add(get_ident())  # before it takes a block
        try:
            work_off()
        finally:
            helpers.discard(get_ident())

    wanted = min(THREADS.count, len(starts)) - 1
    try:
        helping = [future for future in [THREADS.submit(help_out) for _ in range(wanted)] if future is not None]
        work_off()
        running = [future for future in helping if not future.cancel()]  # one that has not begun is not waited for
        errors = [future.exception() for future in running]  # which waits for each of them
    except BaseException:  # an error, or an interrupt: no thread may write into this memory after it
        starts.clear()
        _wait_for(helpers)
        raise
    for error in errors:
        if error is not None:
            raise error


def _wait_for(helpers: set[int]) -> None:
    """Wait until all helpers have finished their blocks; another interrupt does not end the wait."""
    while helpers:
        with suppress(KeyboardInterrupt):
            sleep(1e-4)


def elementwise_in_blocks(kernel: Callable[..., object], values: list[Any], attrs: dict[str, Any], out: Any) -> None:
    """`kernel(*values, **attrs, out=out)` in blocks that stay in a core's cache, shared by the threads.

    Arrays of the same shape are taken as one long row; if they broadcast, the blocks are rows of the first dimension.
    The blocks depend on the shapes only, so the results do not depend on the number of threads.  They may differ from
    those of one call in the last bit, because NumPy chooses its loop by the strides that a block happens to have.

    >>> import numpy as np
    >>> out = np.empty((3, 4))
    >>> elementwise_in_blocks(np.add, [np.ones((3, 1)), np.arange(4.0)], {}, out)
    >>> out[2].tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    arrays = [value for value in values if getattr(value, "ndim", 0)]
    if all(a.shape == out.shape and a.flags.c_contiguous for a in arrays):
        out = out.reshape(-1)
        values = [value.reshape(-1) if getattr(value, "ndim", 0) else value for value in values]
    axis = next((i for i, extent in enumerate(out.shape) if extent > 1), None)
    if axis is None or not out.size:
        kernel(*values, **attrs, out=out)
        return
    extent, ndim = out.shape[axis], out.ndim

    def compute(start: int, stop: int) -> None:
        parts = [_part(value, axis - ndim, start, stop) for value in (*values, out)]
        kernel(*parts[:-1], **attrs, out=parts[-1])

    in_blocks(compute, extent, max(1, BLOCK * extent // out.size))


def _part(value: Any, axis: int, start: int, stop: int) -> Any:
    """The part of an operand between start and stop along `axis` (from the end); the whole if it is repeated there."""
    place = getattr(value, "ndim", 0) + axis
    if place < 0 or value.shape[place] == 1:
        return value
    return value[(slice(None),) * place + (slice(start, stop),)]
