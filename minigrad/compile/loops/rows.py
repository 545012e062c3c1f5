"""Rows at once: a loop that reduces short rows to one row takes several of them per round.

`for p: for r: OUT[r] += x[p, r]` loads and stores OUT for each row.  With eight rows per round, it does so an eighth as
often, and the sum of the eight elements stays in registers.  This is also a second level of partial sums: OUT takes in
one sum of eight elements instead of eight elements one after the other, so its rounding error is smaller.  A maximum
rounds nothing, so long rows are read one by one, in the order of memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..nodes.thresholds import FEWEST_ROW_ROUNDS, LONG_ROW_BYTES, MOST_ROW_STATEMENTS, ROWS_AT_ONCE
from .index import Copied, depends, divided, plus, times
from .ir import Accumulate, For, Index, Kernel, Let, Statement, Walk
from .operations import REDUCTIONS, ROUNDED


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
