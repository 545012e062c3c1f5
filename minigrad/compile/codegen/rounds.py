"""The machine code that runs the rounds of a loop: it calls the kernels of a round, and moves pointers for the next.

It is written in LLVM's language once, for all loops, and takes one table:

    0 number of the first round   3 steps of the condition       6 steps of a round        8 moves
    1 most rounds                 4 number of these steps        7 number of these steps   9 number of moves
    2 rounds that have run        5 address of the condition

A step is (function, table of addresses, 0), or (0, target and source, bytes) for a copy.  A move is (where an address
is stored, what to add to it after even rounds, after odd rounds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

FIELDS = (
    ("first", "i64"), ("most", "i64"), ("ran", "i64"), ("tests", "ptr"), ("tests.count", "i64"), ("flag", "ptr"),
    ("steps", "ptr"), ("steps.count", "i64"), ("moves", "ptr"), ("moves.count", "i64"),
)
SOURCE = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @steps(ptr %steps, i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %end]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %step, label %done
step:
  %at = mul i64 %i, 3
  %at.1 = add i64 %at, 1
  %at.2 = add i64 %at, 2
  %where.0 = getelementptr ptr, ptr %steps, i64 %at
  %where.1 = getelementptr ptr, ptr %steps, i64 %at.1
  %where.2 = getelementptr i64, ptr %steps, i64 %at.2
  %function = load ptr, ptr %where.0
  %table = load ptr, ptr %where.1
  %is.copy = icmp eq ptr %function, null
  br i1 %is.copy, label %copy, label %kernel
kernel:
  call void %function(ptr %table)
  br label %end
copy:
  %bytes = load i64, ptr %where.2
  %target = load ptr, ptr %table
  %where.source = getelementptr ptr, ptr %table, i64 1
  %source = load ptr, ptr %where.source
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  br label %end
end:
  %next = add nsw i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @moves(ptr %moves, i64 %count, i64 %round) {
entry:
  %odd = and i64 %round, 1
  %column = add i64 %odd, 1
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %move]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %move, label %done
move:
  %at = mul i64 %i, 3
  %at.by = add i64 %at, %column
  %where.0 = getelementptr ptr, ptr %moves, i64 %at
  %where.by = getelementptr i64, ptr %moves, i64 %at.by
  %slot = load ptr, ptr %where.0
  %by = load i64, ptr %where.by
  %old = load i64, ptr %slot
  %new = add i64 %old, %by
  store i64 %new, ptr %slot
  %next = add nsw i64 %i, 1
  br label %head
done:
  ret void
}

define void @kernel(ptr %table) {
entry:
LOADS
  %tested = icmp ne ptr %flag, null
  br label %head
head:
  %done = phi i64 [0, %entry], [%next, %round]
  %more = icmp slt i64 %done, %most
  br i1 %more, label %begin, label %end
begin:
  br i1 %tested, label %test, label %round
test:
  call void @steps(ptr %tests, i64 %tests.count)
  %value = load i8, ptr %flag
  %goes.on = icmp ne i8 %value, 0
  br i1 %goes.on, label %round, label %end
round:
  call void @steps(ptr %steps, i64 %steps.count)
  %number = add i64 %first, %done
  call void @moves(ptr %moves, i64 %moves.count, i64 %number)
  %next = add nsw i64 %done, 1
  br label %head
end:
  store i64 %done, ptr %where.ran
  ret void
}
"""


@cache
def rounds_function() -> Callable[[int], object]:
    """The function, of the address of its table."""
    return compiled_text(SOURCE.replace("LOADS", loads(FIELDS)))


def loads(fields: Sequence[tuple[str, str]]) -> str:
    """LLVM text that loads all fields of `%table`.

    >>> print(loads([("count", "i64")]))
      %where.count = getelementptr i64, ptr %table, i64 0
      %count = load i64, ptr %where.count
    """
    return "\n".join(
        f"  %where.{name} = getelementptr i64, ptr %table, i64 {number}\n  %{name} = load {kind}, ptr %where.{name}"
        for number, (name, kind) in enumerate(fields)
    )


def compiled_text(text: str) -> Callable[[int], object]:
    """The function `@kernel` of a text of LLVM."""
    from .native import compile_text  # brings LLVM, which a machine may not have

    return compile_text(text)
