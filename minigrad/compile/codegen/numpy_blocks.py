"""Kernels run by NumPy, where there is no native code: several times slower than that, and faster than array by array.

A loop is run for many values of its variable at once, as one operation on arrays for each statement; the arrays are as
long as the caches are large.  An innermost loop goes along their second axis, the loop around it along the first, if
its rounds are independent of each other; what is loaded is no copy but a view of memory wherever the positions are
evenly spaced.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...devices.special import cast, erf
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Let, Prefetch, Statement, Store, statements
from ..loops.scalar import identity

BLOCK = 1 << 16  # elements that are computed at a time

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.absolute,
    "max": np.maximum, "min": np.minimum, "pow": np.power, "floordiv": np.floor_divide, "mod": np.remainder,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "erf": erf, "atan2": np.arctan2, "floor": np.floor, "rint": np.rint, "lt": np.less,
    "le": np.less_equal, "eq": np.equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "invert": np.invert, "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
REDUCERS: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
INDEXING: dict[str, Any] = {
    "+": np.add, "*": np.multiply, "//": np.floor_divide, "%": np.remainder, "min": np.minimum
}  # fmt: skip


class Rounds(NamedTuple):
    """The values of a loop's variable that are computed at once, along an axis."""

    axis: int
    start: int
    length: int

    @property
    def numbers(self) -> Any:
        values = np.arange(self.start, self.start + self.length)
        return values[:, None] if self.axis == 0 else values[None, :]


class Spaced(NamedTuple):
    """Positions that are evenly spaced along both axes."""

    start: int
    steps: tuple[int, int]


def compile_blocks(kernel: Kernel) -> Callable[[list[Any], int, int], None]:
    """A function of the arrays of all parameters, in one dimension, and the range of units to run."""
    dying = {id(kernel.body): _last_uses(kernel.body, [])}
    for loop in _loops(kernel.body):
        dying[id(loop.body)] = _last_uses(loop.body, loop.accumulators)

    def run(arrays: list[Any], low: int, high: int) -> None:
        with np.errstate(all="ignore"):
            _Run(kernel, arrays, dying).block(kernel.body, {"lo": low, "hi": high}, (1, 1))

    return run


