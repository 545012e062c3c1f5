"""Runs a kernel statement by statement, at any stage: the oracle that transforms are tested against.

Every load and store is checked against the ends of its buffer.
"""

import numpy as np

from minigrad.compile.loops.index import computed, fold
from minigrad.compile.loops.ir import LONG, Walk
from minigrad.compile.loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes
from minigrad.compile.loops.scalar import identity
from minigrad.devices.special import cast

LEGAL = {  # operations of legal kernels, which the table has no function of arrays for
    "quotient": lambda x, y: x // y + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype),
    "remainder": np.fmod,
    "fma": lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(x.dtype),
}


def interpret(kernel, arrays, low, high):
    """Run a kernel on the arrays of all parameters, for a range of units."""
    with np.errstate(all="ignore"):
        _Run(kernel, arrays, low, high).block(kernel.body)


class _Run(Walk):
    def __init__(self, kernel, arrays, low, high):
        self.scope = {"lo": low, "hi": high}
        self.memory = {p.name: (array, 0) for p, array in zip(kernel.parameters, arrays)}  # an array, and a start
        self.types = {p.name: p.dtype for p in kernel.parameters}

    def number(self, index):
        return int(fold(index, lambda leaf: self.scope[leaf] if isinstance(leaf, str) else leaf, computed))

    def value(self, operand, dtype):
        if isinstance(operand, str):
            return self.scope[operand]
        return np.array(operand, dtype) if isinstance(operand, tuple) else dtype.type(operand)

    def elements(self, buffer, index, lanes):
        """An array, and the part of it that a statement reads or writes."""
        array, start = self.memory[buffer]
        first = start + self.number(index)
        assert 0 <= first <= array.size - lanes, f"{buffer}[{index}] is {first} of {array.size}"
        return array, first if lanes == 1 else slice(first, first + lanes)

    def let(self, let):
        self.types[let.name] = let.dtype
        if let.op == "address":
            array, start = self.memory[let.args[0]]
            self.memory[let.name] = (array, start + self.number(let.args[1]))
            return
        self.scope[let.name] = value = self.result(let)
        assert np.size(value) == let.lanes, (let, np.shape(value))

    def result(self, let):
        op, args, dtype = let.op, let.args, let.dtype
        if op == "load":
            array, where = self.elements(*args, let.lanes)
            return array[where].copy()
        if op == "index":
            first, *offsets = args
            return cast(np, np.asarray(self.number(first) + np.array(offsets or 0), np.int64), dtype)[()]
        if op.startswith("index "):
            return int(computed(op.removeprefix("index "), *[self.number(arg) for arg in args]))
        if op.startswith("across_"):
            return OPERATIONS[REDUCTIONS[op.removeprefix("across_")]].numpy.reduce(self.scope[args[0]])
        if op.startswith("step_"):
            return self.reduced(op.removeprefix("step_"), *[self.value(arg, dtype) for arg in args])
        if op in MOVES:
            return MOVES[op](let, *[self.value(arg, dtype) if isinstance(arg, str) else arg for arg in args])
        kinds = operand_dtypes(let, lambda name: self.types.get(name, LONG))  # positions have no entry
        given = [self.value(arg, kind) for arg, kind in zip(args, kinds)]
        if op in ("cast", "whole"):
            return cast(np, np.asarray(given[0]), dtype)[()]
        if op == "bitcast":
            return np.asarray(given[0]).view(dtype)[()]
        return np.asarray((LEGAL.get(op) or OPERATIONS[op].numpy)(*given)).astype(dtype)[()]

    def store(self, store):
        array, where = self.elements(store.buffer, store.index, store.lanes)
        array[where] = self.value(store.value, self.types[store.buffer])

    def accumulate(self, update):
        array, where = self.elements(update.buffer, update.index, update.lanes)
        array[where] = self.reduced(update.op, array[where], self.value(update.value, array.dtype))

    def running(self, running):
        self.types[running.name] = running.dtype
        total = self.reduced(running.op, self.scope[running.name], self.value(running.value, running.dtype))
        self.scope[running.name] = self.scope[f"{running.name}.so_far"] = total

    def reduced(self, op, before, value):
        return OPERATIONS[REDUCTIONS[op]].numpy(before, value)

    def loop(self, loop):
        place, high, totals = self.number(loop.low), self.number(loop.high), {}
        for a in (*loop.accumulators, *loop.totals):
            start = self.value(identity(a.op, a.dtype) if a.start is None else a.start, a.dtype)
            totals[a.name] = start if a.lanes == 1 else np.full(a.lanes, start, a.dtype)
        for total in loop.totals:
            self.scope[total.name] = self.scope[f"{total.name}.so_far"] = totals[total.name]
        while place + loop.stride <= high:
            self.scope[loop.variable] = place
            self.block(loop.body)
            for a in loop.accumulators:
                totals[a.name] = self.reduced(a.op, totals[a.name], self.value(a.value, a.dtype))
            place += loop.stride
        self.scope |= {a.name: totals[a.name] for a in loop.accumulators} | {f"{loop.variable}.end": place}
        self.types |= {a.name: a.dtype for a in (*loop.accumulators, *loop.totals)}


MOVES = {  # operations that move numbers between lanes
    "spread": lambda let, x, *_: np.full(let.lanes, x, let.dtype),
    "pack": lambda let, *parts: np.array(parts, let.dtype),
    "every": lambda let, vector, step, length: vector[::step],
    "weave": lambda let, *vectors: np.stack(vectors, axis=1).reshape(-1),
    "lane": lambda let, vector, lane, lanes: vector[lane],
    "same": lambda let, x: x,
}
