"""The loop language, executed statement by statement: what the printers' programs are to compute.

An innermost loop runs as one operation on arrays, its variable being an array of all its values; other loops run in
Python.  Buffers are poisoned by whoever allocates them, so that what is read before it is written shows.
"""

import math

import numpy as np

from minigrad.compile.loops.ir import Accumulate, For, Let, Prefetch, Store

UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.absolute,
    "max": np.maximum, "min": np.minimum, "pow": np.power, "floordiv": np.floor_divide, "mod": np.remainder,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "atan2": np.arctan2, "floor": np.floor, "rint": np.rint, "lt": np.less, "le": np.less_equal,
    "eq": np.equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "invert": np.invert,
    "lshift": np.left_shift, "rshift": np.right_shift, "select": np.where,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}  # fmt: skip
ROUNDS = "the rounds of the innermost loop"
REDUCERS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def run_kernel(kernel, arrays, low, high):
    """Run units `low` to `high` of a kernel; `arrays` are one-dimensional, one for each parameter."""
    buffers = {p.name: array for p, array in zip(kernel.parameters, arrays, strict=True)}
    for parameter in kernel.parameters:
        assert buffers[parameter.name].dtype == parameter.dtype and buffers[parameter.name].ndim == 1
        assert buffers[parameter.name].size >= parameter.size
    with np.errstate(all="ignore"):
        _run(kernel.body, buffers, {"lo": low, "hi": high}, {})


def _run(body, buffers, scope, types):
    for statement in body:
        if isinstance(statement, Let):
            value = _value(statement, buffers, scope, types)
            scope[statement.name] = np.asarray(value).astype(statement.dtype)
            types[statement.name] = statement.dtype
        elif isinstance(statement, Store):
            buffers[statement.buffer][_inside(statement, buffers, scope)] = _operand(statement.value, scope)
        elif isinstance(statement, Accumulate):
            rounds = scope.get(ROUNDS, 0)  # each of which takes a value in, even if all are the same
            index, value, _ = np.broadcast_arrays(
                _inside(statement, buffers, scope), _operand(statement.value, scope), rounds
            )
            REDUCERS[statement.op].at(buffers[statement.buffer], index, value)
        elif isinstance(statement, For):
            _loop(statement, buffers, scope, types)
        else:
            assert isinstance(statement, Prefetch)


def _loop(loop, buffers, scope, types):
    low, high = _index(loop.low, scope), _index(loop.high, scope)
    totals = {a.name: None for a in loop.accumulators}
    if high <= low:
        assert not totals, "an accumulator of a loop without rounds"
        return
    innermost = not any(isinstance(s, For) for s in loop.body)
    for rounds in [np.arange(low, high)] if innermost else range(low, high):
        inner = scope | {loop.variable: rounds, ROUNDS: rounds}
        _run(loop.body, buffers, inner, types)
        for a in loop.accumulators:
            value = np.broadcast_to(np.asarray(_operand(a.value, inner), a.dtype), np.shape(rounds))
            total = REDUCERS[a.op].reduce(value.astype(np.float64) if a.dtype.kind == "f" else value, axis=None)
            totals[a.name] = total if totals[a.name] is None else REDUCERS[a.op](totals[a.name], total)
    for a in loop.accumulators:
        scope[a.name], types[a.name] = np.asarray(totals[a.name]).astype(a.dtype), a.dtype


def _value(let, buffers, scope, types):
    if let.op == "load":
        return buffers[let.args[0]][_index(let.args[1], scope)]
    if let.op == "index":
        return _index(let.args[0], scope)
    args = [_operand(arg, scope) for arg in let.args]
    if let.op == "cast":
        value = np.asarray(args[0])
        saturates = value.dtype.kind == "f" and let.dtype.kind in "iu"
        return np.vectorize(_nearest_integer, otypes=[let.dtype])(value, let.dtype) if saturates else value
    if let.op == "bitcast":
        return np.asarray(args[0]).view(let.dtype)
    given = {types[arg] for arg in let.args[let.op == "select" :] if isinstance(arg, str)}
    dtype = next(iter(given), let.dtype)
    assert given <= {dtype}, f"{let.op} of {given}"
    return UFUNCS[let.op](*args[: let.op == "select"], *[np.asarray(a, dtype) for a in args[let.op == "select" :]])


def _nearest_integer(value, dtype):
    """The float without its fraction, at most the largest integer of the dtype, at least the smallest; 0 for nan."""
    limits = np.iinfo(dtype)
    if math.isinf(value) or math.isnan(value):
        return 0 if math.isnan(value) else limits.max if value > 0 else limits.min
    return min(max(int(value), limits.min), limits.max)


def _operand(value, scope):
    return scope[value] if isinstance(value, str) else value


def _inside(statement, buffers, scope):
    index = _index(statement.index, scope)
    assert np.min(index) >= 0 and np.max(index) < buffers[statement.buffer].size
    return index


def _index(index, scope):
    if isinstance(index, int):
        return index
    if isinstance(index, str):
        return scope[index]
    op, left, right = index[0], _index(index[1], scope), _index(index[2], scope)
    return {"+": np.add, "*": np.multiply, "//": np.floor_divide, "%": np.remainder, "min": np.minimum}[op](left, right)
