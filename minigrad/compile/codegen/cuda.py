"""Prints a kernel as CUDA C: the loops of the C listing, shared among threads.

A kernel over elements gives each thread one element of the range, then the one a whole grid further on, and so on.
A kernel over rows or chunks gives each row to a team of threads: a block or, for short rows, a warp.  The team shares
every innermost loop and combines what its threads have accumulated.  Every thread computes the values that belong to
the whole row, and the first thread stores them.  A team has scratch memory that no other team uses.  Sums across the
rows of a chunk stay in shared memory, where each thread adds to its columns: elsewhere a row costs a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.bands import with_long_sums_in_blocks
from ..loops.index import keeps_apart
from ..loops.ir import FLOAT, HALF, Accumulate, For, Index, Kernel, Parameter, Running, Store
from ..nodes.thresholds import BLOCK_ADDITIONS
from .c import CPrinter
from .c_words import INDENT, indented
from .gpu_loops import WARP, for_threads, in_shared_memory, team_of

NAMES = {
    "float16": "__half", "float32": "float", "float64": "double", "bool": "bool", "int8": "signed char",
    "int16": "short", "int32": "int", "int64": "long long", "uint8": "unsigned char",
}
TYPES = {dtypes.ALL[name]: kind for name, kind in NAMES.items()}
PRELUDE = """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif"""
SHORT = 1 << 30  # up to this number of elements, positions are int, which divide fast

# Which threads run a statement: all threads of the grid, each computing the same; all threads of one team; each thread
# for itself; or all threads of one team, where only the owner of a place writes to it.
GRID, TEAM, THREAD, OWNER = "grid", "team", "thread", "owner"


class CudaSource(NamedTuple):
    """The text of a kernel, and how to launch it.

    The kernel takes the pointers `arguments`, then `lo` and `hi`, whose type is `integer`.  The arguments in `rows` are
    scratch memory that does not fit into shared memory: each block needs `size` elements.
    """

    text: str
    name: str
    arguments: list[Parameter]
    rows: list[Parameter]
    integer: str
    threads: int  # of a block
    parts: int  # of each unit, which threads share as if they were units
    together: int  # parts that a block computes at the same time

    def blocks(self, units: int, processors: int) -> int:
        """How many blocks to launch for this many units, on this many processors."""
        return max(1, min(-(-units * self.parts // self.together), 16 * processors))


def cuda_source(kernel: Kernel, name: str | None = None) -> CudaSource:
    """The kernel for a GPU."""
    printer = _CudaPrinter(kernel, name)
    text = printer.file()
    scratch = [p for p in kernel.parameters if p.role == "scratch"]
    rows = [p for p in scratch if p.name not in printer.shared]
    arguments = [p for p in kernel.parameters if p.name not in printer.shared]
    team = printer.team
    together = team.threads if printer.kernel.parallel == "elements" else team.together
    return CudaSource(text, printer.name, arguments, rows, printer.integer, team.threads, printer.parts, together)


class _CudaPrinter(CPrinter):
    language = "cuda"
    writes_functions = False  # CUDA's own are as good
    inline = "__device__ __forceinline__ "
    restrict = "*__restrict__ "
    byte = "unsigned char"
    types = TYPES

    def __init__(self, whole: Kernel, name: str | None = None) -> None:
        kernel = for_threads(whole)
        self.parts, self.team = kernel.units // max(1, whole.units), team_of(kernel)
        super().__init__(with_long_sums_in_blocks(kernel, self.team.size * BLOCK_ADDITIONS), name)
        sizes = [kernel.units, *(p.size for p in kernel.parameters)]
        self.integer = "int" if max(sizes) < SHORT else "long long"
        self.who = GRID
        self.owner = ""  # the variable of a loop that the threads of a team share, or that all of them run
        self.shared, self.own = in_shared_memory(self.kernel, self.team.together)

    # The frame --------------------------------------------------------------------------------------------------------

    def file(self) -> str:
        function = self.function()
        includes = ["#include <cuda_fp16.h>"] * ("__half" in function)
        return "\n\n".join([*includes, PRELUDE, *self.helpers.values(), function]) + "\n"

    def function(self) -> str:
        lines = [f"lo *= {self.parts};", f"hi *= {self.parts};"] if self.parts > 1 else []
        for p in self.kernel.parameters:
            if p.name in self.shared:
                kind, teams = self.type(p.dtype), self.team.together
                if teams == 1:
                    lines.append(f"__shared__ __align__(16) {kind} {p.name}[{p.size}];")
                else:
                    lines.append(f"__shared__ {kind} all_{p.name}[{teams * p.size}];")
                    lines.append(f"{kind} *{p.name} = all_{p.name} + threadIdx.x / {WARP} * {p.size};")
            elif p.role == "scratch":
                lines.append(f"{p.name} += (long long)blockIdx.x * {p.size};")
        for buffer, fill in self.own.items():
            lines.append(f"__shared__ {self.type(self.kinds[buffer])} own_{buffer}[{fill.high}];")
        body = self.block(self.kernel.body)
        head = f'extern "C" __global__ void __launch_bounds__({self.team.threads}) {self.name}'
        return "\n".join([f"{head}({self.arguments(self.kernel)}) {{", *indented([*lines, *body]), "}"])

    def arguments(self, kernel: Kernel) -> str:
        given = [p for p in kernel.parameters if p.name not in self.shared]
        return super().arguments(replace(kernel, parameters=given))

    # Which thread does what -------------------------------------------------------------------------------------------

    def store(self, store: Store) -> list[str]:
        return self.by_its_thread(super().store(store), self.owner)

    def running(self, running: Running) -> list[str]:
        raise CompileError("running totals cannot be shared among threads")

    def accumulate(self, update: Accumulate) -> list[str]:
        place = self.owner if update.buffer in self.own else self.index(update.index)
        return self.by_its_thread(super().accumulate(update), place)

    def by_its_thread(self, lines: list[str], place: str) -> list[str]:
        """Lines that write to memory, under the condition that this thread writes."""
        condition = {
            GRID: "blockIdx.x == 0 && threadIdx.x == 0",
            TEAM: f"{self.team.thread} == 0",
            THREAD: "",
            OWNER: f"({place}) % {self.team.size} == {self.team.thread}",
        }[self.who]
        return [f"if ({condition}) {line}" for line in lines] if condition else lines

    def loop(self, loop: For) -> list[str]:
        before = self.who
        innermost = not any(isinstance(s, For) for s in loop.body)
        writes = any(isinstance(s, (Store, Accumulate)) for s in loop.body)
        lines = self.starts(loop)
        if self.who == GRID and loop.low == "lo":
            lines += self.shared_by_grid(loop)
        elif self.who == TEAM and innermost:
            lines += self.shared_by_team(loop)
        elif self.who == GRID and innermost and not writes and isinstance(loop.high, int) and loop.high > WARP:
            lines += self.shared_by_team(loop)  # by every team, because every team needs the result
        else:
            lines += [self.head(loop), *indented(self.body(loop)), "}"]
        self.who = before
        return lines

    def head(self, loop: For, start: str = "", step: str = "") -> str:
        """The first line of a loop; where workers share the loop, each has a start and a step."""
        if not start:
            return super().head(loop)
        i, low, high = loop.variable, self.index(loop.low, 1), self.index(loop.high)
        first = start if low == "0" else f"{low} + {start}"
        return f"for ({self.integer} {i} = {first}; {i} < {high}; {i} += {step}) {{"

    def shared_by_grid(self, loop: For) -> list[str]:
        """The loop over all units."""
        if self.kernel.parallel == "elements":
            if not all(keeps_apart(s.index, loop.variable) for s in loop.body if isinstance(s, Accumulate)):
                raise CompileError("elements that accumulate into the same place cannot be shared among threads")
            self.who, threads = THREAD, self.team.threads
            return self.shared_loop(loop, f"blockIdx.x * {threads} + threadIdx.x", f"gridDim.x * {threads}")
        self.who = TEAM
        first, step = "blockIdx.x", "gridDim.x"
        if self.team.together > 1:
            teams = self.team.together
            first, step = f"blockIdx.x * {teams} + threadIdx.x / {self.team.size}", f"gridDim.x * {teams}"
        ends = [line for buffer, fill in self.own.items() for line in self.stored(buffer, fill)]
        return [self.head(loop, first, step), *indented([*self.body(loop), *ends]), "}"]

    def stored(self, buffer: str, fill: For) -> list[str]:
        """Write a sum from shared memory, in which each thread has its own columns."""
        (start,) = fill.body
        assert isinstance(start, Store)
        lines = [f"{super().place(buffer, start.index)} = own_{buffer}[{fill.variable}];"]
        return [self.head(fill, self.team.thread, str(self.team.size)), *indented(lines), "}"]

    def place(self, buffer: str, index: Index) -> str:
        return f"own_{buffer}[{self.owner}]" if buffer in self.own else super().place(buffer, index)

    def shared_by_team(self, loop: For) -> list[str]:
        """An innermost loop, whose iterations the threads of a team share."""
        self.owner = loop.variable
        if all(keeps_apart(s.index, loop.variable) for s in loop.body if isinstance(s, Accumulate)):
            self.who = THREAD
            lines = self.shared_loop(loop, self.team.thread, str(self.team.size))
            lines += [f"{a.name} = {self.team_reduction(a.op, a.dtype)}({a.name});" for a in loop.accumulators]
        else:
            self.who = OWNER
            lines = [self.head(loop), *indented(self.body(loop)), "}"]
        return [*lines, self.team.barrier] if self.touches_memory(loop.body) else lines

    def touches_memory(self, body: Sequence[Any]) -> bool:
        """Whether other threads may read what a loop writes, or write what it reads."""
        writes = any(isinstance(s, (Store, Accumulate)) and s.buffer not in self.own for s in body)
        return writes or any(getattr(s, "op", "") == "load" and s.args[0] in self.shared for s in body)

    def shared_loop(self, loop: For, thread: str, threads: str) -> list[str]:
        """A loop that several threads share: each takes every `threads`-th iteration."""
        return [self.head(loop, thread, threads), *indented(self.body(loop)), "}"]

    def team_reduction(self, op: str, dtype: Any) -> str:
        """The name of a function that reduces one value of each thread of a team."""
        kind, name = self.type(dtype), f"team_{op}_{dtype.name}"
        lines = [
            f"for (int distance = {WARP // 2}; distance > 0; distance /= 2) {{",
            INDENT + self.update("v", op, f"({kind})__shfl_xor_sync(0xffffffffu, v, distance)", dtype),
            "}",
        ]
        if self.team.size > WARP:
            lines += [
                f"__shared__ {kind} parts[{self.team.size // WARP}];",
                "__syncthreads();",
                f"if (threadIdx.x % {WARP} == 0) parts[threadIdx.x / {WARP}] = v;",
                "__syncthreads();",
                "v = parts[0];",
                f"for (int warp = 1; warp < {self.team.size // WARP}; warp++) {{",
                INDENT + self.update("v", op, "parts[warp]", dtype),
                "}",
            ]
        lines.append("return v;")
        return self.helper(kind, name, f"{kind} v", lines)

    # Words ------------------------------------------------------------------------------------------------------------

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
