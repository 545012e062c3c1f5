"""The loop language, executed statement by statement: the reference for the printers.

An innermost loop runs as one operation on arrays: its variable is an array of all its values.  Other loops run in
Python.  Callers fill new buffers with nonsense, so that a read before a write gives a wrong result.
"""

import math

import numpy as np

from minigrad.compile.loops.index import computed, fold
from minigrad.compile.loops.ir import For, Walk
from minigrad.compile.loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes

ROUNDS = "the rounds of the innermost loop"
EXACT = {"erf": np.vectorize(math.erf, otypes=[np.float64])}  # the table has an approximation


def run_kernel(kernel, arrays, low, high):
    """Run units `low` to `high` of a kernel; `arrays` holds a one-dimensional array for each parameter."""
    buffers = {p.name: array for p, array in zip(kernel.parameters, arrays, strict=True)}
    for parameter in kernel.parameters:
        assert buffers[parameter.name].dtype == parameter.dtype and buffers[parameter.name].ndim == 1
        assert buffers[parameter.name].size >= parameter.size
    with np.errstate(all="ignore"):
        Interpreter(buffers, {"lo": low, "hi": high}).block(kernel.body)


def function_of(op):
    """An operation on arrays of the dtypes that it is given."""
    return EXACT.get(op) or OPERATIONS[op].numpy


def reducer(op):
    """The operation that adds one more value to a reduction."""
    return OPERATIONS[REDUCTIONS[op]].numpy


class Interpreter(Walk):
    """Runs statements; the scope has the values of all names."""

    def __init__(self, buffers, scope):
        self.buffers, self.scope = buffers, scope

    def let(self, let):
        self.scope[let.name] = np.asarray(self.value(let)).astype(let.dtype)

    def store(self, store):
        self.buffers[store.buffer][self.inside(store)] = self.operand(store.value)

    def accumulate(self, update):
        rounds = self.scope.get(ROUNDS, 0)  # each round adds a value, even if all values are equal
        index, value, _ = np.broadcast_arrays(self.inside(update), self.operand(update.value), rounds)
        reducer(update.op).at(self.buffers[update.buffer], index, value)

    def running(self, running):
        value = np.broadcast_to(np.asarray(self.operand(running.value), running.dtype), np.shape(self.scope[ROUNDS]))
        self.scope[running.name] = reducer(running.op).accumulate(value, dtype=running.dtype)

    def loop(self, loop):
        low, high = self.index(loop.low), self.index(loop.high)
        totals = {a.name: None for a in loop.accumulators}
        if high <= low:
            assert not totals, "an accumulator of a loop without rounds"
            return
        outside = self.scope
        innermost = not any(isinstance(s, For) for s in loop.body)
        for rounds in [np.arange(low, high)] if innermost else range(low, high):
            self.scope = outside | {loop.variable: rounds, ROUNDS: rounds}
            self.block(loop.body)
            for a in loop.accumulators:
                value = np.broadcast_to(np.asarray(self.operand(a.value), a.dtype), np.shape(rounds))
                total = reducer(a.op).reduce(value.astype(np.float64) if a.dtype.kind == "f" else value, axis=None)
                totals[a.name] = total if totals[a.name] is None else reducer(a.op)(totals[a.name], total)
        self.scope = outside | {a.name: np.asarray(totals[a.name]).astype(a.dtype) for a in loop.accumulators}

    def value(self, let):
        if let.op == "load":
            return self.buffers[let.args[0]][self.index(let.args[1])]
        if let.op == "index":
            return self.index(let.args[0])
        dtypes = operand_dtypes(let, lambda name: self.scope[name].dtype)
        args = [np.asarray(self.operand(arg), dtype) for arg, dtype in zip(let.args, dtypes)]
        assert all(self.scope[a].dtype == d for a, d in zip(let.args, dtypes) if isinstance(a, str)), let
        if let.op == "cast":
            saturates = args[0].dtype.kind == "f" and let.dtype.kind in "iu"
            return np.vectorize(nearest_integer, otypes=[let.dtype])(args[0], let.dtype) if saturates else args[0]
        if let.op == "bitcast":
            return args[0].view(let.dtype)
        return function_of(let.op)(*args)

    def operand(self, value):
        return self.scope[value] if isinstance(value, str) else value

    def inside(self, statement):
        index = self.index(statement.index)
        assert np.min(index) >= 0 and np.max(index) < self.buffers[statement.buffer].size
        return index

    def index(self, index):
        return fold(index, lambda leaf: self.scope[leaf] if isinstance(leaf, str) else leaf, computed)


def nearest_integer(value, dtype):
    """The float without its fraction, clipped to the range of the dtype; 0 for nan."""
    limits = np.iinfo(dtype)
    if math.isinf(value) or math.isnan(value):
        return 0 if math.isnan(value) else limits.max if value > 0 else limits.min
    return min(max(int(value), limits.min), limits.max)
