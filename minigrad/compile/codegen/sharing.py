"""The machine code by which threads share a kernel: one function offers a job and works on it, another helps.

Waking a thread of Python takes 50 to 90 µs, because it needs the interpreter's lock.  These threads wait in machine
code, on a condition variable of the system.  Both functions are written in LLVM's language once, for all kernels.

A job is a table, whose address the first function takes.  All workers of a process share one pool:

    job 0 where the address of the pool is stored     pool 0 the job that workers may join, or 0
        1 function of each piece                           1 whether the workers should end
        2 addresses of the tables of the pieces            2 mutex of the system
        3 number of pieces                                 3 condition: there is a job, or the workers should end
        4 number of the next piece                         4 condition: the last worker has left a job
        5 workers that are at work here                    5 lock, 6 unlock, 7 wait, 8 wake all: the system's functions

A caller never waits for a worker that has not begun.  If another job is on offer, or there is no pool, the caller
computes all pieces alone.  Each of the system's functions gets (mutex or condition, mutex, no limit of time, no flags),
and reads as many of these as it needs.  A thread that has nothing to do looks for work a microsecond longer, and then
sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .rounds import compiled_text

JOB_FIELDS, POOL_FIELDS = 6, 9
COMMON = """
define internal void @pieces(ptr %job) {
entry:
  %where.function = getelementptr ptr, ptr %job, i64 1
  %function = load ptr, ptr %where.function
  %where.tables = getelementptr ptr, ptr %job, i64 2
  %tables = load ptr, ptr %where.tables
  %where.count = getelementptr i64, ptr %job, i64 3
  %count = load i64, ptr %where.count
  %where.next = getelementptr i64, ptr %job, i64 4
  br label %head
head:
  %number = atomicrmw add ptr %where.next, i64 1 monotonic
  %more = icmp slt i64 %number, %count
  br i1 %more, label %piece, label %done
piece:
  %where.table = getelementptr ptr, ptr %tables, i64 %number
  %table = load ptr, ptr %where.table
  call void %function(ptr %table)
  br label %head
done:
  ret void
}

define internal void @system(ptr %pool, i64 %number, i64 %what) {
  %where.function = getelementptr ptr, ptr %pool, i64 %number
  %function = load ptr, ptr %where.function
  %where.object = getelementptr ptr, ptr %pool, i64 %what
  %object = load ptr, ptr %where.object
  %where.mutex = getelementptr ptr, ptr %pool, i64 2
  %mutex = load ptr, ptr %where.mutex
  call i32 %function(ptr %object, ptr %mutex, i32 -1, i32 0)
  ret void
}

define internal void @look(ptr %where, i1 %for.zero) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %again]
  %value = load atomic i64, ptr %where monotonic, align 8
  %is.zero = icmp eq i64 %value, 0
  %found = icmp eq i1 %is.zero, %for.zero
  br i1 %found, label %done, label %again
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, LOOKS
  br i1 %more, label %head, label %done
done:
  ret void
}
"""
SHARE = """
define void @kernel(ptr %job) {
entry:
  %where.next = getelementptr i64, ptr %job, i64 4
  store atomic i64 0, ptr %where.next monotonic, align 8
  %where.pool = load ptr, ptr %job
  %pool = load atomic ptr, ptr %where.pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %alone, label %ask
ask:
  call void @system(ptr %pool, i64 5, i64 2)
  %other = load atomic ptr, ptr %pool monotonic, align 8
  %free = icmp eq ptr %other, null
  br i1 %free, label %offer, label %busy
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
  %where.active = getelementptr i64, ptr %job, i64 5
  call void @look(ptr %where.active, i1 true)
  call void @system(ptr %pool, i64 5, i64 2)
  %now = load atomic ptr, ptr %pool monotonic, align 8
  %ours = icmp eq ptr %now, %job
  br i1 %ours, label %withdraw, label %collect
withdraw:
  store atomic ptr null, ptr %pool monotonic, align 8
  br label %collect
collect:
  %active = load atomic i64, ptr %where.active monotonic, align 8
  %all = icmp eq i64 %active, 0
  br i1 %all, label %done, label %stay
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
  %where.end = getelementptr i64, ptr %pool, i64 1
  br label %rest
rest:
  call void @look(ptr %pool, i1 false)
  call void @system(ptr %pool, i64 5, i64 2)
  br label %head
head:
  %end = load atomic i64, ptr %where.end monotonic, align 8
  %ends = icmp ne i64 %end, 0
  br i1 %ends, label %done, label %seek
seek:
  %job = load atomic ptr, ptr %pool monotonic, align 8
  %nothing = icmp eq ptr %job, null
  br i1 %nothing, label %sleep, label %join
sleep:
  call void @system(ptr %pool, i64 7, i64 3)
  br label %head
join:
  %where.active = getelementptr i64, ptr %job, i64 5
  %before = load atomic i64, ptr %where.active monotonic, align 8
  %more = add i64 %before, 1
  store atomic i64 %more, ptr %where.active monotonic, align 8
  call void @system(ptr %pool, i64 6, i64 2)
  call void @pieces(ptr %job)
  call void @system(ptr %pool, i64 5, i64 2)
  %now = load atomic ptr, ptr %pool monotonic, align 8
  %same = icmp eq ptr %now, %job
  br i1 %same, label %withdraw, label %leave
withdraw:
  store atomic ptr null, ptr %pool monotonic, align 8
  br label %leave
leave:
  %active = load atomic i64, ptr %where.active monotonic, align 8
  %fewer = sub i64 %active, 1
  store atomic i64 %fewer, ptr %where.active monotonic, align 8
  %last = icmp eq i64 %fewer, 0
  br i1 %last, label %report, label %go
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
LOOKS = 1000  # loads of a word before a thread sleeps: about a microsecond


@cache
def share_function() -> Callable[[int], object]:
    """The function, of the address of a job, that computes all pieces and returns when they are complete."""
    return compiled_text(_with_common(SHARE))


@cache
def help_function() -> Callable[[int], object]:
    """The function, of the address of a pool, that helps with its jobs until the workers should end."""
    return compiled_text(_with_common(HELP))


def _with_common(text: str) -> str:
    return COMMON.replace("LOOKS", str(LOOKS)) + text
