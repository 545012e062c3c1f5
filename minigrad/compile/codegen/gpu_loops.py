"""Prepares kernels for a GPU: interchanges loops, and decides which threads share a row and what they keep."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NamedTuple

from ..loops.bands import in_blocks
from ..loops.index import Copied, depends, divided, plus, position, remainder, replaced, terms, times
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Let, Statement, Store, statements
from ..loops.operations import identity
from ..nodes.thresholds import BLOCK_THREADS, FEW_TO_REDUCE, MOST_TEAM_RESULTS
from ..nodes.view import Dims

SHARED = 48 << 10  # bytes of shared memory that every block may use
WARP, MOST = 32, 1024  # threads that run in step, and the most threads of a block


def for_threads(kernel: Kernel) -> Kernel:
    """The kernel with loops that threads can share."""
    gathered = _gathered(kernel)
    if gathered:
        return gathered
    body = [_interchanged(s) if isinstance(s, For) else s for s in kernel.body]
    if kernel.parallel != "elements":
        return replace(kernel, body=body)
    if kernel.units <= MOST_TEAM_RESULTS and _have_long_sums(body):
        return replace(kernel, body=body, parallel="rows")
    return replace(kernel, body=[_summed_in_blocks(s) if isinstance(s, For) else s for s in body])


def _have_long_sums(body: list[Statement]) -> bool:
    """Whether loops over elements reduce many values to each, of arrays that the kernel only reads."""
    written = {s.buffer for s in statements(body) if isinstance(s, (Store, Accumulate))}
    loops: list[Statement] = [inner for s in body if isinstance(s, For) for inner in s.body if isinstance(inner, For)]
    read = {let.args[0] for let in statements(loops) if isinstance(let, Let) and let.op == "load"}
    rounds = [_summed(loop) for loop in loops]
    return max(rounds, default=0) >= FEW_TO_REDUCE and 0 not in rounds and not written & read


def _summed(loop: Statement) -> int:
    """How many values a loop over numbers accumulates; 0 if it does anything else."""
    if not isinstance(loop, For) or not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return 0
    return loop.high - loop.low if all(isinstance(s, Let) for s in loop.body) else 0


def _summed_in_blocks(loop: For) -> For:
    """The loop over elements, each of which is a sum of sums of blocks if there are many values."""
    body = [in_blocks(s, FEW_TO_REDUCE) if isinstance(s, For) and _summed(s) else s for s in loop.body]
    return replace(loop, body=body)


def _gathered(kernel: Kernel) -> Kernel | None:
    """A kernel whose places each gather the elements that are reduced to them; None if its loops have another form.

    `for i: buffer[place of i] += …` goes over the elements in the order of memory, and several are added to one place.
    Threads cannot share that loop, but they can share the places.  Each element is still added exactly once.
    """
    chunk = kernel.body[0]
    if kernel.parallel != "chunks" or len(kernel.body) != 1 or not isinstance(chunk, For):
        return None
    *fills, loop = chunk.body
    if not isinstance(loop, For) or loop.accumulators:
        return None
    if not all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body):
        return None
    adds = {s.buffer: s for s in loop.body if isinstance(s, Accumulate)}
    dtypes = {parameter.name: parameter.dtype for parameter in kernel.parameters}
    starts = {buffer: identity(add.op, dtypes[buffer]) for buffer, add in adds.items()}
    stores = [s for fill in fills if isinstance(fill, For) for s in fill.body if isinstance(s, Store)]
    sizes, indices = {str(fill.high) for fill in fills if isinstance(fill, For)}, [add.index for add in adds.values()]
    if {s.buffer: s.value for s in stores} != starts or len(sizes) != 1 or indices.count(indices[0]) < len(indices):
        return None
    size, elements = int(sizes.pop()), _elements(loop)
    split = _digits(replaced(indices[0], chunk.variable, 0), loop.variable, elements, size)
    if split is None:
        return None
    kept, reduced = split
    count = prod([extent for extent, _ in reduced])
    length = -(-count // kernel.units)  # of the part of each chunk
    place: Index = "p"
    low: Index = 0
    high: Index = count
    if kernel.units > 1:
        place, low = remainder("p", size), times(divided("p", size), length)
        high = ("min", plus(low, length), count)
    element = plus(position(kept, place), position(reduced, "r"))
    body = Copied(loop.variable, element).block([s for s in loop.body if not isinstance(s, Accumulate)])
    totals = [Accumulator(f"total_{name}", add.op, add.value, dtypes[name]) for name, add in adds.items()]
    ends = [Store(name, "p", total.name) for name, total in zip(adds, totals)]
    places = For("p", "lo", "hi", [For("r", low, high, body, totals), *ends])
    parallel = "elements" if length < FEW_TO_REDUCE else "rows"
    return replace(kernel, body=[places], units=kernel.units * size, parallel=parallel)


def _elements(loop: For) -> int:
    """The number of elements of all chunks of a loop."""
    high = loop.high
    return int(high[2]) if isinstance(high, tuple) and high[0] == "min" else int(str(high))


def _digits(index: Index, variable: str, elements: int, size: int) -> tuple[Dims, Dims] | None:
    """The dimensions of the places and of what is reduced to one, in the order of `elements` in memory.

    The index is a sum of digits of the variable, `variable // d % m`, each times its stride.

    >>> _digits(("+", ("%", ("//", "i", 2), 3), ("*", ("//", "i", 6), 3)), "i", 24, 12)
    ([(4, 6), (3, 2)], [(2, 1)])
    """
    found: list[tuple[int, int, int]] = []  # (stride of the place, d, m)
    for term in [term for term in terms(index) if term != 0]:
        digit, stride = (term[1], term[2]) if isinstance(term, tuple) and term[0] == "*" else (term, 1)
        parts = _digit(digit, variable, elements)
        if parts is None or not isinstance(stride, int):
            return None
        found.append((stride, *parts))
    expected = 1
    for stride, _, extent in sorted(found):
        if stride != expected:
            return None
        expected *= extent
    kept: Dims = [(extent, step) for _, step, extent in sorted(found, reverse=True)]
    reduced: Dims = []
    begin = 1
    for step, extent in sorted((step, extent) for extent, step in kept):
        if step % begin:
            return None
        reduced += [(step // begin, begin)] if step > begin else []
        begin = step * extent
    reduced += [(elements // begin, begin)] if elements > begin else []
    whole = expected == size and elements == size * prod([extent for extent, _ in reduced])
    return (kept, reduced[::-1]) if whole and reduced else None


def _digit(index: Index, variable: str, elements: int) -> tuple[int, int] | None:
    """(d, m) of an index that equals `variable // d % m`."""
    if index == variable:
        return 1, elements
    if not isinstance(index, tuple) or index[0] not in ("//", "%") or not isinstance(index[2], int):
        return None
    inner = _digit(index[1], variable, elements)
    if inner is None:
        return None
    (step, extent), number = inner, index[2]
    if extent % number:
        return None
    return (step * number, extent // number) if index[0] == "//" else (step, number)


def _interchanged(loop: For) -> For:
    """`for n: for chunk: …` for `for chunk: for n: buffer[n] += …`, which would go through memory once per chunk."""
    if len(loop.body) != 1 or loop.accumulators or not isinstance(loop.body[0], For):
        return loop
    inner = loop.body[0]
    last = inner.body[-1]
    lets = [s for s in inner.body[:-1] if isinstance(s, Let)]
    plain = len(lets) == len(inner.body) - 1 and not inner.accumulators and inner.low == "lo"
    if not plain or not isinstance(last, Accumulate) or depends(last.index, loop.variable):
        return loop
    dtypes = {let.name: let.dtype for let in lets}
    if last.value not in dtypes or any(let.op == "load" and let.args[0] == last.buffer for let in lets):
        return loop
    total = f"total_{loop.variable}"
    sums = [Accumulator(total, last.op, last.value, dtypes[str(last.value)])]
    summing = For(loop.variable, loop.low, loop.high, [*lets], sums)
    return For(inner.variable, inner.low, inner.high, [summing, Accumulate(last.op, last.buffer, last.index, total)])


# Sums across rows -----------------------------------------------------------------------------------------------------


def own_sums(chunk: For) -> dict[str, For]:
    """The sums of a loop over chunks that one loop initialises, one other loop adds to, and nothing else uses.

    They are returned by their buffer, with the loop that initialises each.
    """
    found, inside = dict[str, For](), [*statements(chunk.body)]
    for first in chunk.body:
        if not isinstance(first, For) or len(first.body) != 1 or not isinstance(first.body[0], Store):
            continue
        store = first.body[0]
        others = [s for s in inside if getattr(s, "buffer", None) == store.buffer and s is not store]
        read = any(isinstance(s, Let) and s.op == "load" and s.args[0] == store.buffer for s in inside)
        if read or len(others) != 1 or not isinstance(others[0], Accumulate) or first.low != 0:
            continue
        around = next((s for s in inside if isinstance(s, For) and any(each is others[0] for each in s.body)), chunk)
        same = around is not chunk and (around.low, around.high) == (0, first.high)
        same = same and replaced(others[0].index, around.variable, first.variable) == store.index
        if same and depends(store.index, chunk.variable) and not any(isinstance(s, For) for s in around.body):
            found[store.buffer] = first
    return found


# Teams of threads -----------------------------------------------------------------------------------------------------


class Team(NamedTuple):
    """The threads of a block, and those of a team, which share a row: the number of a thread, and what they wait at."""

    threads: int
    size: int
    thread: str
    barrier: str

    @property
    def together(self) -> int:
        """The teams of a block."""
        return self.threads // self.size


def team_of(kernel: Kernel) -> Team:
    """A block or, for short rows, a warp."""
    rounds = BLOCK_THREADS if kernel.parallel == "elements" else _rounds(kernel)
    if kernel.parallel == "rows" and rounds <= 4 * WARP:
        return Team(BLOCK_THREADS, WARP, f"threadIdx.x % {WARP}", "__syncwarp();")
    threads = max(WARP, min(-(-rounds // WARP) * WARP, MOST if rounds > 4 * MOST else BLOCK_THREADS))
    return Team(threads, threads, "threadIdx.x", "__syncthreads();")


def _rounds(kernel: Kernel) -> int:
    """The most threads that an innermost loop can use."""
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and not any(isinstance(i, For) for i in s.body)]
    if any(not isinstance(loop.high, int) for loop in loops):
        return BLOCK_THREADS  # the loop goes over a part of the elements
    return max([int(str(loop.high)) for loop in loops], default=BLOCK_THREADS)


def in_shared_memory(kernel: Kernel, teams: int) -> tuple[list[str], dict[str, For]]:
    """The scratch memory that lies in shared memory, and the sums across rows there, with the loops that begin them."""
    shared, own = list[str](), dict[str, For]()
    left = SHARED - 4 * 8 * WARP  # reductions need the rest
    for parameter in kernel.parameters:
        size = parameter.size * parameter.dtype.itemsize * teams
        if parameter.role == "scratch" and size <= left:
            left -= size
            shared.append(parameter.name)
    sizes = {parameter.name: parameter.dtype.itemsize for parameter in kernel.parameters}
    for chunk in kernel.body:
        for buffer, fill in own_sums(chunk).items() if isinstance(chunk, For) else ():
            size = int(str(fill.high)) * sizes[buffer]
            if size <= left:
                left -= size
                own[buffer] = fill
    return shared, own
