"""The machine code by which threads share a kernel: one function offers a job and works on it, another helps.

Waking a thread of Python takes 50 to 90 µs, because it needs the interpreter's lock.  These threads wait in machine
code, on a condition variable of the system.  Both functions are written once, for all kernels.

A job is a table, whose address the first function takes.  All workers of a process share one pool:

    job 0 where the address of the pool is stored     pool 0 the job that workers may join, or 0
        1 function of each piece                           1 whether the workers should end
        2 addresses of the tables of the pieces            2 mutex of the system
        3 number of pieces                                 3 condition: there is a job, or the workers should end
        4 number of the next piece                         4 condition: the last worker has left a job
        5 workers that are at work here                    5 lock, 6 unlock, 7 wait, 8 wake all: the system's functions

A caller never waits for a worker that has not begun.  If another job is on offer, or there is no pool, the caller
computes all pieces alone.  Each of the system's functions gets (mutex or condition, mutex, no limit of time, no flags),
and reads as many of these as it needs.  A thread that has nothing to do looks for work as long as waking it and its
core would take, and then sleeps: it loses at most twice what the better of the two would cost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..nodes.thresholds import LOOKS_BEFORE_SLEEP
from .short_forms import compiled_text

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
