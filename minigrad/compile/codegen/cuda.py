"""The printer to CUDA C: the loops of the C listing, shared among threads.

Elements: a thread takes every so many-th element of the whole range.  Rows and chunks: a team of threads, a block or,
for short rows, a warp, takes every so many-th row; the team shares each innermost loop, puts together what its threads
have accumulated, and all of them know the values that belong to the row.  What belongs to the row is stored by the
first of them.  Scratch memory is the team's.
Where neighbours are read and written in order, a thread takes four of them at once, and sums across the rows of a chunk
stay in its registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import depends, replaced
from ..loops.ir import FLOAT, HALF, Accumulate, For, Kernel, Let, Parameter, Prefetch, Statement, Store, statements
from ..loops.scalar import identity
from .c import INDENT, CPrinter, indented
from .gpu_loops import FOUR, Fours, Own, for_threads, fours, keeps_apart, own_sums

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
FOURS = """\
template <class T> struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Four {
    T at[4];
};

template <class T> __device__ __forceinline__ Four<T> four_of(const T *place, bool aligned) {
    if (aligned) return *(const Four<T> *)place;
    Four<T> x;
    for (int i = 0; i < 4; i++) x.at[i] = place[i];
    return x;
}

template <class T> __device__ __forceinline__ void put_four(T *place, Four<T> x, bool aligned) {
    if (aligned) *(Four<T> *)place = x;
    else for (int i = 0; i < 4; i++) place[i] = x.at[i];
}"""
SHARED = 48 << 10  # bytes of shared memory that a block has without asking
WARP, MOST = 32, 1024  # threads that run in step, and threads of a block
FEW = 256  # threads of a block that shares the elements, and of one whose warps have a row each
LONG = 4 * WARP  # elements of a row from which threads take four at once
MANY = 1 << 17  # elements of all from which they do: of fewer, there would be too few blocks
REGISTERS = 16  # that sums across rows may take of a thread
SHORT = 1 << 30  # elements up to which positions are int, whose division is quick

# Who runs the statements at some place of a kernel: all threads of all teams, each of which computes the same; all
# threads of one team; each thread on its own; or all of a team, of which the owner of a place writes to it.
GRID, TEAM, THREAD, OWNER = "grid", "team", "thread", "owner"


class CudaSource(NamedTuple):
    """A kernel for a GPU: its text, and what it is launched with.

    `arguments` are the parameters that it is given, in order, before `lo` and `hi`, whose type is `integer`, and which
    are multiples of four if all units are.  Those in `rows` are scratch memory that is too large for shared memory: so
    many elements for each block.
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
    together = printer.threads // printer.team
    if kernel.parallel == "elements":
        together = printer.threads * (FOUR if printer.aligned else 1)
    return CudaSource(text, printer.name, arguments, rows, printer.integer, printer.threads, together)


def one_file(sources: Sequence[CudaSource]) -> str:
    """Several kernels with names of their own, as one file."""
    include = "#include <cuda_fp16.h>"
    parts = [f"namespace in_{s.name} {{\n{s.text.replace(include, '').strip()}\n}}" for s in sources]
    includes = [include] if any(include in s.text for s in sources) else []
    return "\n\n".join([*includes, *parts]) + "\n"


