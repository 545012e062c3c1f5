"""Runs kernels with NumPy where there is no native code: several times slower, but faster than array by array.

A loop runs for many values of its variable at once: each statement is one operation on arrays, which fit into the
caches.  An innermost loop goes along the second axis of the arrays.  The loop around it goes along the first axis if
its rounds are independent.  A load of evenly spaced positions is a view of memory, not a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...devices.special import cast
from ..loops.index import computed, fold
from ..loops.ir import (
    Accumulate,
    Accumulator,
    For,
    Index,
    Kernel,
    Let,
    Running,
    Statement,
    Store,
    Walk,
    statements,
)
from ..loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes
from ..loops.scalar import identity

BLOCK = 1 << 16  # elements that are computed at a time

REDUCERS: dict[str, Any] = {name: OPERATIONS[op].numpy for name, op in REDUCTIONS.items()}


class Rounds(NamedTuple):
    """The values of a loop's variable that are computed at once, along one axis."""

    axis: int
    start: int
    length: int

    @property
    def numbers(self) -> Any:
        values = np.arange(self.start, self.start + self.length)
        return values[:, None] if self.axis == 0 else values[None, :]


Spaced = tuple[int, int, int]  # evenly spaced positions: a start, and the steps along both axes


def compile_blocks(kernel: Kernel) -> Callable[[list[Any], int, int], None]:
    """A function that runs a kernel on the one-dimensional arrays of all parameters, for a range of units."""
    scratch = {p.name: p.size for p in kernel.parameters if p.role == "scratch"}
    written = {s.buffer for s in statements(kernel.body) if isinstance(s, (Store, Accumulate))}
    changing = written - scratch.keys()

    def run(arrays: list[Any], low: int, high: int) -> None:
        buffers = {p.name: array for p, array in zip(kernel.parameters, arrays)}
        with np.errstate(all="ignore"):
            _Run(buffers, scratch, changing, {"lo": low, "hi": high}).block(kernel.body)

    return run


