"""The machine code of steps, written by hand in LLVM's language: matrix products, and lists of steps in rounds.

The texts have short forms for the fields of tables, branches and loops.  Each is written once, for all programs, and
takes the address of a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

# The fields of a table are addresses or numbers of eight bytes.  An `atomic` field is one that other threads write.
SHORT = {
    # The first round of a loop comes from the block `entry`, and its other rounds from its last block.
    r"(?s)for (%(\S+)) below (\S+)\n(.*?)next \1 in (\S+)": r"br label %head.\2\nhead.\2:"
                                                          r"\n  \1 = phi i64 [0, %entry], [\1.next, %\5]"
                                                          r"\n  if slt i64 \1, \3 then body.\2 else after.\2"
                                                          r"\nbody.\2:\n\4\1.next = add nsw i64 \1, 1"
                                                          r"\n  br label %head.\2\nafter.\2:",
    r"%(\S+) = atomic (\S+) (%\S+)\[(\S+)\]": r"%\1.at = getelementptr i64, ptr \3, i64 \4"
                                              r"\n  %\1 = load atomic \2, ptr %\1.at monotonic, align 8",
    r"%(\S+) = (ptr|i\d+) (%\S+)\[(\S+)\]": r"%\1.at = getelementptr i64, ptr \3, i64 \4\n  %\1 = load \2, ptr %\1.at",
    r"if (.*) then (\S+) else (\S+)": r"%if.\2.\3 = icmp \1\n  br i1 %if.\2.\3, label %\2, label %\3",
}


def in_full(text: str) -> str:
    """LLVM's text for a text with short forms.

    >>> print(in_full("  %x = i64 %table[3]\\n  if eq i64 %x, 0 then here else there"))
      %x.at = getelementptr i64, ptr %table, i64 3
      %x = load i64, ptr %x.at
      %if.here.there = icmp eq i64 %x, 0
      br i1 %if.here.there, label %here, label %there
    >>> print(in_full("  for %i below %n\\n  call void @f(i64 %i)\\n  next %i in body.i"))
      br label %head.i
    head.i:
      %i = phi i64 [0, %entry], [%i.next, %body.i]
      %if.body.i.after.i = icmp slt i64 %i, %n
      br i1 %if.body.i.after.i, label %body.i, label %after.i
    body.i:
      call void @f(i64 %i)
      %i.next = add nsw i64 %i, 1
      br label %head.i
    after.i:
    """
    for short, full in SHORT.items():
        text = re.sub(short, full, text)
    return text


def loads(fields: Sequence[tuple[str, str]]) -> str:
    """The lines that load all fields of `%table`.

    >>> loads([("count", "i64")])
    '  %count = i64 %table[0]'
    """
    return "\n".join(f"  %{name} = {kind} %table[{number}]" for number, (name, kind) in enumerate(fields))


def compiled_text(text: str) -> Callable[[int], object]:
    """The function `@kernel` of a text with short forms."""
    from .native import compile_text  # brings LLVM, which a machine may not have

    return compile_text(in_full(text))


# Matrix products: the code calls BLAS for each matrix of a stack ------------------------------------------------------
#
# It is written once for each function of BLAS.  `a`, `b` and `c` are the addresses of the operands and of the result.
# `offsets` has three numbers of bytes for each product of the stack.
#
# OpenBLAS wakes its own threads for products of half a million operations and more.  They wait for each other without
# sleeping, so where another process needs a core, a product of 0.2 ms takes 20.  A product in machine code therefore
# lowers the number of OpenBLAS's threads to one while it runs.  Large products are shared like kernels, in pieces.


# The fields of the tables with their types; "INT" has as many bits as the integers of the library.
STACK = (("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("function", "ptr"), ("offsets", "ptr"), ("count", "i64"))
PRODUCT_FIELDS = {
    "gemm": (*STACK, ("turn_a", "i32"), ("turn_b", "i32"), *[(n, "INT") for n in ("m", "n", "k", "lda", "ldb", "ldc")]),
    "gemv": (*STACK, ("turn_a", "i32"), *[(name, "INT") for name in ("m", "n", "lda", "step_b", "step_c")]),
}
PLAIN, TURNED = 111, 112  # in the interface to C, where 101 means matrices whose rows lie in order
CALLS = {
    "gemm": "i32 101, i32 %turn_a, i32 %turn_b, INT %m, INT %n, INT %k, "
            "REAL 1.0, ptr %at.a, INT %lda, ptr %at.b, INT %ldb, REAL 0.0, ptr %at.c, INT %ldc",
    "gemv": "i32 101, i32 %turn_a, INT %m, INT %n, "
            "REAL 1.0, ptr %at.a, INT %lda, ptr %at.b, INT %step_b, REAL 0.0, ptr %at.c, INT %step_c",
}
PRODUCT = """
define void @kernel(ptr %table) {
entry:
LOADS
  for %i below %count
  %row = getelementptr [3 x i64], ptr %offsets, i64 %i
  %offset.a = i64 %row[0]
  %offset.b = i64 %row[1]
  %offset.c = i64 %row[2]
  %at.a = getelementptr i8, ptr %a, i64 %offset.a
  %at.b = getelementptr i8, ptr %b, i64 %offset.b
  %at.c = getelementptr i8, ptr %c, i64 %offset.c
  call void %function(CALL)
  next %i in body.i
  ret void
}
"""
# The table of these two: the address of `devices.blas.LOWERED`, the functions, and whether `LOWER` counted a product.
# Only the thread that changed the first number of LOWERED from 0 to -1, or from 1 to -1, sets the number of threads.
THREAD_FIELDS = (("state", "ptr"), ("get", "ptr"), ("set", "ptr"), ("counted", "i64"))
LOWER = """
define void @kernel(ptr %table) {
entry:
LOADS
  %before.at = getelementptr i64, ptr %state, i64 1
  store i64 0, ptr %counted.at
  br label %look
look:
  %running = atomic i64 %state[0]
  if sgt i64 %running, 0 then join else begin
join:
  %more = add i64 %running, 1
  %joining = cmpxchg ptr %state, i64 %running, i64 %more acquire monotonic
  %joined = extractvalue {i64, i1} %joining, 1
  br i1 %joined, label %count, label %look
begin:
  %threads = call i32 %get()
  if sgt i32 %threads, 1 then take else done
take:
  %taking = cmpxchg ptr %state, i64 0, i64 -1 acquire monotonic
  %taken = extractvalue {i64, i1} %taking, 1
  br i1 %taken, label %lower, label %done
lower:
  %before = sext i32 %threads to i64
  store i64 %before, ptr %before.at
  call void %set(i32 1)
  store atomic i64 1, ptr %state release, align 8
  br label %count
count:
  store i64 1, ptr %counted.at
  br label %done
done:
  ret void
}
"""
RESTORE = """
define void @kernel(ptr %table) {
entry:
LOADS
  if ne i64 %counted, 0 then look else done
look:
  %running = atomic i64 %state[0]
  %last = icmp eq i64 %running, 1
  %fewer = sub i64 %running, 1
  %left = select i1 %last, i64 -1, i64 %fewer
  %leaving = cmpxchg ptr %state, i64 %running, i64 %left acquire monotonic
  %has.left = extractvalue {i64, i1} %leaving, 1
  br i1 %has.left, label %end, label %look
end:
  br i1 %last, label %restore, label %done
restore:
  %threads = call i32 %get()
  if eq i32 %threads, 1 then set.again else open
set.again:
  %before = i64 %state[1]
  %number = trunc i64 %before to i32
  call void %set(i32 %number)
  br label %open
open:
  store atomic i64 0, ptr %state release, align 8
  br label %done
done:
  ret void
}
"""


@cache
def product_function(name: str, bits: int) -> Callable[[int], object]:
    """The function that calls a function of BLAS, such as "sgemm", whose integers have this number of bits."""
    text = PRODUCT.replace("CALL", CALLS[name[1:]]).replace("LOADS", loads(PRODUCT_FIELDS[name[1:]]))
    return compiled_text(text.replace("INT", f"i{bits}").replace("REAL", {"s": "float", "d": "double"}[name[0]]))


@cache
def threads_functions() -> list[Callable[[int], object]]:
    """The functions that lower the number of OpenBLAS's threads before a product, and restore it."""
    return [compiled_text(text.replace("LOADS", loads(THREAD_FIELDS))) for text in (LOWER, RESTORE)]


# Rounds: the code calls the steps of a round, and moves pointers for the next one -------------------------------------
#
# Its table:
#
#     0 number of the first round   3 steps of the condition       6 steps of a round        8 moves
#     1 most rounds                 4 number of these steps        7 number of these steps   9 number of moves
#     2 rounds that have run        5 address of the condition
#
# A step is (function, table of addresses, 0), or (0, target and source, bytes) for a copy.  A move is (where an address
# is stored, what to add to it after even rounds, after odd rounds).


ROUND_FIELDS = (
    ("first", "i64"), ("most", "i64"), ("ran", "i64"), ("tests", "ptr"), ("tests.count", "i64"), ("flag", "ptr"),
    ("steps", "ptr"), ("steps.count", "i64"), ("moves", "ptr"), ("moves.count", "i64"),
)
ROUNDS = """
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
    return compiled_text(ROUNDS.replace("LOADS", loads(ROUND_FIELDS)))
