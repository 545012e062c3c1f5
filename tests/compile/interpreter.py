"""The loop language, executed statement by statement at any stage: the reference for printers and transforms.

An innermost loop whose rounds do not need each other runs as one operation on arrays: its variable is an array of all
its values.  All other loops run round by round.  Every load and store is checked against the ends of its buffer.
Callers fill new buffers with nonsense, so that a read before a write gives a wrong result.
"""

import math

import numpy as np

from minigrad.compile.loops.index import computed, fold, leaves
from minigrad.compile.loops.ir import LONG, Accumulate, Lanes, Let, Store, Walk
from minigrad.compile.loops.operations import OPERATIONS, REDUCTIONS, identity, operand_dtypes

EXACT = {"erf": np.vectorize(math.erf, otypes=[np.float64])}  # the table has an approximation
LEGAL = {  # operations of legal kernels, which the table has no function of arrays for
    "quotient": lambda x, y: x // y + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype),
    "remainder": np.fmod,
    "fma": lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(x.dtype),
}


def run_kernel(kernel, arrays, low, high):
    """Run units `low` to `high` of a kernel; `arrays` holds a one-dimensional array for each parameter."""
    for parameter, array in zip(kernel.parameters, arrays, strict=True):
        same = array.dtype == parameter.dtype or array.dtype.kind == "b"  # plain kernels read bools as bytes
        assert same and array.ndim == 1
    with np.errstate(all="ignore"):
        Interpreter(kernel, arrays, low, high).block(kernel.body)


def reducer(op):
    """The operation that adds one more value to a reduction."""
    return OPERATIONS[REDUCTIONS[op]].numpy


