"""Legalises a kernel: replaces what some machine does not have, so that printers need few operations and statements.

`legalise` replaces operations.  float16 is computed in float32 and rounded, arithmetic on bools becomes logic, and
operations with a rule in the table are written out.  For every value, the result is the one that NumPy gives.

`plain` replaces statements.  `b[i] += x` becomes a load, a step of the sum, and a store.  A bool in memory is a byte,
of which every value except 0 is true.  A position used as a value is a cast.

`hoist` replaces indices.  Positions become values, each computed once, outside all loops that do not change it.
Afterwards a load or store reads `place[index]`, where the index is a number or a name, and `place` is a parameter or a
value of the operation "address": a pointer moved by some elements.  Every name is defined once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, reduce
from typing import Any

import numpy as np

from .index import computed, fold, leaves, terms, times
from .ir import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    LAYOUTS,
    LONG,
    Accumulate,
    For,
    Index,
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


# Hoisted positions ----------------------------------------------------------------------------------------------------


NOTHING = {("+", 0), ("*", 1), ("//", 1)}  # operations that do nothing


def hoist(kernel: Kernel, position: Any = LONG, in_bytes: bool = False) -> Kernel:
    """The kernel with positions as values of a dtype, which count elements or bytes."""
    return replace(kernel, body=_Hoisting(kernel, position, in_bytes).all(kernel.body))


class _Hoisting(Walk):
    """Builds the bodies of all loops around a statement at the same time: what moves goes to the end of an outer one,
    which is before the loop.
    """

    def __init__(self, kernel: Kernel, position: Any, in_bytes: bool) -> None:
        self.position, self.in_bytes = position, in_bytes
        self.types = {p.name: p.dtype for p in kernel.parameters}
        self.depths: dict[Any, int] = {}  # the loops around the statement that defines a name; 0 for parameters
        self.names: dict[Any, Any] = {}  # a name in the kernel -> the name here, if it differs
        self.bodies: list[list[Statement]] = []
        self.known: list[dict[Any, str]] = []
        self.count = 0

    def all(self, body: list[Statement]) -> list[Statement]:
        """The statements of a body: those that stay, and those that moved here."""
        self.bodies.append([])
        self.known.append({})
        for statement in body:
            self.visit(statement)
        self.known.pop()
        return self.bodies.pop()

    @property
    def depth(self) -> int:
        return len(self.bodies) - 1

    def defined(self, name: str) -> str:
        """The name of a value that is defined here."""
        new = name if name not in self.depths else self.fresh(name)
        self.names[name], self.depths[new] = new, self.depth
        return new

    def fresh(self, name: str) -> str:
        """A new name, without the number that an earlier call put at the end."""
        self.count += 1
        return f"{name.partition('.')[0]}..{self.count}"

    def named(self, operand: Any) -> Any:
        return self.names.get(operand, operand) if isinstance(operand, str) else operand

    def depth_of(self, operand: Any) -> int:
        return self.depths.get(operand, 0) if isinstance(operand, str) else 0

    # Positions --------------------------------------------------------------------------------------------------------

    def moved(self, op: str, args: tuple[Any, ...], depth: int, dtype: Any, lanes: int = 1) -> str:
        """The name of a value that is computed once, with `depth` loops around it."""
        key = (op, args, lanes)
        if key not in self.known[depth]:
            name = self.known[depth][key] = self.fresh(args[0] if op == "address" else "t")
            self.depths[name] = depth
            self.bodies[depth].append(Let(name, op, args, dtype, lanes))
        return self.known[depth][key]

    def index(self, index: Index) -> Any:
        """The number or the name that is a position."""
        return fold(index, self.leaf, self.joined)

    def leaf(self, leaf: Any) -> Any:
        """A number or a name in an index; a value from memory becomes a position."""
        name = self.named(leaf)
        if self.types.get(name, self.position) == self.position:
            return name
        return self.moved("cast", (name,), self.depth_of(name), self.position)

    def joined(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            return int(computed(op, left, right))
        if (op, right) in NOTHING:
            return left
        risky = op in ("//", "%") and isinstance(right, str)  # before a loop without rounds, it may divide by 0
        depth = self.depth if risky else max(self.depth_of(left), self.depth_of(right))
        return self.moved(f"index {op}", (left, right), depth, self.position)

    def place(self, buffer: str, index: Index) -> tuple[str, Any]:
        """A place in memory: an address, and the number or name of what changes last."""
        size = self.types[buffer].itemsize if self.in_bytes else 1
        parts = [*map(self.index, terms(times(index, size)))]
        number, start = sum([part for part in parts if isinstance(part, int)]), buffer
        names = sorted([part for part in parts if isinstance(part, str)], key=self.depth_of)
        if not names:
            return start, number
        moves: list[Any] = names if number else names[:-1]
        if self.in_bytes and any(isinstance(leaf, int) and leaf < 0 for leaf in leaves(index)):
            moves, number = [*names, number], 0  # the sum could be below 0 without the number
        if moves:  # one address for their sum: a chain of addresses takes LLVM twice as long
            place = reduce(lambda left, right: self.joined("+", left, right), moves)
            start = self.moved("address", (buffer, place), self.depth_of(place), self.types[buffer])
        return start, names[-1] if moves == names[:-1] else number

    # Statements -------------------------------------------------------------------------------------------------------

    def put(self, statement: Statement) -> None:
        self.bodies[-1].append(statement)

    def let(self, let: Let) -> None:
        if let.op == "load":
            args: tuple[Any, ...] = self.place(*let.args)
        elif let.op == "index":
            self.names[let.name] = self.index(let.args[0])
            return
        else:
            args = tuple(map(self.named, let.args))
            if let.op == "same":
                self.names[let.name] = args[0]
                return
            if let.op == "spread":
                self.names[let.name] = self.moved(let.op, args, max(map(self.depth_of, args)), let.dtype, let.lanes)
                return
        name = self.defined(let.name)
        self.types[name] = let.dtype
        self.put(Let(name, let.op, args, let.dtype, let.lanes))

    def store(self, store: Store | Accumulate) -> None:
        buffer, index = self.place(store.buffer, store.index)
        self.put(replace(store, buffer=buffer, index=index, value=self.named(store.value)))

    accumulate = store

    def running(self, running: Running) -> None:
        value = self.named(running.value)
        self.put(replace(running, name=self.defined(running.name), value=value))

    def loop(self, loop: For) -> None:
        low, high = self.index(loop.low), self.index(loop.high)
        outside, starts = dict(self.names), [self.named(a.start) for a in loop.accumulators]
        variable = self.defined(loop.variable)
        self.depths[variable] += 1
        for total in loop.totals:  # read before the first round
            self.names[total.name] = f"{total.name}.so_far"
        body = self.all(loop.body)
        self.depths[variable] -= 1
        inside, self.names = self.names, outside | {f"{loop.variable}.end": f"{variable}.end"}
        self.depths[f"{variable}.end"] = self.depth
        sums = []
        for a, start in zip(loop.accumulators, starts):
            value = inside.get(a.value, a.value) if isinstance(a.value, str) else a.value
            sums.append(replace(a, name=self.defined(a.name), value=value, start=start))
        self.put(replace(loop, variable=variable, low=low, high=high, body=body, accumulators=sums))
