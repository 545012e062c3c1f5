"""Bands: in which order the loops of a kernel visit memory, and in which order they add up.

A kernel that reads memory against its order, such as that of `x.T + 1`, gets *tiles*.  Its loops `for p: for r: …
x[r · 2048 + p]` fetch a cache line for each element.  In narrow bands of r, with the loop over p inside, each line is
fetched once: the next p finds its neighbours in the cache.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from ..nodes.thresholds import (
    BAND_COLUMNS,
    BLOCK_ROUNDS,
    BLOCKS_IN_A_ROW,
    CACHE_LINE,
    FAR_BYTES,
    FEWER_ROUNDS,
    FEWEST_ROW_ROUNDS,
    LONG_ROW_BYTES,
    MOST_ROW_STATEMENTS,
    ROWS_AT_ONCE,
)
from .index import Copied, depends, divided, plus, reads, step_of, times
from .ir import Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Running, Statement, Store, Walk, statements
from .operations import REDUCTIONS, ROUNDED


def tiled(kernel: Kernel) -> Kernel:
    """The kernel with bands where they help."""
    sizes = {parameter.name: parameter.dtype.itemsize for parameter in kernel.parameters}
    return replace(kernel, body=[_tiled(statement, sizes) for statement in kernel.body])


def _tiled(statement: Statement, sizes: dict[str, int]) -> Statement:
    if not isinstance(statement, For):
        return statement
    inner = statement.body[0] if len(statement.body) == 1 and not statement.accumulators else None
    if not isinstance(inner, For) or not _in_any_order(statement, inner) or not _reads_against(statement, inner, sizes):
        return replace(statement, body=[_tiled(each, sizes) for each in statement.body])
    band, columns = f"{inner.variable}_band", int(str(inner.high))
    low = times(band, BAND_COLUMNS)
    narrow = replace(inner, low=low, high=("min", plus(low, BAND_COLUMNS), columns))
    return For(band, 0, -(-columns // BAND_COLUMNS), [replace(statement, body=[narrow])])


def _in_any_order(outer: For, inner: For) -> bool:
    """Whether the rounds may be interchanged: they write apart, and what is added to one place keeps its order."""
    plain = inner.low == 0 and isinstance(inner.high, int) and inner.high >= 2 * BAND_COLUMNS
    if not plain or inner.steps > 1 or outer.steps > 1 or inner.accumulators:
        return False
    for each in inner.body:
        if isinstance(each, Accumulate):
            if not depends(each.index, inner.variable) or depends(each.index, outer.variable):
                return False
        elif not isinstance(each, (Let, Store)):
            return False
    return True


def _reads_against(outer: For, inner: For, sizes: dict[str, int]) -> bool:
    """Whether an array is read with large steps in the inner loop, and with small ones in the outer loop."""
    for each in inner.body:
        if isinstance(each, Let) and each.op == "load":
            buffer, index = each.args
            across, along = step_of(index, inner.variable), step_of(index, outer.variable)
            if across is not None and along is not None and 0 < along * sizes[buffer] < CACHE_LINE:
                if across * sizes[buffer] >= FAR_BYTES:
                    return True
    return False


# Rows at once: a loop that reduces short rows to one row takes several of them per round ------------------------------
#
# `for p: for r: OUT[r] += x[p, r]` loads and stores OUT for each row.  With eight rows per round, it does so an eighth
# as often, and the sum of the eight elements stays in registers.  This is also a second level of partial sums: OUT
# takes in one sum of eight elements instead of eight elements one after the other, so its rounding error is smaller.  A
# maximum rounds nothing, so long rows are read one by one, in the order of memory.


def with_rows_at_once(kernel: Kernel) -> Kernel:
    """The kernel in which such loops take several rows per round."""
    return replace(kernel, body=_Rounds({p.name: p.dtype for p in kernel.parameters}).block(kernel.body))


class _Rounds(Walk):
    """Replaces the loops that reduce rows by a loop over rounds, and a loop over the rows that are left."""

    def __init__(self, types: dict[str, Any]) -> None:
        self.types = types

    def loop(self, loop: For) -> list[Statement]:
        rows = rows_at_once(loop, self.types)
        if rows == 1:
            return [replace(loop, body=self.block(loop.body))]
        number, body, ahead = f"{loop.variable}_round", list[Statement](), list[Statement]()
        count = divided(_minus(loop.high, loop.low), rows)
        adds: list[list[Accumulate]] = []
        for row in range(rows):
            index = plus(plus(times(number, rows), row), loop.low)
            *lets, inner = Copied(loop.variable, index, f"x{row}").block(loop.body)
            ahead += lets
            body += [each for each in inner.body if isinstance(each, Let)]
            adds.append([each for each in inner.body if isinstance(each, Accumulate)])
        for same in zip(*adds):
            body += self.joined([*same])
        left = replace(loop, low=plus(loop.low, times(count, rows)))
        rounds = For(number, 0, count, [*ahead, replace(inner, body=body)])
        return [rounds] if left.low == left.high else [rounds, left]

    def joined(self, adds: list[Accumulate]) -> list[Statement]:
        """One step of a reduction in place of one for each row: the values are joined first, neighbours first."""
        lets: list[Statement] = []
        while len(adds) > 1:
            pairs = [*zip(adds[::2], adds[1::2])]
            made = [f"{pair[0].value}y{pair[1].value}" for pair in pairs]
            operation, dtype = REDUCTIONS[adds[0].op], self.types[adds[0].buffer]
            lets += [Let(n, operation, (a.value, b.value), dtype) for n, (a, b) in zip(made, pairs)]
            adds = [replace(pair[0], value=name) for name, pair in zip(made, pairs)]
        return [*lets, *adds]


def rows_at_once(loop: For, types: dict[str, Any]) -> int:
    """The number of rows for a round; 1 if the rows are long, or the loop has another form."""
    *lets, inner = loop.body or [loop]
    if type(inner) is not For or loop.accumulators or inner.accumulators or inner.steps > 1:
        return 1
    adds = {each.buffer: each for each in inner.body if isinstance(each, Accumulate)}
    if any(each.op not in ROUNDED and _is_long(inner, types[name]) for name, each in adds.items()):
        return 1
    values = [each for each in (*lets, *inner.body) if isinstance(each, Let)]
    if not adds or len(adds) + len(values) < len(lets) + len(inner.body):
        return 1  # other statements, or two reductions in one place
    names, places = {loop.variable, *[let.name for let in values]}, [each.index for each in adds.values()]
    if any(depends(index, name) for index in (*places, inner.low, inner.high) for name in names):
        return 1
    if any(let.op == "load" and let.args[0] in adds for let in values):
        return 1
    if not all(isinstance(each.value, str) for each in adds.values()):
        return 1
    known, rows = isinstance(loop.high, int) and isinstance(loop.low, int), ROWS_AT_ONCE
    most = loop.high - loop.low if known else ROWS_AT_ONCE**2  # type: ignore[operator]
    while rows > 1 and (rows * len(inner.body) > MOST_ROW_STATEMENTS or most < FEWEST_ROW_ROUNDS * rows):
        rows //= 2
    return rows


def _is_long(row: For, dtype: Any) -> bool:
    return not isinstance(row.high, int) or row.high * dtype.itemsize >= LONG_ROW_BYTES


def _minus(high: Index, low: Index) -> Index:
    if isinstance(high, tuple) and high[:2] == ("+", low):
        return high[2]  # type: ignore[no-any-return]
    return high - low if isinstance(high, int) and isinstance(low, int) else plus(high, times(low, -1))


# Sums of floats: in which order loops add up, and which products they take in -----------------------------------------
#
# All other arithmetic of the loop language is NumPy's: each operation rounds its result once, whatever is around it.
# So a value that several loops, kernels or modes compute is the same in each, and a comparison finds it again.  Sums
# that a loop accumulates have no order of their own, and nothing is compared with their parts.  So these two
# transforms, and the printers, may choose how they are added up.
#
# Each addition rounds the total: where a total of float32 is 2²⁴ times an element, adding the element changes nothing.
# In blocks, an element goes through few additions: those of its lane in a block, and 16 for each factor of 16 in the
# number of blocks.


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
