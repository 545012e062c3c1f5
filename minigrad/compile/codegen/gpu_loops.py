"""Prepares kernels for a GPU: interchanges loops, and finds the sums that threads can keep in registers."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..loops.index import depends, replaced
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Let, Store, statements


def for_threads(kernel: Kernel) -> Kernel:
    """The kernel in which each element sums over the chunks, instead of each chunk adding to every element."""
    return replace(kernel, body=[_interchanged(s) if isinstance(s, For) else s for s in kernel.body])


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


# Positions ------------------------------------------------------------------------------------------------------------


def step_of(index: Index, variable: str) -> int | None:
    """By how much a position grows with a variable; None if that is not always the same.

    >>> step_of(("+", ("*", "i", 4), "p"), "i"), step_of(("//", "i", 2), "i"), step_of(("//", "p", 2), "i")
    (4, None, 0)
    """
    if not isinstance(index, tuple) or not depends(index, variable):
        return int(index == variable)
    operation, left, right = index
    first, second = step_of(left, variable), step_of(right, variable)
    if first is None or second is None:
        return None
    if operation == "+":
        return first + second
    return first * right if operation == "*" and isinstance(right, int) else None


def keeps_apart(index: Index, variable: str) -> bool:
    """Whether different values of a variable always give different positions."""
    return step_of(index, variable) not in (None, 0)


# Sums in registers ----------------------------------------------------------------------------------------------------


class Own(NamedTuple):
    """A sum across the rows of a chunk: each thread keeps the sums of its columns in registers."""

    buffer: str
    op: str
    size: int
    place: Index  # in memory, of the column `variable`
    variable: str


def own_sums(chunk: For) -> list[Own]:
    """The sums of a loop over chunks that one loop initialises, one other loop adds to, and nothing else uses."""
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
        same = same and replaced(others[0].index, around.variable, first.variable) == store.index
        if same and depends(store.index, chunk.variable):
            found.append(Own(store.buffer, others[0].op, int(str(first.high)), store.index, first.variable))
    return found