@dataclass
class _Run(Walk):
    """One run of a kernel.

    The scope holds variables and values.  A value is an array with two dimensions, of size 1 along an axis where all
    rounds have the same value; `shape` is the number of rounds along both axes.
    """

    buffers: dict[str, Any]
    scratch: dict[str, int]
    changing: set[str]  # buffers that are written, so that a load has to copy
    scope: dict[str, Any]
    shape: tuple[int, int] = (1, 1)
    rows: Rounds | None = None  # the rounds along the first axis
    along: int | None = None  # the axis of the rounds of the loop around a statement

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        """Run a loop along a free axis, in blocks; without a free axis, round by round."""
        outside, shape = self.scope, self.shape
        low, high = self.bounds(loop)
        totals: dict[str, Any] = {}
        axis = self.free_axis(loop)
        step = 1 if axis is None else self.block_length(loop, axis)
        for start in range(low, high, step):
            count = min(step, high - start)
            rounds = start if axis is None else Rounds(axis, start, count)
            if axis is not None:
                self.shape = (count, shape[1]) if axis == 0 else (shape[0], count)
            self.scope = outside | self.totals(loop, axis, start == low) | {loop.variable: rounds}
            if isinstance(rounds, Rounds) and axis == 0:
                self.spread_scratch(count)
                self.rows = rounds
            self.along = axis
            self.block(loop.body)
            for a in loop.accumulators:
                part = self.reduced(a, axis)
                totals[a.name] = part if a.name not in totals else REDUCERS[a.op](totals[a.name], part)
        if axis == 0:
            self.rows = None
        if high <= low:  # without rounds, accumulators keep their first values
            totals = {a.name: np.full((1, 1), identity(a.op, a.dtype), a.dtype) for a in loop.accumulators}
        self.scope, self.shape = outside, shape
        self.scope |= totals

    def totals(self, loop: For, axis: int | None, first: bool) -> dict[str, Any]:
        """The last running totals of the block before, or those before the first block."""
        if first:
            return {each.name: np.full((1, 1), identity(each.op, each.dtype), each.dtype) for each in loop.totals}
        kept = {each.name: self.scope[each.name] for each in loop.totals}
        return kept if axis is None else {name: value[:, -1:] for name, value in kept.items()}

    def running(self, running: Running) -> None:
        """Running totals along the second axis, from the last total of the block before; or the next total."""
        reducer, before = REDUCERS[running.op], self.scope[running.name]
        value: Any = np.asarray(self.operand(running.value), running.dtype)
        if self.along is None:
            self.scope[running.name] = np.atleast_2d(reducer(before, value))
            return
        value = np.broadcast_to(value, self.shape)
        first = np.broadcast_to(before, (self.shape[0], 1))
        whole = np.concatenate([first, value], axis=1)
        self.scope[running.name] = reducer.accumulate(whole, axis=1, dtype=running.dtype)[:, 1:]

    def reduced(self, accumulator: Accumulator, axis: int | None) -> Any:
        """The result of an accumulator over the rounds of a block."""
        value: Any = np.atleast_2d(np.asarray(self.operand(accumulator.value), accumulator.dtype))
        if axis is None:
            return value
        whole = (self.shape[0], value.shape[1]) if axis == 0 else (value.shape[0], self.shape[1])
        reduce = REDUCERS[accumulator.op].reduce
        return reduce(np.broadcast_to(value, whole), axis=axis, keepdims=True, dtype=accumulator.dtype)

    def bounds(self, loop: For) -> tuple[int, int]:
        return int(self.number(loop.low)), int(self.number(loop.high))

    def free_axis(self, loop: For) -> int | None:
        taken = {v.axis for v in self.scope.values() if isinstance(v, Rounds)}
        if not any(isinstance(s, For) for s in loop.body):
            return None if 1 in taken else 1
        if self._carried(loop):
            return None
        bounds = [index for inner in _loops(loop.body) for index in (inner.low, inner.high)]
        return 0 if not taken and all(self.is_known(index) for index in bounds) else None

    def _carried(self, loop: For) -> bool:
        """Whether a round needs a running total, or scratch memory that the round before has written."""
        if loop.totals:
            return True
        stored: set[str] = set()
        for statement in statements(loop.body):
            if isinstance(statement, Store):
                stored.add(statement.buffer)
            elif isinstance(statement, Let) and statement.op == "load":
                if statement.args[0] in self.scratch and statement.args[0] not in stored:
                    return True
        return False

    def block_length(self, loop: For, axis: int) -> int:
        if axis == 1:
            return max(1, BLOCK // self.shape[0])
        lengths = [self.bounds(inner) for inner in _loops(loop.body)]
        return max(1, BLOCK // max(1, *(high - low for low, high in lengths)))

    def spread_scratch(self, rows: int) -> None:
        """Enlarge scratch memory, so that each row computed at the same time has its part."""
        for name, size in self.scratch.items():
            if self.buffers[name].size < rows * size:
                self.buffers[name] = np.empty(rows * size, self.buffers[name].dtype)

    # Values -----------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        self.scope[let.name] = self.value(let)

    def operand(self, operand: Any) -> Any:
        return self.scope[operand] if isinstance(operand, str) else operand

    def value(self, let: Let) -> Any:
        op, scope = let.op, self.scope
        if op == "load":
            return self.loaded(*let.args)
        if op == "index":
            return np.asarray(self.number(let.args[0])).astype(let.dtype)
        given = [scope[a] if a.__class__ is str else a for a in let.args]
        for i in [i for i, a in enumerate(let.args) if a.__class__ is not str]:
            given[i] = np.asarray(given[i], operand_dtypes(let, lambda name: scope[name].dtype)[i])
        if op == "cast":
            return cast(np, given[0], let.dtype)
        if op == "bitcast":
            return given[0].view(let.dtype)
        return np.asarray(OPERATIONS[op].numpy(*given))  # NumPy returns scalars for arrays without dimensions

    def loaded(self, buffer: str, index: Index) -> Any:
        place = self.place(buffer, index)
        if not isinstance(place, tuple):
            return self.buffers[buffer][place]
        loaded = self.view(buffer, place)
        return loaded.copy() if buffer in self.changing else loaded

    # Places -----------------------------------------------------------------------------------------------------------

    def number(self, index: Index) -> Any:
        """A position: a number, or an array if it differs between rounds computed at once."""
        return fold(index, self.at, computed)

    def at(self, leaf: int | str) -> Any:
        found: Any = self.scope[leaf] if leaf.__class__ is str else leaf
        return found.numbers if found.__class__ is Rounds else found

    def spaced(self, leaf: int | str) -> Spaced | None:
        """A number or a variable as start + step · round along each axis."""
        found = self.scope[leaf] if leaf.__class__ is str else leaf
        if isinstance(found, np.ndarray):
            return None
        if found.__class__ is not Rounds:
            return int(found), 0, 0
        return found.start, 1 - found.axis, found.axis

    def is_known(self, index: Index) -> bool:
        """Whether a position depends only on variables in scope."""
        return fold(index, lambda leaf: leaf.__class__ is int or leaf in self.scope, lambda _, a, b: a and b)

    def place(self, buffer: str, index: Index) -> Any:
        """The positions of an index in a buffer: evenly spaced, or as an array."""
        rows = self.rows
        apart = self.scratch.get(buffer, 0) if rows else 0
        spaced = fold(index, self.spaced, _spaced)
        if spaced is None or spaced[1] < 0 or spaced[2] < 0:
            position = self.number(index)
            return position + np.arange(rows.length)[:, None] * apart if rows and apart else position
        return spaced[0], spaced[1] + apart, spaced[2]

    def view(self, buffer: str, place: Spaced) -> Any:
        """A view of a buffer at these positions, of size 1 along an axis where they do not change."""
        memory, (start, *steps) = self.buffers[buffer], place
        size = memory.itemsize
        sizes = [n if step else 1 for n, step in zip(self.shape, steps)]
        strides = [step * size if n > 1 else 0 for n, step in zip(sizes, steps)]
        return np.ndarray(sizes, memory.dtype, memory, start * size, strides)

    # Memory -----------------------------------------------------------------------------------------------------------

    def store(self, store: Store) -> None:
        place, value = self.place(store.buffer, store.index), self.operand(store.value)
        if not isinstance(place, tuple):
            self.buffers[store.buffer][place] = value
            return
        target = self.view(store.buffer, place)
        if np.ndim(value) == 2 and value.shape != target.shape:  # where several rounds write, the last one stays
            value = value[tuple([slice(-1, None) if n == 1 else slice(None) for n in target.shape])]
        target[...] = value

    def accumulate(self, update: Accumulate) -> None:
        """Accumulate values in memory; several rounds may have the same place."""
        reducer, memory = REDUCERS[update.op], self.buffers[update.buffer]
        value = np.broadcast_to(np.asarray(self.operand(update.value), memory.dtype), self.shape)
        place = self.place(update.buffer, update.index)
        if isinstance(place, tuple) and _apart(place, self.shape):
            same = tuple(axis for axis in (0, 1) if not place[1 + axis])
            target = self.view(update.buffer, place)
            target[...] = reducer(target, reducer.reduce(value, axis=same, keepdims=True, dtype=memory.dtype))
            return
        if isinstance(place, tuple):
            place = self.number(update.index)
        places = np.broadcast_to(place, self.shape)
        reducer.at(memory, places.reshape(-1), value.reshape(-1))  # with one dimension it is many times as fast


def _spaced(op: str, left: Spaced | None, right: Spaced | None) -> Spaced | None:
    """An operation on two evenly spaced positions; None if the result is not evenly spaced."""
    if left is None or right is None:
        return None
    (start, row, column), (other, other_row, other_column) = left, right
    if op == "+":
        return start + other, row + other_row, column + other_column
    if op == "*" and not (other_row or other_column):
        return start * other, row * other, column * other
    if not (row or column or other_row or other_column):
        return int(computed(op, start, other)), 0, 0
    return None


def _apart(place: Spaced, shape: tuple[int, int]) -> bool:
    """Whether rounds have different places, except along axes where the place does not change."""
    _, rows, columns = place
    return not rows or not columns or rows >= columns * shape[1] or columns >= rows * shape[0]


# Bodies ---------------------------------------------------------------------------------------------------------------


def _loops(body: list[Statement]) -> list[For]:
    return [s for s in statements(body) if isinstance(s, For)]
