"""The printer to CUDA C: the loops of the C listing, shared among threads.

Elements: a thread takes every so many-th element of the whole range.  Rows and chunks: a block of threads takes every
so many-th row; its threads share each innermost loop, put together what they have accumulated, and all of them know the
values that belong to the row.  What belongs to the row is stored by the first of them.  Scratch memory is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.errors import CompileError
from .c import INDENT, LIBRARY, UPDATES, CPrinter, indented
from .elementary import HALF
from .ir import Accumulate, For, Index, Kernel, Parameter, Prefetch, Statement, Store, statements
from .maths import FLOAT

TYPES = {
    "float16": "__half", "float32": "float", "float64": "double", "bool": "bool", "int8": "signed char",
    "int16": "short", "int32": "int", "int64": "long long", "uint8": "unsigned char",
}  # fmt: skip
PRELUDE = """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif"""
SHARED = 48 << 10  # bytes of shared memory that a block has without asking
WARP, MOST = 32, 1024  # threads that run in step, and threads of a block
FEW = 256  # threads of a block that shares the elements
SHORT = 1 << 30  # elements up to which positions are int, whose division is quick

# Who runs the statements at some place of a kernel: all threads of all blocks, each of which computes the same; all
# threads of one block; each thread on its own; or all of a block, of which the owner of a place writes to it.
GRID, BLOCK, THREAD, OWNER = "grid", "block", "thread", "owner"


class CudaSource(NamedTuple):
    """A kernel for a GPU: its text, and what it is launched with.

    `arguments` are the parameters that it is given, in order, before `lo` and `hi`, whose type is `integer`.  Those in
    `rows` are scratch memory that is too large for shared memory: so many elements for each block.
    """

    text: str
    name: str
    arguments: list[Parameter]
    rows: list[Parameter]
    integer: str
    threads: int  # of a block
    together: int  # units that a block works on at the same time

    def blocks(self, units: int, processors: int) -> int:
        """How many blocks share so many units of work, on so many processors."""
        return max(1, min(-(-units // self.together), 16 * processors))


def cuda_source(kernel: Kernel, name: str | None = None) -> CudaSource:
    """The kernel for a GPU."""
    printer = _CudaPrinter(kernel, name)
    text = printer.file()
    scratch = [p for p in kernel.parameters if p.role == "scratch"]
    rows = [p for p in scratch if p.name not in printer.shared]
    arguments = [p for p in kernel.parameters if p.name not in printer.shared]
    threads = _threads(kernel)
    together = threads if kernel.parallel == "elements" else 1
    return CudaSource(text, printer.name, arguments, rows, printer.integer, threads, together)


def _threads(kernel: Kernel) -> int:
    """How many threads a block has: as many as an innermost loop has rounds, in whole warps."""
    if kernel.parallel == "elements":
        return FEW
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and isinstance(s.high, int)]
    widest = max((int(str(loop.high)) for loop in loops if loop.low == 0), default=FEW)
    return max(WARP, min(-(-widest // WARP) * WARP, MOST if widest > 4 * MOST else FEW))


class _CudaPrinter(CPrinter):
    headers = ()
    inline = "__device__ __forceinline__ "
    restrict = "*__restrict__ "
    byte = "unsigned char"
    types = TYPES

    def __init__(self, kernel: Kernel, name: str | None = None) -> None:
        super().__init__(kernel, name)
        sizes = [kernel.units, *(p.size for p in kernel.parameters)]
        self.integer = "int" if max(sizes) < SHORT else "long long"
        self.who = GRID
        self.owner = ""  # the variable of a loop that all threads of a block run
        self.shared: list[str] = []
        left = SHARED - 4 * 8 * WARP  # what reductions need
        for parameter in kernel.parameters:
            if parameter.role == "scratch" and parameter.size * parameter.dtype.itemsize <= left:
                left -= parameter.size * parameter.dtype.itemsize
                self.shared.append(parameter.name)

    # The frame --------------------------------------------------------------------------------------------------------

    def file(self) -> str:
        function = self.function()
        includes = ["#include <cuda_fp16.h>"] if "__half" in function else []
        return "\n\n".join([*includes, PRELUDE, *self.helpers.values(), function]) + "\n"

    def function(self) -> str:
        lines = []
        for p in self.kernel.parameters:
            if p.name in self.shared:
                lines.append(f"__shared__ {self.type(p.dtype)} {p.name}[{p.size}];")
            elif p.role == "scratch":
                lines.append(f"{p.name} += (long long)blockIdx.x * {p.size};")
        body = self.block(self.kernel.body)
        head = f'extern "C" __global__ void {self.name}({self.arguments()}) {{'
        return "\n".join([head, *indented([*lines, *body]), "}"])

    def arguments(self) -> str:
        whole = self.kernel
        self.kernel = Kernel(whole.name, [p for p in whole.parameters if p.name not in self.shared], whole.body, 0, "")
        text = super().arguments()
        self.kernel = whole
        return text

    # Who does what ----------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> list[str]:
        if isinstance(statement, Prefetch):
            return []
        lines = super().statement(statement)
        if not isinstance(statement, (Store, Accumulate)):
            return lines
        place = self.index(statement.index)
        condition = {
            GRID: "blockIdx.x == 0 && threadIdx.x == 0", BLOCK: "threadIdx.x == 0", THREAD: "",
            OWNER: f"({place if isinstance(statement, Accumulate) else self.owner}) % blockDim.x == threadIdx.x",
        }[self.who]  # fmt: skip
        return [f"if ({condition}) {line}" for line in lines] if condition else lines

    def loop(self, loop: For) -> list[str]:
        body = [s for s in loop.body if not isinstance(s, Prefetch)]
        if not body and not loop.accumulators:
            return []
        before = self.who
        innermost = not any(isinstance(s, For) for s in body)
        lines = self.starts(loop)
        after: list[str] = []
        if self.who == GRID and loop.low == "lo":
            lines += self.shared_by_grid(loop)
        elif self.who == BLOCK and innermost:
            if all(_keeps_apart(s.index, loop.variable) for s in body if isinstance(s, Accumulate)):
                self.who = THREAD
                lines.append(self.head(loop, "threadIdx.x", "blockDim.x"))
                after = [f"{a.name} = {self.block_reduction(a.op, a.dtype)}({a.name});" for a in loop.accumulators]
            else:
                self.who, self.owner = OWNER, loop.variable
                lines.append(self.head(loop))
            if self.touches_memory(body):
                after.append("__syncthreads();")
        else:
            lines.append(self.head(loop))
        lines += [*indented(self.body(loop)), "}", *after]
        self.who = before
        return lines

    def shared_by_grid(self, loop: For) -> list[str]:
        """The head of the loop over all units."""
        if self.kernel.parallel == "elements":
            if not all(_keeps_apart(s.index, loop.variable) for s in loop.body if isinstance(s, Accumulate)):
                raise CompileError("elements that accumulate into the same place cannot be shared among threads")
            self.who = THREAD
            return [self.head(loop, "blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x")]
        self.who = BLOCK
        return [self.head(loop, "blockIdx.x", "gridDim.x")]

    def touches_memory(self, body: Sequence[Statement]) -> bool:
        """Whether other threads might read what a loop writes, or write what it reads."""
        writes = any(isinstance(s, (Store, Accumulate)) for s in body)
        return writes or any(getattr(s, "op", "") == "load" and s.args[0] in self.shared for s in body)  # type: ignore[union-attr]

    def block_reduction(self, op: str, dtype: Any) -> str:
        """The name of a function that puts together what the threads of a block have."""
        kind, name = self.type(dtype), f"block_{op}_{dtype.name}"

        def take(value: str) -> str:
            return f"v {UPDATES[op]} {value};" if op in UPDATES else f"v = {self.extreme(op, dtype)}(v, {value});"

        lines = [
            f"__shared__ {kind} parts[{WARP}];",
            f"for (int distance = {WARP // 2}; distance > 0; distance /= 2) {{",
            INDENT + take(f"({kind})__shfl_xor_sync(0xffffffffu, v, distance)"), "}",
            "__syncthreads();",
            f"if (threadIdx.x % {WARP} == 0) parts[threadIdx.x / {WARP}] = v;",
            "__syncthreads();",
            "v = parts[0];",
            f"for (int warp = 1; warp < blockDim.x / {WARP}; warp++) {{", INDENT + take("parts[warp]"), "}",
            "return v;",
        ]  # fmt: skip
        return self.helper(name, "\n".join([f"{kind} {name}({kind} v) {{", *indented(lines), "}"]))

    # Words ------------------------------------------------------------------------------------------------------------

    def library(self, op: str, dtype: Any) -> str:
        """CUDA's own functions are as good as those that are written out."""
        return LIBRARY[op] + ("f" if dtype.itemsize == 4 else "")

    def value(self, operand: Any, dtype: Any) -> str:
        if dtype == HALF and not isinstance(operand, str):
            return f"__float2half({self.value(operand, FLOAT)})"
        return super().value(operand, dtype)

    def conversion(self, op: str, source: Any, target: Any, value: str) -> str:
        if source == HALF and op == "cast":
            wide = f"__half2float({value})"
            return wide if target == FLOAT else super().conversion(op, FLOAT, target, wide)
        if target == HALF and op == "cast":
            return f"__float2half({value})"
        return super().conversion(op, source, target, value)


def _keeps_apart(index: Index, variable: str) -> bool:
    """Whether different values of a variable are sure to give different positions."""
    step = _step(index, variable)
    return step is not None and step != 0


def _step(index: Index, variable: str) -> int | None:
    """By how much a position grows with a variable; None if that is not always the same."""
    if not isinstance(index, tuple):
        return int(index == variable)
    op, left, right = index
    a, b = _step(left, variable), _step(right, variable)
    if op == "+":
        return None if a is None or b is None else a + b
    if op == "*" and isinstance(right, int):
        return None if a is None else a * right
    return 0 if a == b == 0 else None
