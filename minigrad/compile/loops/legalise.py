"""Legalises a kernel: replaces what some machine does not have, so that printers need few operations and statements.

`legalise` replaces operations.  float16 is computed in float32 and rounded, arithmetic on bools becomes logic, and
operations with a rule in the table are written out.  For every value, the result is the one that NumPy gives.

`plain` replaces statements.  `b[i] += x` becomes a load, a step of the sum, and a store.  A bool in memory is a byte,
of which every value except 0 is true.  A position used as a value is a cast.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from .ir import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    LAYOUTS,
    LONG,
    Accumulate,
    For,
    Kernel,
    Let,
    Operand,
    Running,
    Statement,
    Store,
    Walk,
    Writer,
)
from .operations import OPERATIONS, operand_dtypes


def legalise(kernel: Kernel, written_out: bool = True, fused: bool = True) -> Kernel:
    """The same kernel with legal operations; functions of floats stay unless they are `written_out`.

    Without instructions for `fused` products and sums, some functions of float64 stay.
    """
    return replace(kernel, body=_Legaliser(written_out, fused).block(kernel.body))


@cache
def written(op: str, args: tuple[Any, ...], given: Any, dtype: Any, fused: bool) -> tuple[Let, ...]:
    """The statements that replace an operation on operands of the dtype `given`."""
    legaliser = _Legaliser(True, fused)
    legaliser.types = {arg: given for arg in args if isinstance(arg, str)}
    return tuple(legaliser.let(Let("result", op, args, dtype)))


class _Legaliser(Walk):
    def __init__(self, written_out: bool, fused: bool) -> None:
        self.written_out, self.fused = written_out, fused
        self.types: dict[str, Any] = {}

    def loop(self, loop: For) -> list[Statement]:
        for accumulator in loop.accumulators:
            self.types[accumulator.name] = accumulator.dtype
        return [replace(loop, body=self.block(loop.body))]

    def running(self, running: Running) -> list[Statement]:
        self.types[running.name] = running.dtype
        return [running]

    def let(self, let: Let) -> list[Let]:
        """The statements that replace one statement, with as many lanes."""
        return [each if each.lanes == let.lanes else replace(each, lanes=let.lanes) for each in self.written(let)]

    def written(self, let: Let) -> list[Let]:
        """The statements that replace one statement."""
        self.types[let.name] = let.dtype
        operation = OPERATIONS.get(let.op)
        if operation is None or let.op in ("select", "bitcast"):  # loads and choices work on any type
            return [let]
        given = operand_dtypes(let, self.types.__getitem__)[0]
        writer, result = Writer(let.name, given, self.fused), None
        if let.op == "cast":
            result = _cast_to_half(writer, let.args[0]) if let.dtype == HALF else None
        elif given == HALF:
            return self.block([*writer.ending(_in_float(writer, let), let.name)])
        elif given.kind == "b" and operation.on_bools:
            return [replace(let, op=operation.on_bools)]
        elif operation.rule is not None:
            result = operation.rule(writer, *let.args)
        if result is None and self.written_out and operation.written_out is not None and given in LAYOUTS:
            named = [a if isinstance(a, str) else writer.cast(a) for a in let.args]
            result = operation.written_out(writer, *named)
        return [let] if result is None else writer.ending(result, let.name)


# Half precision -------------------------------------------------------------------------------------------------------


def _in_float(w: Writer, let: Let) -> str:
    """An operation on float16, in float32 and then rounded; for + - * / √ this equals rounding once."""
    wider = [w.let("cast", (a,), FLOAT) if isinstance(a, str) else a for a in let.args]
    if let.dtype == BOOL:
        return w.logic(let.op, *wider)
    return w.let("cast", (w.let(let.op, tuple(wider), FLOAT),), HALF)


def _cast_to_half(w: Writer, value: Operand) -> str | None:
    """A cast to float16 through float32; None if the cast needs only one step.

    A float64 between two float32 becomes the float32 whose last bit is 1.  Rounding that float32 to float16 gives the
    same as rounding the float64 once.
    """
    if w.dtype in (FLOAT, HALF) or not isinstance(value, str):
        return None
    near = w.let("cast", (value,), FLOAT)
    if w.dtype != DOUBLE:
        return w.let("cast", (near,), HALF)
    back = w.cast(near)
    beyond = w.lt(w.abs(value), w.abs(back))
    inexact = w.logic("invert", w.eq(value, back))
    single = w.of(FLOAT)
    bits = single.whole("sub", single.whole("bitcast", near), single.whole("cast", beyond))
    odd = single.bitcast(single.whole("or", bits, single.whole("cast", inexact)))
    return w.let("cast", (odd,), HALF)


# Plain statements -----------------------------------------------------------------------------------------------------


BYTE = np.dtype(np.uint8)


def plain(kernel: Kernel, position: Any = LONG) -> Kernel:
    """The kernel with loads, stores, operations and loops only; positions have a dtype."""
    parameters = [replace(p, dtype=BYTE) if p.dtype.kind == "b" else p for p in kernel.parameters]
    return replace(kernel, parameters=parameters, body=_Plain(kernel, position).block(kernel.body))


class _Plain(Walk):
    def __init__(self, kernel: Kernel, position: Any) -> None:
        self.position = position
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}

    def loop(self, loop: For) -> list[Statement]:
        return [replace(loop, body=self.block(loop.body))]

    def let(self, let: Let) -> list[Let]:
        if let.op == "load" and let.dtype.kind == "b":
            byte = replace(let, name=f"{let.name}.byte", dtype=BYTE)
            return [byte, replace(let, op="cast", args=(byte.name,))]
        return self.index(let) if let.op == "index" else [let]

    def index(self, let: Let) -> list[Let]:
        """A position as a value; in lanes, the first position and the distances from it."""
        (first, *offsets), name = let.args, f"{let.name}.at"
        made = [Let(name, "index", (first,), self.position)]
        if offsets:
            made.append(Let(f"{name}.first", "spread", (name,), self.position, let.lanes))
            made.append(Let(f"{name}.all", "add", (f"{name}.first", tuple(offsets)), self.position, let.lanes))
        return [*made, Let(let.name, "cast", (made[-1].name,), let.dtype, let.lanes)]

    def store(self, store: Store) -> list[Statement]:
        if self.types[store.buffer].kind != "b":
            return [store]
        byte = f"{store.buffer}.byte"
        return [Let(byte, "cast", (store.value,), BYTE, store.lanes), replace(store, value=byte)]

    def accumulate(self, update: Accumulate) -> list[Statement]:
        buffer, index, lanes, dtype = update.buffer, update.index, update.lanes, self.types[update.buffer]
        old, new = f"{buffer}.old", f"{buffer}.new"
        return [
            Let(old, "load", (buffer, index), dtype, lanes),
            Let(new, f"step_{update.op}", (update.value, old), dtype, lanes), Store(buffer, index, new, lanes),
        ]
