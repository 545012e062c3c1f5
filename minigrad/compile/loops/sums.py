"""Sums of floats: in which order loops add up, and which products they take in.

All other arithmetic of the loop language is NumPy's: each operation rounds its result once, whatever is around it.  So
a value that several loops, kernels or modes compute is the same in each, and a comparison finds it again.  Sums that a
loop accumulates have no order of their own, and nothing is compared with their parts.  So these two passes, and the
printers, may choose how they are added up.

Each addition rounds the total: where a total of float32 is 2²⁴ times an element, adding the element changes nothing.
In blocks, an element goes through few additions: those of its lane in a block, and 16 for each factor of 16 in the
number of blocks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..nodes.thresholds import BLOCK_ROUNDS, BLOCKS_IN_A_ROW, FEWER_ROUNDS
from .index import depends, divided, plus, reads, times
from .ir import Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Running, Statement, Store, Walk, statements

MANY = 1 << 30  # rounds of a loop whose text does not say how many there are


# Products that sums take in ------------------------------------------------------------------------------------------


def with_terms(kernel: Kernel) -> Kernel:
    """The kernel in which a product that only one sum reads is a "term": it may be rounded together with the sum."""
    return replace(kernel, body=_Terms().block(kernel.body))


class _Terms(Walk):
    def loop(self, loop: For) -> list[Statement]:
        added: list[Accumulator | Accumulate] = [*loop.accumulators]
        added += [each for each in loop.body if isinstance(each, Accumulate)]
        summed = {each.value for each in added if each.op == "sum"}
        used = Counter(reads(loop))
        body: list[Statement] = self.block(loop.body)
        for number, let in enumerate(body):
            if isinstance(let, Let) and let.op == "mul" and let.dtype.kind == "f":
                if let.name in summed and used[let.name] == 1:
                    body[number] = replace(let, op="term")
        return [replace(loop, body=body)]


# Blocks ---------------------------------------------------------------------------------------------------------------


def with_long_sums_in_blocks(kernel: Kernel, rounds: int = BLOCK_ROUNDS) -> Kernel:
    """The kernel in which long loops with sums go over blocks; an innermost block has this many `rounds`."""
    return replace(kernel, body=_Blocks(kernel, rounds).block(kernel.body))


class _Blocks(Walk):
    def __init__(self, kernel: Kernel, rounds: int) -> None:
        self.types, self.rounds = {p.name: p.dtype for p in kernel.parameters}, rounds

    def loop(self, loop: For) -> list[Statement]:
        if isinstance(loop, Lanes) or Running in map(type, statements([loop])):
            return [loop]
        has_loops, after = any(isinstance(each, For) for each in loop.body), list[Statement]()
        if has_loops:
            loop, after = self.in_registers(replace(loop, body=self.block(loop.body)))
        if any(a.op == "sum" and a.dtype.kind == "f" for a in loop.accumulators):
            fewer = FEWER_ROUNDS if loop.steps > 1 else 1
            loop = in_blocks(loop, BLOCKS_IN_A_ROW if has_loops else self.rounds // fewer)
        return [loop, *after]

    def in_registers(self, loop: For) -> tuple[For, list[Statement]]:
        """The loop with accumulators for the places in memory to which all of its rounds add, and what adds them."""
        used = Counter(reads(loop))
        for each in statements(loop.body):
            if isinstance(each, (Store, Accumulate)):
                used[each.buffer] += 1
        body, sums, after = list[Statement](), list[Accumulator](), list[Statement]()
        for each in loop.body:
            if isinstance(each, Accumulate) and used[each.buffer] == 1 and self.is_one_sum(each, loop):
                name = f"{each.value}_{loop.variable}_{each.buffer}"
                sums.append(Accumulator(name, each.op, each.value, self.types[each.buffer]))
                after.append(replace(each, value=name))
            else:
                body.append(each)
        return replace(loop, body=body, accumulators=[*loop.accumulators, *sums]), after

    def is_one_sum(self, add: Accumulate, loop: For) -> bool:
        """Whether all rounds of a loop add a float to the same place."""
        inside = {loop.variable, *[each.name for each in loop.body if isinstance(each, Let)]}
        real = add.op == "sum" and self.types[add.buffer].kind == "f" and isinstance(add.value, str)
        return real and not any(depends(add.index, name) for name in inside)


def in_blocks(loop: For, size: int) -> For:
    """The loop over blocks of `size` rounds, and over blocks of blocks if there are many; a short loop stays.

    >>> from minigrad.compile.loops.ir import *
    >>> loop = in_blocks(For("i", 0, 8192, [], [Accumulator("t", "sum", "x", FLOAT)]), 2048)
    >>> print(loop.variable, loop.high, loop.body[0].low, loop.body[0].high)
    i_block 4 ('*', 'i_block', 2048) ('+', ('*', 'i_block', 2048), 2048)
    """
    most, length = _rounds(loop)
    while most >= 2 * size:
        number = f"{loop.variable}_block"
        low = plus(loop.low, times(number, size))
        end = plus(low, size)
        high: Index = end if isinstance(length, int) and length % size == 0 else ("min", end, loop.high)
        parts = [replace(a, name=f"{a.name}_{loop.variable}") for a in loop.accumulators]
        sums = [replace(a, value=part.name) for a, part in zip(loop.accumulators, parts)]
        most, length = -(-most // size), divided(plus(length, size - 1), size)
        loop = For(number, 0, length, [replace(loop, low=low, high=high, accumulators=parts)], sums)
        size = BLOCKS_IN_A_ROW
    return loop


def _rounds(loop: For) -> tuple[int, Index]:
    """The most rounds that a loop may have, as far as its text says, and the index that is their number."""
    low, high = loop.low, loop.high
    if isinstance(low, int) and isinstance(high, int):
        return high - low, high - low
    length = plus(high, times(low, -1))
    match high:
        case ("+", start, int(count)) if start == low:
            return count, count
        case ("min", ("+", start, int(count)), _) if start == low:
            return count, length
    return MANY, length
