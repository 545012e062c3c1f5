"""The machine code that runs the rounds of a loop: it calls the kernels of a round, and moves pointers for the next.

It is written once, for all loops, and takes one table:

    0 number of the first round   3 steps of the condition       6 steps of a round        8 moves
    1 most rounds                 4 number of these steps        7 number of these steps   9 number of moves
    2 rounds that have run        5 address of the condition

A step is (function, table of addresses, 0), or (0, target and source, bytes) for a copy.  A move is (where an address
is stored, what to add to it after even rounds, after odd rounds).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .short_forms import compiled_text, loads

FIELDS = (
    ("first", "i64"), ("most", "i64"), ("ran", "i64"), ("tests", "ptr"), ("tests.count", "i64"), ("flag", "ptr"),
    ("steps", "ptr"), ("steps.count", "i64"), ("moves", "ptr"), ("moves.count", "i64"),
)
SOURCE = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @steps(ptr %steps, i64 %count) {
entry:
  for %i below %count
  %row = getelementptr [3 x i64], ptr %steps, i64 %i
  %function = ptr %row[0]
  %table = ptr %row[1]
  if eq ptr %function, null then copy else kernel
kernel:
  call void %function(ptr %table)
  br label %end
copy:
  %bytes = i64 %row[2]
  %target = ptr %table[0]
  %source = ptr %table[1]
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  br label %end
end:
  next %i in end
  ret void
}

define internal void @moves(ptr %moves, i64 %count, i64 %round) {
entry:
  %odd = and i64 %round, 1
  %column = add i64 %odd, 1
  for %i below %count
  %row = getelementptr [3 x i64], ptr %moves, i64 %i
  %place = ptr %row[0]
  %by = i64 %row[%column]
  %old = load i64, ptr %place
  %new = add i64 %old, %by
  store i64 %new, ptr %place
  next %i in body.i
  ret void
}

define void @kernel(ptr %table) {
entry:
LOADS
  for %done below %most
  if ne ptr %flag, null then test else round
test:
  call void @steps(ptr %tests, i64 %tests.count)
  %goes.on = load i8, ptr %flag
  if ne i8 %goes.on, 0 then round else after.done
round:
  call void @steps(ptr %steps, i64 %steps.count)
  %number = add i64 %first, %done
  call void @moves(ptr %moves, i64 %moves.count, i64 %number)
  next %done in round
  store i64 %done, ptr %ran.at
  ret void
}
"""


@cache
def rounds_function() -> Callable[[int], object]:
    """The function, of the address of its table."""
    return compiled_text(SOURCE.replace("LOADS", loads(FIELDS)))
