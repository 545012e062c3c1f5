"""The machine code of matrix products: it calls BLAS for each matrix of a stack.

It is written once for each function of BLAS, and takes a table.  `a`, `b` and `c` are the addresses
of the operands and of the result.  `offsets` has three numbers of bytes for each product of the stack.

OpenBLAS wakes its own threads for products of half a million operations and more.  They wait for each other without
sleeping, so where another process needs a core, a product of 0.2 ms takes 20.  A product in machine code therefore
lowers the number of OpenBLAS's threads to one while it runs.  Large products are shared like kernels, in pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .short_forms import compiled_text, loads

# The fields of the tables with their types; "INT" has as many bits as the integers of the library.
STACK = (("a", "ptr"), ("b", "ptr"), ("c", "ptr"), ("function", "ptr"), ("offsets", "ptr"), ("count", "i64"))
FIELDS = {
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
THREADS = (("state", "ptr"), ("get", "ptr"), ("set", "ptr"), ("counted", "i64"))
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
    """The function that calls a function of BLAS, such as "sgemm", whose integers have so many bits."""
    text = PRODUCT.replace("CALL", CALLS[name[1:]]).replace("LOADS", loads(FIELDS[name[1:]]))
    return compiled_text(text.replace("INT", f"i{bits}").replace("REAL", {"s": "float", "d": "double"}[name[0]]))


@cache
def threads_functions() -> list[Callable[[int], object]]:
    """The functions that lower the number of OpenBLAS's threads before a product, and restore it."""
    return [compiled_text(text.replace("LOADS", loads(THREADS))) for text in (LOWER, RESTORE)]
