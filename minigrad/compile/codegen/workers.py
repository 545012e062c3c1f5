"""Workers: threads that wait in machine code for the pieces of a kernel.

A worker is a thread of Python that calls machine code once.  It returns when its pool ends: at the end of the process,
or when `set_num_threads` sets another number.  A forked process starts its own workers.

Waking a thread of Python takes 50 to 90 µs, because it needs the interpreter's lock.  These threads wait on a condition
variable of the system.  Two functions are written once, for all kernels: one offers a job and works on it, another
helps.  A job is a table, whose address the first function takes.  All workers of a process share one pool:

    job 0 where the address of the pool is stored     pool 0 the job that workers may join, or 0
        1 function of each piece                           1 whether the workers should end
        2 addresses of the tables of the pieces            2 mutex of the system
        3 number of pieces                                 3 condition: there is a job, or the workers should end
        4 number of the next piece                         4 condition: the last worker has left a job
        5 workers that are at work here                    5 lock, 6 unlock, 7 wait, 8 wake all: the system's functions

A caller never waits for a worker that has not begun.  If the pool already has a job, or there is no pool, the caller
computes all pieces alone.  Each of the system's functions gets (mutex or condition, mutex, no limit of time, no flags),
and reads as many of these as it needs.  A thread that has nothing to do looks for work as long as waking it and its
core would take, and then sleeps.  So it wastes at most twice the time that the better choice would cost.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof
from functools import cache
from itertools import chain
from threading import Thread
from typing import Any, NamedTuple

from ...devices.threads import THREADS, Apart
from ...support.forking import new_lock
from ..nodes.thresholds import LOOKS_BEFORE_SLEEP
from .step_code import compiled_text

JOB_FIELDS, POOL_FIELDS = 6, 9
COMMON = """
define internal void @pieces(ptr %job) {
entry:
  %function = ptr %job[1]
  %tables = ptr %job[2]
  %count = i64 %job[3]
  %next.at = getelementptr i64, ptr %job, i64 4
  br label %head
head:
  %number = atomicrmw add ptr %next.at, i64 1 monotonic
  if slt i64 %number, %count then piece else done
piece:
  %table = ptr %tables[%number]
  call void %function(ptr %table)
  br label %head
done:
  ret void
}

define internal void @system(ptr %pool, i64 %number, i64 %what) {
  %function = ptr %pool[%number]
  %object = ptr %pool[%what]
  %mutex = ptr %pool[2]
  call i32 %function(ptr %object, ptr %mutex, i32 -1, i32 0)
  ret void
}

