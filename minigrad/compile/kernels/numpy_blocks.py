"""Kernels run by NumPy, where there is no native code: an innermost loop is one operation on arrays for each statement.

The arrays are parts of the loop's range that stay in a core's cache, which makes this several times faster than whole
arrays one after the other, and several times slower than machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...devices.special import erf
from .ir import Accumulate, For, Index, Kernel, Let, Statement, Store

BLOCK = 1 << 14  # rounds of an innermost loop that are computed at a time

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

Runner = Callable[[list[Any], int, int], None]


def compile_blocks(kernel: Kernel) -> Runner:
    """A function of the arrays of all parameters, in one dimension, and the range of units to run."""

    def run(arrays: list[Any], low: int, high: int) -> None:
        buffers = {p.name: array for p, array in zip(kernel.parameters, arrays)}
        with np.errstate(all="ignore"):
            _Run(buffers).block(kernel.body, {"lo": low, "hi": high})

    return run


class _Run:
    """One run: the buffers; the values so far are in a scope, which is that of a loop within its loop."""

    def __init__(self, buffers: dict[str, Any]) -> None:
        self.buffers = buffers
        self.rounds = 1  # of the innermost loop, which are computed together

    def block(self, body: list[Statement], scope: dict[str, Any]) -> None:
        for statement in body:
            if isinstance(statement, Let):
                scope[statement.name] = self.value(statement, scope)
            elif isinstance(statement, Store):
                self.buffers[statement.buffer][_place(statement.index, scope)] = _operand(statement.value, scope)
            elif isinstance(statement, Accumulate):
                self.accumulate(statement, scope)
            elif isinstance(statement, For):
                self.loop(statement, scope)

    def loop(self, loop: For, scope: dict[str, Any]) -> None:
        low, high = int(_index(loop.low, scope)), int(_index(loop.high, scope))
        innermost = not any(isinstance(s, For) for s in loop.body)
        step = BLOCK if innermost else 1
        totals: dict[str, Any] = {}
        for start in range(low, high, step):
            inner = dict(scope)
            if innermost:
                stop = min(start + step, high)
                inner[loop.variable], self.rounds = np.arange(start, stop), stop - start
            else:
                inner[loop.variable] = start
            self.block(loop.body, inner)
            for a in loop.accumulators:
                part = _reduced(a.op, _operand(a.value, inner), a.dtype, self.rounds if innermost else 1)
                totals[a.name] = part if a.name not in totals else REDUCERS[a.op](totals[a.name], part)
            self.rounds = 1
        scope |= {a.name: totals[a.name] for a in loop.accumulators}

    def value(self, let: Let, scope: dict[str, Any]) -> Any:
        if let.op == "load":
            return self.buffers[let.args[0]][_place(let.args[1], scope)]
        if let.op == "index":
            return np.asarray(_index(let.args[0], scope)).astype(let.dtype)
        given = [_operand(arg, scope) for arg in let.args]
        if let.op == "cast":
            return np.asarray(given[0]).astype(let.dtype)
        if let.op == "bitcast":
            return np.asarray(given[0]).view(let.dtype)
        if let.op == "select":
            condition, x, y = given
            return np.where(condition, np.asarray(x, let.dtype), np.asarray(y, let.dtype))
        dtype = next((g.dtype for g in given if hasattr(g, "dtype")), let.dtype)
        result = UFUNCS[let.op](*[g if hasattr(g, "dtype") else np.asarray(g, dtype) for g in given])
        return result if result.dtype == let.dtype else result.astype(let.dtype)

    def accumulate(self, statement: Accumulate, scope: dict[str, Any]) -> None:
        """Take values into memory; where several rounds share a place, each is taken in."""
        buffer, place = self.buffers[statement.buffer], _place(statement.index, scope)
        value, reducer = _operand(statement.value, scope), REDUCERS[statement.op]
        if isinstance(place, slice):
            reducer(buffer[place], value, out=buffer[place], casting="unsafe")
        elif np.ndim(place):
            reducer.at(buffer, place, value)
        else:
            buffer[place] = reducer(buffer[place], _reduced(statement.op, value, buffer.dtype, self.rounds))


def _reduced(op: str, value: Any, dtype: Any, rounds: int) -> Any:
    """What so many rounds of a loop come to; a value that is the same in all of them counts as often."""
    values = np.broadcast_to(np.asarray(value, dtype), (rounds,)) if not np.ndim(value) else value
    return REDUCERS[op].reduce(values, axis=None, dtype=dtype)


def _operand(value: Any, scope: dict[str, Any]) -> Any:
    return scope[value] if isinstance(value, str) else value


def _index(index: Index, scope: dict[str, Any]) -> Any:
    if isinstance(index, int):
        return index
    if isinstance(index, str):
        return scope[index]
    return INDEXING[index[0]](_index(index[1], scope), _index(index[2], scope))


def _place(index: Index, scope: dict[str, Any]) -> Any:
    """Where in a buffer: a number, positions, or a slice if they follow one another."""
    found = _index(index, scope)
    linear = isinstance(index, str) or not any(op in str(index) for op in ("//", "%", "min"))
    if linear and np.ndim(found) and len(found) and found[-1] - found[0] == len(found) - 1:
        return slice(int(found[0]), int(found[-1]) + 1)
    return found