class Interpreter(Walk):
    """Runs statements; the scope has the values of all names."""

    def __init__(self, kernel, arrays, low, high):
        self.scope = {"lo": low, "hi": high}
        self.memory = {p.name: (array, 0) for p, array in zip(kernel.parameters, arrays)}  # an array, and a start
        self.types = {p.name: p.dtype for p in kernel.parameters}
        self.rounds = ()  # the shape of all rounds of the innermost loop

    def number(self, index):
        return fold(index, lambda leaf: self.scope[leaf] if isinstance(leaf, str) else leaf, computed)

    def value(self, operand, dtype):
        if isinstance(operand, str):
            return self.scope[operand]
        return np.array(operand, dtype) if isinstance(operand, tuple) else dtype.type(operand)

    def elements(self, buffer, index, lanes):
        """An array, and the part of it that a statement reads or writes."""
        array, start = self.memory[buffer]
        first = start + self.number(index)
        assert np.min(first) >= 0 and np.max(first) <= array.size - lanes, f"{buffer}[{index}]: {first} of {array.size}"
        return array, first if lanes == 1 else slice(first, first + lanes)

    def let(self, let):
        self.types[let.name] = let.dtype
        if let.op == "address":
            array, start = self.memory[let.args[0]]
            self.memory[let.name] = (array, start + self.number(let.args[1]))
        else:
            self.scope[let.name] = value = self.result(let)
            assert np.shape(value) == (let.lanes,) or let.lanes == 1, (let, np.shape(value))

    def result(self, let):
        op, args, dtype = let.op, let.args, let.dtype
        if op == "load":
            array, where = self.elements(*args, let.lanes)
            return array[where].copy()
        if op == "index":
            first, *offsets = args
            return cast(np.asarray(self.number(first) + np.array(offsets or 0), np.int64), dtype)
        if op.startswith("index "):
            return computed(op.removeprefix("index "), *[self.number(arg) for arg in args])
        if op.startswith("across_"):
            return reducer(op.removeprefix("across_")).reduce(self.scope[args[0]])
        if op.startswith("step_"):
            return reducer(op.removeprefix("step_"))(*[self.value(arg, dtype) for arg in args])
        if op in MOVES:
            return MOVES[op](let, *[self.value(arg, dtype) if isinstance(arg, str) else arg for arg in args])
        kinds = operand_dtypes(let, lambda name: self.types.get(name, LONG))  # positions have no entry
        given = [np.asarray(self.value(arg, kind)) for arg, kind in zip(args, kinds)]
        if op in ("cast", "whole"):
            return cast(given[0], dtype)
        if op == "bitcast":
            return given[0].view(dtype)[()]
        function = EXACT.get(op) or LEGAL.get(op) or OPERATIONS[op].numpy
        return np.asarray(function(*given)).astype(dtype)[()]

    def store(self, store):
        array, where = self.elements(store.buffer, store.index, store.lanes)
        value = self.value(store.value, self.types[store.buffer])
        if store.lanes == 1:
            where, value = np.broadcast_arrays(where, value)
        array[where] = value

    def accumulate(self, update):
        array, where = self.elements(update.buffer, update.index, update.lanes)
        value = self.value(update.value, array.dtype)
        if update.lanes > 1:
            array[where] = reducer(update.op)(array[where], value)
            return
        where, value, _ = np.broadcast_arrays(where, value, np.empty(self.rounds))  # each round adds a value
        reducer(update.op).at(array, where, value)

    def running(self, running):
        self.types[running.name] = running.dtype
        total = reducer(running.op)(self.scope[running.name], self.value(running.value, running.dtype))
        self.scope[running.name] = self.scope[f"{running.name}.so_far"] = total

    def loop(self, loop):
        low, high, outside = self.number(loop.low), self.number(loop.high), self.rounds
        totals = {a.name: self.first(a) for a in loop.accumulators}
        self.scope |= {name: self.first(t) for t in loop.totals for name in (t.name, f"{t.name}.so_far")}
        at_once = are_independent(loop) and high > low
        for place in [np.arange(low, high)] if at_once else range(low, high - loop.stride + 1, loop.stride):
            self.rounds = np.shape(place)
            self.scope[loop.variable] = place
            self.block(loop.body)
            for a in loop.accumulators:
                value = self.value(a.value, a.dtype)
                if at_once:
                    wide = np.broadcast_to(value, self.rounds)
                    value = reducer(a.op).reduce(wide.astype(np.float64) if a.dtype.kind == "f" else wide)
                totals[a.name] = np.asarray(reducer(a.op)(totals[a.name], value)).astype(a.dtype)[()]
        self.rounds = outside
        end = low + max(0, (high - low) // loop.stride) * loop.stride
        self.scope |= totals | {f"{loop.variable}.end": end}
        self.types |= {a.name: a.dtype for a in (*loop.accumulators, *loop.totals)}

    def first(self, a):
        """What an accumulator or a running total starts with."""
        start = self.value(identity(a.op, a.dtype) if a.start is None else a.start, a.dtype)
        return start if a.lanes == 1 else np.full(a.lanes, start, a.dtype)


def are_independent(loop):
    """Whether no round of an innermost loop reads what another one writes."""
    if loop.stride > 1 or not all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body):
        return False
    if isinstance(loop, Lanes) or any(s.lanes > 1 for s in (*loop.body, *loop.accumulators)):
        return False
    loads = [(s.args[0], s.args[1]) for s in loop.body if isinstance(s, Let) and s.op == "load"]
    stores = {s.buffer: s for s in loop.body if not isinstance(s, Let)}
    addresses = {s.name for s in loop.body if isinstance(s, Let) and s.op == "address"}
    if addresses or any(isinstance(stores[buffer], Accumulate) for buffer, _ in loads if buffer in stores):
        return False
    return all(stores[buffer].index == index and loop.variable in leaves(index)
               for buffer, index in loads if buffer in stores)


def cast(values, dtype):
    """Values as another dtype; a float becomes the nearest integer in range."""
    if values.dtype.kind == "f" and dtype.kind in "iu":
        return np.vectorize(nearest_integer, otypes=[dtype])(values, dtype)[()]
    return values.astype(dtype)[()]


def nearest_integer(value, dtype):
    """The float without its fraction, clipped to the range of the dtype; 0 for nan."""
    limits = np.iinfo(dtype)
    if math.isinf(value) or math.isnan(value):
        return 0 if math.isnan(value) else limits.max if value > 0 else limits.min
    return min(max(int(value), limits.min), limits.max)


MOVES = {  # operations that move numbers between lanes
    "spread": lambda let, x, *_: np.full(let.lanes, x, let.dtype),
    "pack": lambda let, *parts: np.array(parts, let.dtype),
    "every": lambda let, vector, step, length: vector[::step],
    "weave": lambda let, *vectors: np.stack(vectors, axis=1).reshape(-1),
    "lane": lambda let, vector, lane, lanes: vector[lane],
    "same": lambda let, x: x,
}