define internal void @look(ptr %where, i1 %for.zero) {
entry:
  for %i below LOOKS
  %value = atomic i64 %where[0]
  %is.zero = icmp eq i64 %value, 0
  %found = icmp eq i1 %is.zero, %for.zero
  br i1 %found, label %after.i, label %again
again:
  next %i in again
  ret void
}
"""
SHARE = """
define void @kernel(ptr %job) {
entry:
  %next.at = getelementptr i64, ptr %job, i64 4
  store atomic i64 0, ptr %next.at monotonic, align 8
  %place = ptr %job[0]
  %pool = load atomic ptr, ptr %place acquire, align 8
  if eq ptr %pool, null then alone else ask
ask:
  call void @system(ptr %pool, i64 5, i64 2)
  %other = atomic ptr %pool[0]
  if eq ptr %other, null then offer else busy
busy:
  call void @system(ptr %pool, i64 6, i64 2)
  br label %alone
alone:
  call void @pieces(ptr %job)
  ret void
offer:
  store atomic ptr %job, ptr %pool monotonic, align 8
  call void @system(ptr %pool, i64 6, i64 2)
  call void @system(ptr %pool, i64 8, i64 3)
  call void @pieces(ptr %job)
  %active.at = getelementptr i64, ptr %job, i64 5
  call void @look(ptr %active.at, i1 true)
  call void @system(ptr %pool, i64 5, i64 2)
  %now = atomic ptr %pool[0]
  if eq ptr %now, %job then withdraw else collect
withdraw:
  store atomic ptr null, ptr %pool monotonic, align 8
  br label %collect
collect:
  %left = atomic i64 %job[5]
  if eq i64 %left, 0 then done else stay
stay:
  call void @system(ptr %pool, i64 7, i64 4)
  br label %collect
done:
  call void @system(ptr %pool, i64 6, i64 2)
  ret void
}
"""
HELP = """
define void @kernel(ptr %pool) {
entry:
  br label %rest
rest:
  call void @look(ptr %pool, i1 false)
  call void @system(ptr %pool, i64 5, i64 2)
  br label %head
head:
  %end = atomic i64 %pool[1]
  if ne i64 %end, 0 then done else seek
seek:
  %job = atomic ptr %pool[0]
  if eq ptr %job, null then sleep else join
sleep:
  call void @system(ptr %pool, i64 7, i64 3)
  br label %head
join:
  %before = atomic i64 %job[5]
  %more = add i64 %before, 1
  store atomic i64 %more, ptr %before.at monotonic, align 8
  call void @system(ptr %pool, i64 6, i64 2)
  call void @pieces(ptr %job)
  call void @system(ptr %pool, i64 5, i64 2)
  %now = atomic ptr %pool[0]
  if eq ptr %now, %job then withdraw else leave
withdraw:
  store atomic ptr null, ptr %pool monotonic, align 8
  br label %leave
leave:
  %active = atomic i64 %job[5]
  %fewer = sub i64 %active, 1
  store atomic i64 %fewer, ptr %before.at monotonic, align 8
  if eq i64 %fewer, 0 then report else go
report:
  call void @system(ptr %pool, i64 8, i64 4)
  br label %go
go:
  call void @system(ptr %pool, i64 6, i64 2)
  br label %rest
done:
  call void @system(ptr %pool, i64 6, i64 2)
  ret void
}
"""


@cache
def share_function() -> Callable[[int], object]:
    """The function, of the address of a job, that computes all pieces and returns when they are complete."""
    return compiled_text(_with_common(SHARE))


@cache
def help_function() -> Callable[[int], object]:
    """The function, of the address of a pool, that helps with its jobs until the workers should end."""
    return compiled_text(_with_common(HELP))


def _with_common(text: str) -> str:
    return COMMON.replace("LOOKS", str(LOOKS_BEFORE_SLEEP)) + text


# The threads ----------------------------------------------------------------------------------------------------------


OPAQUE = 128  # bytes: more than the mutex or the condition variable of any system takes
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class System(NamedTuple):
    """The names of a system's functions for mutexes and condition variables, and of their library.

    All take addresses, and get more arguments than some of them read.
    """

    library: str | None
    new_mutex: str
    new_condition: str
    lock: str
    unlock: str
    wait: str
    wake_all: str

    def address(self, name: str) -> int:
        """The address of a function."""
        return ctypes.cast(getattr(ctypes.CDLL(self.library), name), ctypes.c_void_p).value or 0


POSIX = System(
    None, "pthread_mutex_init", "pthread_cond_init", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_cond_wait", "pthread_cond_broadcast",
)
WINDOWS = System(
    "kernel32", "InitializeSRWLock", "InitializeConditionVariable", "AcquireSRWLockExclusive",
    "ReleaseSRWLockExclusive", "SleepConditionVariableSRW", "WakeAllConditionVariable",
)


def this_system() -> System:
    """The functions of this system."""
    return WINDOWS if sys.platform == "win32" else POSIX


class Pool:
    """The table that workers and callers share; `codegen.workers` lists its fields."""

    def __init__(self, system: System) -> None:
        self.memory = [ctypes.create_string_buffer(OPAQUE) for _ in range(3)]
        where = [addressof(each) for each in self.memory]
        for at, name in zip(where, (system.new_mutex, system.new_condition, system.new_condition)):
            FUNCTION(system.address(name))(at, None)
        names = system.lock, system.unlock, system.wait, system.wake_all
        self.table = (ctypes.c_void_p * POOL_FIELDS)(None, None, *where, *map(system.address, names))

    def end(self) -> None:
        """Let all workers return when they have finished their pieces."""
        table = self.table
        lock, unlock, _, wake_all = [FUNCTION(each or 0) for each in table[5:]]
        lock(table[2], None)
        table[1] = 1
        unlock(table[2], None)
        wake_all(table[3], None)


class Workers:
    """The workers of this process."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.place = ctypes.c_void_p()  # of the address of the pool, which jobs read; 0: callers compute alone
        self.closed = False  # at the end of the process
        self.forget()

    def forget(self) -> None:
        """Start new workers when they are needed: a forked process does not have its parent's threads."""
        self.count, self.place.value, self.apart = 0, None, Apart()
        self.pools: list[Pool] = []  # kept, because a job may still run in a pool that has ended
        self.threads: list[Thread] = []

    def ready(self) -> None:
        """Have as many workers as `num_threads` says.  Call this before a run in which kernels are shared.

        Otherwise the caller may compute all pieces.
        """
        if self.count != THREADS.count - 1:
            self._start(THREADS.count - 1)
        self.apart.move()

    def _start(self, count: int) -> None:
        with self.lock:
            if self.count != count and not self.closed:
                self.end()
                self.count = count
                if count:
                    self._fill()

    def _fill(self) -> None:
        """Start workers for a new pool, as many as the system allows."""
        work, pool = help_function(), Pool(this_system())
        if not self.pools:
            atexit.register(self.close)
        self.pools.append(pool)
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        where = addressof(pool.table)
        with suppress(RuntimeError):  # no more threads can start
            for number in range(self.count):
                thread = Thread(target=work, args=(where,), name=f"minigrad_worker_{number}", daemon=True)
                thread.start()
                self.threads.append(thread)
                self.apart.add(thread.native_id)
        self.place.value = where

    def end(self) -> None:
        """Let all workers return.  Callers compute alone from now on."""
        self.count, self.place.value, self.apart = 0, None, Apart()
        for pool in self.pools[-1:]:
            pool.end()

    def close(self) -> None:
        """Wait until all workers have returned, because the interpreter frees their machine code."""
        with self.lock:
            self.closed = True
            self.end()
            for thread in self.threads:
                thread.join()

    def job(self, function: Callable[[int], object], tables: Sequence[int]) -> Any:
        """A job: machine code that is called with the address of each of these tables, one per piece.

        `share_function()` of its address, or in machine code a call of that function, computes all pieces.
        """
        listed = (ctypes.c_void_p * len(tables))(*tables)
        code = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
        made = (ctypes.c_void_p * JOB_FIELDS)()
        made[0], made[1], made[2] = addressof(self.place), code, addressof(listed)
        made[3] = len(tables)
        made.keeps = listed, function  # type: ignore[attr-defined]
        return made

    def run(self, function: Callable[[int], object], tables: Sequence[Sequence[int]]) -> None:
        """Call machine code with the address of each of these tables of one length; threads share the calls."""
        size = len(tables[0])
        memory = (ctypes.c_int64 * (size * len(tables)))(*chain.from_iterable(tables))
        first = addressof(memory)
        if len(tables) == 1:
            self.call(function, first)
            return
        self.ready()
        job = self.job(function, range(first, first + ctypes.sizeof(memory), 8 * size))
        self.call(share_function(), addressof(job))

    @staticmethod
    def call(function: Callable[[int], object], address: int) -> None:
        """Call machine code: all of eager mode's comes by here, where `look.watching` notices it."""
        function(address)


WORKERS = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