def _rounds(kernel: Kernel) -> int:
    """How many threads an innermost loop could have at most."""
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and not any(isinstance(i, For) for i in s.body)]
    if any(not isinstance(loop.high, int) for loop in loops):
        return FEW  # a part of the elements
    return max((_length(loop) // (FOUR if _takes_fours(loop, kernel) else 1) for loop in loops), default=FEW)


def _length(loop: For) -> int:
    return int(str(loop.high))


def _takes_fours(loop: For, kernel: Kernel) -> bool:
    """Whether the threads that share a loop take four rounds at once."""
    if kernel.parallel == "elements":
        # Other loops over the same elements, which leave something for this one, have to have the same thread for each.
        others = [s for s in kernel.body if isinstance(s, For) and s.low == "lo" and s is not loop]
        allowed = loop.low == "lo" and not others and kernel.units >= MANY
    else:
        allowed = not isinstance(loop.high, int) or loop.high >= LONG
    return allowed and fours(loop, kernel) is not None


class _CudaPrinter(CPrinter):
    language = "cuda"
    writes_functions = False  # CUDA's own are as good
    inline = "__device__ __forceinline__ "
    restrict = "*__restrict__ "
    byte = "unsigned char"
    types = TYPES

    def __init__(self, kernel: Kernel, name: str | None = None) -> None:
        super().__init__(for_threads(kernel), name)
        rounds = FEW if kernel.parallel == "elements" else _rounds(self.kernel)
        if kernel.parallel == "rows" and rounds <= 4 * WARP:
            self.threads, self.team, self.thread, self.barrier = FEW, WARP, f"threadIdx.x % {WARP}", "__syncwarp();"
        else:
            self.threads = max(WARP, min(-(-rounds // WARP) * WARP, MOST if rounds > 4 * MOST else FEW))
            self.team, self.thread, self.barrier = self.threads, "threadIdx.x", "__syncthreads();"
        self.aligned: dict[str, None] = {}  # the buffers that are read and written four elements at a time
        self.fours: Fours | None = None  # of the loop that is printed
        self.own: dict[str, Own] = {}  # the sums that are kept in registers
        self.kept: dict[str, tuple[int, int]] = {}  # for each of them, how many rounds of how many elements
        sizes = [kernel.units, *(p.size for p in kernel.parameters)]
        self.integer = "int" if max(sizes) < SHORT else "long long"
        self.who = GRID
        self.owner = ""  # the variable of a loop that all threads of a block run
        self.shared: list[str] = []
        left = SHARED - 4 * 8 * WARP  # what reductions need
        for parameter in kernel.parameters:
            size = parameter.size * parameter.dtype.itemsize * (self.threads // self.team)
            if parameter.role == "scratch" and size <= left:
                left -= size
                self.shared.append(parameter.name)

    # The frame --------------------------------------------------------------------------------------------------------

    def file(self) -> str:
        function = self.function()
        includes = ["#include <cuda_fp16.h>"] if "__half" in function else []
        helpers = [*([FOURS] if self.aligned else []), *self.helpers.values()]
        return "\n\n".join([*includes, PRELUDE, *helpers, function]) + "\n"

    def function(self) -> str:
        lines = []
        for p in self.kernel.parameters:
            if p.name in self.shared:
                kind, teams = self.type(p.dtype), self.threads // self.team
                if teams == 1:
                    lines.append(f"__shared__ __align__(16) {kind} {p.name}[{p.size}];")
                else:
                    lines.append(f"__shared__ {kind} all_{p.name}[{teams * p.size}];")
                    lines.append(f"{kind} *{p.name} = all_{p.name} + threadIdx.x / {WARP} * {p.size};")
            elif p.role == "scratch":
                lines.append(f"{p.name} += (long long)blockIdx.x * {p.size};")
        body = self.block(self.kernel.body)
        if self.aligned:
            addresses = " | ".join(f"(size_t){buffer}" for buffer in self.aligned)
            lines.append(f"const bool aligned = ({addresses}) % 16 == 0;")
        head = f'extern "C" __global__ void __launch_bounds__({self.threads}) {self.name}'
        return "\n".join([f"{head}({self.arguments(self.kernel)}) {{", *indented([*lines, *body]), "}"])

    def arguments(self, kernel: Kernel) -> str:
        given = [p for p in kernel.parameters if p.name not in self.shared]
        return super().arguments(replace(kernel, parameters=given))

    # Who does what ----------------------------------------------------------------------------------------------------

    def prefetch(self, prefetch: Prefetch) -> list[str]:
        return []

    def store(self, store: Store) -> list[str]:
        if self.fours is not None and store.buffer in self.fours.stores:
            return [f"{store.buffer}_out.at[lane] = {self.value(store.value, self.kinds[store.buffer])};"]
        return self.by_its_thread(super().store(store), self.owner)

    def accumulate(self, update: Accumulate) -> list[str]:
        if update.buffer in self.own:
            place = f"own_{update.buffer}[" + (f"{FOUR} * round + lane]" if self.fours else "round]")
            return [self.update(place, update.op, update.value, self.kinds[update.buffer])]
        return self.by_its_thread(super().accumulate(update), self.index(update.index))

    def by_its_thread(self, lines: list[str], place: str) -> list[str]:
        """Lines that write to memory, for the thread that does so."""
        condition = {
            GRID: "blockIdx.x == 0 && threadIdx.x == 0",
            TEAM: f"{self.thread} == 0",
            THREAD: "",
            OWNER: f"({place}) % {self.team} == {self.thread}",
        }[self.who]
        return [f"if ({condition}) {line}" for line in lines] if condition else lines

    def loop(self, loop: For) -> list[str]:
        body = [s for s in loop.body if not isinstance(s, Prefetch)]
        if not body and not loop.accumulators:
            return []
        if body and isinstance(body[0], Store) and body[0].buffer in self.own:
            return []  # they begin in registers
        before = self.who
        innermost = not any(isinstance(s, For) for s in body)
        writes = any(isinstance(s, (Store, Accumulate)) for s in body)
        lines = self.starts(loop)
        if self.who == GRID and loop.low == "lo":
            lines += self.shared_by_grid(loop)
        elif self.who == TEAM and innermost:
            lines += self.shared_by_team(loop, body)
        elif self.who == GRID and innermost and not writes and isinstance(loop.high, int) and loop.high > WARP:
            lines += self.shared_by_team(loop, body)  # by each, because all want to know it
        else:
            lines += [self.head(loop), *indented(self.body(loop)), "}"]
        self.who = before
        return lines

    def head(self, loop: For, start: str = "", step: str = "") -> str:
        """The first line of a loop; each of several workers has its own start and goes on by their number."""
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
            self.who = THREAD
            return self.shared_loop(loop, f"blockIdx.x * {self.threads} + threadIdx.x", f"gridDim.x * {self.threads}")
        self.who = TEAM
        self.own = {own.buffer: own for own in own_sums(loop) if self.fits(own, loop)}
        body = indented(self.body(loop))
        starts = [line for own in self.own.values() for line in self.started(own)]
        ends = [line for own in self.own.values() for line in self.stored(own)]
        self.own = {}
        first, step = "blockIdx.x", "gridDim.x"
        if self.team < self.threads:
            teams = self.threads // self.team
            first, step = f"blockIdx.x * {teams} + threadIdx.x / {self.team}", f"gridDim.x * {teams}"
        return [self.head(loop, first, step), *indented(starts), *body, *indented(ends), "}"]

    def shared_by_team(self, loop: For, body: Sequence[Statement]) -> list[str]:
        """An innermost loop, whose rounds the threads of a team share."""
        apart = [s for s in body if isinstance(s, Accumulate) and s.buffer not in self.own]
        if all(keeps_apart(s.index, loop.variable) for s in apart):
            self.who = THREAD
            lines = self.shared_loop(loop, self.thread, str(self.team))
            lines += [f"{a.name} = {self.team_reduction(a.op, a.dtype)}({a.name});" for a in loop.accumulators]
        else:
            self.who, self.owner = OWNER, loop.variable
            lines = [self.head(loop), *indented(self.body(loop)), "}"]
        return [*lines, self.barrier] if self.touches_memory(body) else lines

    def touches_memory(self, body: Sequence[Statement]) -> bool:
        """Whether other threads might read what a loop writes, or write what it reads."""
        writes = any(isinstance(s, (Store, Accumulate)) and s.buffer not in self.own for s in body)
        return writes or any(getattr(s, "op", "") == "load" and s.args[0] in self.shared for s in body)  # type: ignore[union-attr]

    # Loops that threads share -----------------------------------------------------------------------------------------

    def shared_loop(self, loop: For, thread: str, threads: str) -> list[str]:
        """A loop of which each of several threads takes every so many-th round, or four rounds at a time."""
        self.fours = fours(loop, self.kernel) if _takes_fours(loop, self.kernel) else None
        width = FOUR if self.fours else 1
        keeps = [s.buffer for s in loop.body if isinstance(s, Accumulate) and s.buffer in self.own]
        inside = self.four_rounds(loop) if self.fours else self.body(loop)
        self.fours = None
        first = f"{loop.variable}_first" if width > 1 else loop.variable
        if keeps:
            rounds = -(-_length(loop) // (width * self.team))
            self.kept |= dict.fromkeys(keeps, (rounds, width))
            place = f"const {self.integer} {first} = {width} * ({self.team} * round + threadIdx.x);"
            guarded = [place, f"if ({first} < {self.index(loop.high)}) {{", *indented(inside), "}"]
            return ["#pragma unroll", f"for (int round = 0; round < {rounds}; round++) {{", *indented(guarded), "}"]
        if width == 1:
            return [self.head(loop, thread, threads), *indented(inside), "}"]
        whole = For(first, loop.low, loop.high, [])
        steps = str(FOUR * int(threads)) if threads.isdigit() else f"{FOUR} * {threads}"
        return [self.head(whole, f"{FOUR} * ({thread})", steps), *indented(inside), "}"]

    def four_rounds(self, loop: For) -> list[str]:
        """Load, compute and store four elements at once."""
        assert self.fours is not None
        variable, first = loop.variable, f"{loop.variable}_first"
        lines, ends = [], []
        for buffer, index in self.fours.loads.items():
            place = f"{buffer} + {self.index(replaced(index, variable, first), 1)}"
            lines.append(f"const Four<{self.stored_type(self.kinds[buffer])}> {buffer}_in = four_of({place}, aligned);")
        for buffer, index in self.fours.stores.items():
            place = f"{buffer} + {self.index(replaced(index, variable, first), 1)}"
            lines.append(f"Four<{self.stored_type(self.kinds[buffer])}> {buffer}_out;")
            ends.append(f"put_four({place}, {buffer}_out, aligned);")
        self.aligned |= dict.fromkeys((*self.fours.loads, *self.fours.stores))
        body = indented([f"const {self.integer} {variable} = {first} + lane;", *self.body(loop)])
        return [*lines, "#pragma unroll", f"for (int lane = 0; lane < {FOUR}; lane++) {{", *body, "}", *ends]

    def fits(self, own: Own, chunk: For) -> bool:
        """Whether threads have registers for their part of a sum across rows."""
        return depends(own.place, chunk.variable) and own.size <= REGISTERS * self.threads

    def started(self, own: Own) -> list[str]:
        dtype = self.kinds[own.buffer]
        rounds, width = self.kept[own.buffer]
        start = self.value(identity(own.op, dtype), dtype)
        name = f"own_{own.buffer}"
        return [
            f"{self.type(dtype)} {name}[{rounds * width}];",
            "#pragma unroll", f"for (int i = 0; i < {rounds * width}; i++) {name}[i] = {start};",
        ]

    def stored(self, own: Own) -> list[str]:
        rounds, width = self.kept[own.buffer]
        z = own.variable
        place = f"{width} * ({self.team} * (i / {width}) + threadIdx.x) + i % {width}"
        inner = [
            f"const {self.integer} {z} = {place};",
            f"if ({z} < {own.size}) {own.buffer}[{self.index(own.place)}] = own_{own.buffer}[i];",
        ]
        return ["#pragma unroll", f"for (int i = 0; i < {rounds * width}; i++) {{", *indented(inner), "}"]

    def team_reduction(self, op: str, dtype: Any) -> str:
        """The name of a function that puts together what the threads of a team have."""
        kind, name = self.type(dtype), f"team_{op}_{dtype.name}"

        lines = [
            f"for (int distance = {WARP // 2}; distance > 0; distance /= 2) {{",
            INDENT + self.update("v", op, f"({kind})__shfl_xor_sync(0xffffffffu, v, distance)", dtype),
            "}",
        ]
        if self.team > WARP:
            lines += [
                f"__shared__ {kind} parts[{self.team // WARP}];",
                "__syncthreads();",
                f"if (threadIdx.x % {WARP} == 0) parts[threadIdx.x / {WARP}] = v;",
                "__syncthreads();",
                "v = parts[0];",
                f"for (int warp = 1; warp < {self.team // WARP}; warp++) {{",
                INDENT + self.update("v", op, "parts[warp]", dtype),
                "}",
            ]
        lines.append("return v;")
        return self.helper(kind, name, f"{kind} v", lines)

    # Words ------------------------------------------------------------------------------------------------------------

    def expression(self, let: Let) -> str:
        if let.op == "load" and self.fours is not None and self.fours.loads.get(let.args[0]) == let.args[1]:
            return self.read(f"{let.args[0]}_in.at[lane]", let.dtype)
        return super().expression(let)

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