class _Run:
    """One run.

    A scope holds the variables and the values, which are arrays of two dimensions, of size 1 where they are the same
    for all rounds; `shape` says how many rounds there are.
    """

    def __init__(self, kernel: Kernel, arrays: list[Any], dying: dict[int, list[list[str]]]) -> None:
        self.buffers = {p.name: array for p, array in zip(kernel.parameters, arrays)}
        self.scratch = {p.name: p.size for p in kernel.parameters if p.role == "scratch"}
        written = {s.buffer for s in statements(kernel.body) if isinstance(s, (Store, Accumulate))}
        self.changing = written - {*self.scratch}  # what is loaded from there has to be copied
        self.dying = dying
        self.rows: Rounds | None = None  # the rounds along the first axis

    def block(self, body: list[Statement], scope: dict[str, Any], shape: tuple[int, int]) -> None:
        for statement, done in zip(body, self.dying[id(body)]):
            if isinstance(statement, Let):
                scope[statement.name] = self.value(statement, scope, shape)
            elif isinstance(statement, Store):
                self.store(statement, scope, shape)
            elif isinstance(statement, Accumulate):
                self.accumulate(statement, scope, shape)
            elif isinstance(statement, For) and not _only_prefetches(statement):
                self.loop(statement, scope, shape)
            for name in done:  # its memory is in the cache: better that the next value takes it
                scope.pop(name, None)

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For, scope: dict[str, Any], shape: tuple[int, int]) -> None:
        """Run a loop along an axis that is free, in blocks; round by round if there is none."""
        low, high = self.bounds(loop, scope)
        totals: dict[str, Any] = {}
        axis = self.free_axis(loop, scope)
        step = 1 if axis is None else self.block_length(loop, scope, shape, axis)
        for start in range(low, high, step):
            count = min(step, high - start)
            rounds = start if axis is None else Rounds(axis, start, count)
            inside = shape if axis is None else ((count, shape[1]) if axis == 0 else (shape[0], count))
            inner = scope | {loop.variable: rounds}
            if isinstance(rounds, Rounds) and axis == 0:
                self.spread_scratch(count)
                self.rows = rounds
            self.block(loop.body, inner, inside)
            for a in loop.accumulators:
                part = _reduced(a, inner, inside, axis)
                totals[a.name] = part if a.name not in totals else REDUCERS[a.op](totals[a.name], part)
        if axis == 0:
            self.rows = None
        if high <= low:  # without rounds, an accumulator is what it began with
            totals = {a.name: np.full((1, 1), identity(a.op, a.dtype), a.dtype) for a in loop.accumulators}
        scope |= totals

    def bounds(self, loop: For, scope: dict[str, Any]) -> tuple[int, int]:
        return int(_number(loop.low, scope)), int(_number(loop.high, scope))

    def free_axis(self, loop: For, scope: dict[str, Any]) -> int | None:
        taken = {v.axis for v in scope.values() if isinstance(v, Rounds)}
        if not any(isinstance(s, For) for s in loop.body):
            return None if 1 in taken else 1
        bounds = [index for inner in _loops(loop.body) for index in (inner.low, inner.high)]
        return 0 if not taken and all(_is_known(index, scope) for index in bounds) else None

    def block_length(self, loop: For, scope: dict[str, Any], shape: tuple[int, int], axis: int) -> int:
        if axis == 1:
            return max(1, BLOCK // shape[0])
        lengths = [self.bounds(inner, scope) for inner in _loops(loop.body)]
        return max(1, BLOCK // max(1, *(high - low for low, high in lengths)))

    def spread_scratch(self, rows: int) -> None:
        """Give each row that is computed at the same time scratch memory of its own."""
        for name, size in self.scratch.items():
            if self.buffers[name].size < rows * size:
                self.buffers[name] = np.empty(rows * size, self.buffers[name].dtype)

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, let: Let, scope: dict[str, Any], shape: tuple[int, int]) -> Any:
        op, dtype = let.op, let.dtype
        if op == "load":
            buffer, index = let.args
            place = self.place(buffer, index, scope)
            if not isinstance(place, Spaced):
                return self.buffers[buffer][place]
            loaded = self.view(buffer, place, shape)
            return loaded.copy() if buffer in self.changing else loaded
        if op == "index":
            return np.asarray(_number(let.args[0], scope)).astype(dtype)
        given = [scope[a] if isinstance(a, str) else a for a in let.args]
        if op == "cast":
            return cast(np, np.asarray(given[0]), dtype)
        if op == "bitcast":
            return given[0].view(dtype)
        if op == "select":
            return np.where(given[0], *(a if isinstance(a, np.ndarray) else np.asarray(a, dtype) for a in given[1:]))
        kind = next((a.dtype for a in given if isinstance(a, np.ndarray)), dtype)
        if op in ("floor", "rint") and kind.kind != "f":
            return given[0]
        result = UFUNCS[op](*[a if isinstance(a, np.ndarray) else np.asarray(a, kind) for a in given])
        return np.asarray(result)  # of arrays without dimensions NumPy makes a scalar

    def place(self, buffer: str, index: Index, scope: dict[str, Any]) -> Any:
        """Where in a buffer: evenly spaced positions, or an array of them."""
        rows = self.rows
        apart = self.scratch.get(buffer, 0) if rows else 0
        spaced = _spaced(index, scope)
        if spaced is None or min(spaced.steps) < 0:
            position = _number(index, scope)
            return position + np.arange(rows.length)[:, None] * apart if rows and apart else position
        return Spaced(spaced.start, (spaced.steps[0] + apart, spaced.steps[1]))

    def view(self, buffer: str, place: Spaced, shape: tuple[int, int]) -> Any:
        """These positions of a buffer, as an array; of size 1 along an axis on which they stay the same."""
        memory = self.buffers[buffer]
        size = memory.itemsize
        sizes = [n if step else 1 for n, step in zip(shape, place.steps)]
        strides = [step * size if n > 1 else 0 for n, step in zip(sizes, place.steps)]
        return np.ndarray(sizes, memory.dtype, memory, place.start * size, strides)

    # Memory -----------------------------------------------------------------------------------------------------------

    def store(self, statement: Store, scope: dict[str, Any], shape: tuple[int, int]) -> None:
        place = self.place(statement.buffer, statement.index, scope)
        value: Any = scope[statement.value] if isinstance(statement.value, str) else statement.value
        if isinstance(place, Spaced):
            target = self.view(statement.buffer, place, shape)
            if np.ndim(value) == 2 and value.shape != target.shape:  # of several rounds the last one stays
                value = value[tuple([slice(-1, None) if n == 1 else slice(None) for n in target.shape])]
            target[...] = value
        else:
            self.buffers[statement.buffer][place] = value

    def accumulate(self, statement: Accumulate, scope: dict[str, Any], shape: tuple[int, int]) -> None:
        """Take values into memory; where several rounds have the same place, each of them is taken in."""
        reducer, memory = REDUCERS[statement.op], self.buffers[statement.buffer]
        value = scope[statement.value] if isinstance(statement.value, str) else statement.value
        value = np.broadcast_to(np.asarray(value, memory.dtype), shape)
        place = self.place(statement.buffer, statement.index, scope)
        if isinstance(place, Spaced) and _apart(place.steps, shape):
            same = tuple(axis for axis in (0, 1) if not place.steps[axis])
            target = self.view(statement.buffer, place, shape)
            target[...] = reducer(target, reducer.reduce(value, axis=same, keepdims=True, dtype=memory.dtype))
            return
        if isinstance(place, Spaced):
            place = _number(statement.index, scope)
        reducer.at(memory, np.broadcast_to(place, shape), value)


def _reduced(accumulator: Accumulator, scope: dict[str, Any], shape: tuple[int, int], axis: int | None) -> Any:
    """What the rounds of a block come to."""
    dtype, operand = accumulator.dtype, accumulator.value
    value: Any = np.atleast_2d(np.asarray(scope[operand] if isinstance(operand, str) else operand, dtype))
    if axis is None:
        return value
    whole = (shape[0], value.shape[1]) if axis == 0 else (value.shape[0], shape[1])
    reduce = REDUCERS[accumulator.op].reduce
    return reduce(np.broadcast_to(value, whole), axis=axis, keepdims=True, dtype=dtype)


# Positions ------------------------------------------------------------------------------------------------------------


def _number(index: Index, scope: dict[str, Any]) -> Any:
    """A position: a number, or an array if it depends on rounds that are computed at once."""
    if isinstance(index, int):
        return index
    if isinstance(index, str):
        found = scope[index]
        return found.numbers if isinstance(found, Rounds) else found
    return INDEXING[index[0]](_number(index[1], scope), _number(index[2], scope))


def _spaced(index: Index, scope: dict[str, Any]) -> Spaced | None:
    """A position as start + step · round along each axis; None if it is something else."""
    if isinstance(index, int):
        return Spaced(index, (0, 0))
    if isinstance(index, str):
        found = scope[index]
        if not isinstance(found, Rounds):
            return Spaced(int(found), (0, 0))
        return Spaced(found.start, (1, 0) if found.axis == 0 else (0, 1))
    op, left, right = index
    a, b = _spaced(left, scope), _spaced(right, scope)
    if a is None or b is None:
        return None
    if op == "+":
        return Spaced(a.start + b.start, (a.steps[0] + b.steps[0], a.steps[1] + b.steps[1]))
    if op == "*" and not any(b.steps):
        return Spaced(a.start * b.start, (a.steps[0] * b.start, a.steps[1] * b.start))
    if not any((*a.steps, *b.steps)):
        return Spaced(int(INDEXING[op](a.start, b.start)), (0, 0))
    return None


def _apart(steps: tuple[int, int], shape: tuple[int, int]) -> bool:
    """Whether rounds have different places, but for axes along which the place stays the same."""
    rows, columns = steps
    return 0 in steps or rows >= columns * shape[1] or columns >= rows * shape[0]


# Bodies ---------------------------------------------------------------------------------------------------------------


def _loops(body: list[Statement]) -> list[For]:
    """All loops of a body."""
    return [s for s in statements(body) if isinstance(s, For)]


def _only_prefetches(loop: For) -> bool:
    return not loop.accumulators and all(isinstance(s, Prefetch) for s in loop.body)


def _is_known(index: Index, known: Container[str]) -> bool:
    """Whether a position depends on nothing but these variables."""
    if isinstance(index, tuple):
        return _is_known(index[1], known) and _is_known(index[2], known)
    return isinstance(index, int) or index in known


def _last_uses(body: list[Statement], accumulators: list[Accumulator]) -> list[list[str]]:
    """For each statement, which values of this body nobody reads after it."""
    own = {s.name for s in body if isinstance(s, Let)} - {a.value for a in accumulators}
    ends: list[list[str]] = []
    for statement in reversed(body):
        used = {name for name in _read(statement) if name in own}
        ends.append(sorted(used))
        own -= used
    return ends[::-1]


def _read(statement: Statement) -> Iterator[str]:
    """The names that a statement reads; variables may be among them."""
    if isinstance(statement, For):
        for inner in statement.body:
            yield from _read(inner)
        yield from (a.value for a in statement.accumulators if isinstance(a.value, str))
    elif isinstance(statement, Let):
        yield from (a for a in statement.args if isinstance(a, str))
    elif not isinstance(statement, Prefetch) and isinstance(statement.value, str):
        yield statement.value
