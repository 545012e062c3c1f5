"""Loops as threads share them: changes that make a kernel better for a GPU, and what its printer reads off loops.

On a GPU the threads of a warp should read neighbouring elements, several at a time, and keep sums in registers.
"""

from __future__ import annotations

from typing import NamedTuple

from ..loops.index import depends, fold, replaced
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Let, Statement, Store, statements

FOUR = 4  # elements that a thread reads at once


def for_threads(kernel: Kernel) -> Kernel:
    """The kernel, in which each element sums up what chunks have left for it, instead of each chunk adding to all."""
    body = [_interchanged(s) if isinstance(s, For) else s for s in kernel.body]
    return Kernel(kernel.name, kernel.parameters, body, kernel.units, kernel.parallel)


def _interchanged(loop: For) -> For:
    """`for chunk: for n: buffer[n] += …` goes through memory once for each chunk: better the other way round."""
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
    body: list[Statement] = [*lets]
    summing = For(
        loop.variable, loop.low, loop.high, body, [Accumulator(total, last.op, last.value, dtypes[str(last.value)])]
    )
    return For(inner.variable, inner.low, inner.high, [summing, Accumulate(last.op, last.buffer, last.index, total)])


# Positions ------------------------------------------------------------------------------------------------------------


class IndexStep(NamedTuple):
    """By how much a position grows with a variable, and the position itself if it is a number or a name."""

    growth: int | None
    leaf: int | str = ""

    @staticmethod
    def joined(op: str, a: IndexStep, b: IndexStep) -> IndexStep:
        """The growth of an operation on two positions."""
        if op == "+":
            return IndexStep(None if a.growth is None or b.growth is None else a.growth + b.growth)
        if op == "*" and isinstance(b.leaf, int):
            return IndexStep(None if a.growth is None else a.growth * b.leaf)
        return IndexStep(0 if a.growth == b.growth == 0 else None)


def step_of(index: Index, variable: str) -> int | None:
    """By how much a position grows with a variable; None if that is not always the same.

    >>> step_of(("+", ("*", "i", 4), "p"), "i"), step_of(("//", "i", 2), "i"), step_of(("//", "p", 2), "i")
    (4, None, 0)
    """
    return fold(index, lambda leaf: IndexStep(int(leaf == variable), leaf), IndexStep.joined).growth


def keeps_apart(index: Index, variable: str) -> bool:
    """Whether different values of a variable are sure to give different positions."""
    return step_of(index, variable) not in (None, 0)


def in_fours(index: Index, units: int) -> bool:
    """Whether a position is sure to be a multiple of four; a range begins and ends at such, if all units are one."""

    def leaf(part: int | str) -> bool:
        return part % FOUR == 0 if isinstance(part, int) else part in ("lo", "hi") and units % FOUR == 0

    def joined(op: str, left: bool, right: bool) -> bool:
        return left or right if op == "*" else op in ("+", "min") and left and right

    return fold(index, leaf, joined)


# Four at a time -------------------------------------------------------------------------------------------------------


class Fours(NamedTuple):
    """What a loop loads and stores four at a time: for each buffer, the position that it does that at."""

    loads: dict[str, Index]
    stores: dict[str, Index]


def fours(loop: For, kernel: Kernel) -> Fours | None:
    """The loads and stores that a thread can make for four rounds at once; None if there are none."""
    variable, units = loop.variable, kernel.units
    if any(isinstance(s, For) for s in loop.body) or not (in_fours(loop.low, units) and in_fours(loop.high, units)):
        return None
    scratch = {p.name for p in kernel.parameters if p.role == "scratch"}
    touched: dict[str, list[Index]] = {}
    stored = {s.buffer for s in loop.body if isinstance(s, (Store, Accumulate))}
    for s in loop.body:
        if isinstance(s, Let) and s.op == "load":
            touched.setdefault(s.args[0], []).append(s.args[1])
        elif isinstance(s, (Store, Accumulate)):
            touched.setdefault(s.buffer, []).append(s.index)
    whole = {b: at[0] for b, at in touched.items() if b not in scratch and _is_run(at, variable, units)}
    added = {s.buffer for s in loop.body if isinstance(s, Accumulate)}
    loads = {
        s.args[0]: s.args[1]
        for s in loop.body
        if isinstance(s, Let) and s.op == "load" and s.args[0] in whole and s.args[0] not in added
    }
    stores = {b: at for b, at in whole.items() if b in stored - added}  # in the order of the loop, not of a set
    return Fours(loads, stores) if loads or stores else None


def _is_run(positions: list[Index], variable: str, units: int) -> bool:
    """Whether all of them are the same run of neighbours that begins at a multiple of four."""
    first = positions[0]
    same = all(index == first for index in positions)
    return same and step_of(first, variable) == 1 and in_fours(replaced(first, variable, 0), units)


# Sums in registers ----------------------------------------------------------------------------------------------------


class Own(NamedTuple):
    """A sum across rows of which each thread keeps its columns in registers, while it goes through a chunk."""

    buffer: str
    op: str
    size: int
    place: Index  # in memory, of the column `variable`
    variable: str


def own_sums(chunk: For) -> list[Own]:
    """The sums of a loop over chunks that one loop fills, one other loop adds to, and no other statement touches."""
    found = []
    for first in chunk.body:
        if not isinstance(first, For) or len(first.body) != 1 or not isinstance(first.body[0], Store):
            continue
        store = first.body[0]
        others = [s for s in statements(chunk.body) if getattr(s, "buffer", None) == store.buffer and s is not store]
        read = any(isinstance(s, Let) and s.op == "load" and s.args[0] == store.buffer for s in statements(chunk.body))
        if read or len(others) != 1 or not isinstance(others[0], Accumulate) or first.low != 0:
            continue
        loops = [s for s in statements(chunk.body) if isinstance(s, For)]
        around = next((loop for loop in loops if any(s is others[0] for s in loop.body)), chunk)
        same = around is not chunk and (around.low, around.high) == (0, first.high)
        if same and replaced(others[0].index, around.variable, first.variable) == store.index:
            found.append(Own(store.buffer, others[0].op, int(str(first.high)), store.index, first.variable))
    return found
