"""Prints a kernel as LLVM text, which `native.py` compiles.

Arithmetic follows IEEE 754 with two exceptions: a product and a sum may be fused (`contract`), and the sums that a loop
accumulates may be regrouped (`reassoc`).  Comparisons with nan, infinities and -0.0 give what NumPy gives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import INDEXING, depends, fold
from ..loops.ir import Accumulate, For, Index, Kernel, Lanes, Let, Prefetch, Running, Store, Walk
from ..loops.legalise import legalise
from ..loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes
from ..loops.scalar import identity

# The types of values in registers; in memory, a bool is a byte.
TYPES = {dtype: f"i{8 * dtype.itemsize}" for dtype in dtypes.INTEGERS}
TYPES |= {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "i1"}
PURE = "nounwind willreturn memory(none)"
INTERLEAVED = 24  # from so many statements in an innermost loop on,
ROUNDS = 4  # this many interleaved iterations are faster: they wait less for each other
LANES, MOST_LANES = 8, 32  # iterations at once in a loop over several steps
SHORT_ROW, SIMPLE = (8, 128), 8  # rounds of a loop that LLVM may write out, with at most so many statements
FEW_VECTORS = (8, 16, 32)  # rounds of a loop that fill vectors
VERY_LONG = 100  # so many statements keep the processor busy without interleaving, which LLVM takes long to compile
CONTRACT, REGROUP = "contract", "reassoc nsz contract"  # flags: fuse a product and a sum; regroup sums


def stored_type(dtype: Any) -> str:
    """The type of a value in memory."""
    return "i8" if dtype.kind == "b" else TYPES[dtype]


def constant(value: Any, dtype: Any) -> str:
    """A number in LLVM's syntax: floats are written as bits.

    >>> constant(1.5, np.dtype("float32")), constant(True, np.dtype("bool")), constant(2.0, np.dtype("int8"))
    ('0x3FF8000000000000', 'true', '2')
    """
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    with np.errstate(over="ignore"):
        number = np.asarray(value, dtype)
    if dtype.itemsize == 2:
        return f"0xH{int(number.view(np.uint16)):04X}"
    return f"0x{struct.unpack('Q', struct.pack('d', float(number)))[0]:016X}"


def llvm_source(kernel: Kernel, name: str = "kernel", width: int = 256, fused: bool = True) -> str:
    """The text of a module with one function, `void name(void **table)`.

    The table holds the addresses of the parameters, then `lo` and `hi`.  `width` is the width of vectors in bits.
    `fused`: the processor has instructions for fused products and sums.
    """
    return Printer(legalise(kernel, fused=fused), name, width).module()


class Printer(Walk):
    """Prints one kernel.  New registers and labels have names with a dot, which names of the kernel never have."""

    def __init__(self, kernel: Kernel, name: str, width: int) -> None:
        self.kernel, self.name, self.width = kernel, name, width
        self.lines: list[str] = []
        self.label = ".entry"  # the label of the current block
        self.count = 0
        self.loops = 0
        self.declared: dict[str, None] = {}
        self.metadata: list[str] = []
        self.used: set[str] = set()
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.names: dict[str, str] = {"lo": "%lo", "hi": "%hi"}  # the registers of values and variables
        self.at_once: Lanes | None = None  # the loop over lanes around the current statement
        self.vectors: set[str] = set()  # the registers with a value for each lane

    # The frame --------------------------------------------------------------------------------------------------------

    def module(self) -> str:
        """The loops as one function, and the function that reads its arguments from the table and calls it."""
        self.block(self.kernel.body)
        names = [p.name for p in self.kernel.parameters]
        width = f'"prefer-vector-width"="{self.width}"'
        taken = ", ".join([*[f"ptr noalias %{name}" for name in names], "i64 %lo", "i64 %hi"])
        given = ", ".join([*[f"ptr %{name}" for name in names], "i64 %lo", "i64 %hi"])
        text = [f"define internal void @body({taken}) alwaysinline {width} {{", ".entry:", *self.lines]
        text += ["  ret void", "}", "", f"define void @{self.name}(ptr %.table) {width} {{"]
        text += [*self.arguments(), f"  call void @body({given})", "  ret void", "}", ""]
        return "\n".join([*text, *self.declared, *self.metadata]) + "\n"

    def arguments(self) -> list[str]:
        """The lines that read the arguments from the table."""
        lines, names = [], [p.name for p in self.kernel.parameters]
        for number, name in enumerate([*names, "lo", "hi"]):
            lines.append(f"  %.at.{number} = getelementptr ptr, ptr %.table, i64 {number}")
            lines.append(f"  %{name} = load {'ptr' if number < len(names) else 'i64'}, ptr %.at.{number}")
        return lines

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def set(self, text: str, register: str | None = None) -> str:
        """A line that sets a register, by default a new one; returns the register."""
        register = register or self.fresh()
        self.emit(f"{register} = {text}")
        return register

    def begin(self, label: str) -> None:
        self.lines.append(label + ":")
        self.label = label

    def fresh(self) -> str:
        self.count += 1
        return f"%.v.{self.count}"

    def define(self, name: str, dtype: Any) -> str:
        """A register for a value: by its name, or a new one if the name has been used before."""
        self.types[name] = dtype
        register = f"%{name}" if name not in self.used else self.fresh()
        self.used.add(name)
        self.names[name] = register
        return register

    def call(self, function: str, result: str, kinds: Sequence[str], values: Sequence[str], flags: str = "") -> str:
        pure = "" if function.startswith("llvm.") else " " + PURE
        self.declared[f"declare {result} @{function}({', '.join(kinds)}){pure}"] = None
        listed = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, values))
        return f"call {flags + ' ' if flags else ''}{result} @{function}({listed})"

    # Statements -------------------------------------------------------------------------------------------------------

    def store(self, store: Store) -> None:
        pointer, dtype = self.pointer(store.buffer, store.index), self.types[store.buffer]
        value = self.value(store.value, dtype)
        if self.moves(store.index):
            value = self.spread(value, dtype)
        elif value in self.vectors:
            raise CompileError(f"all lanes store to one place in {store.buffer}")
        self.write(store.buffer, pointer, value)

    def accumulate(self, update: Accumulate) -> None:
        pointer, dtype = self.pointer(update.buffer, update.index), self.types[update.buffer]
        before = self.read(update.buffer, pointer, many=self.moves(update.index))
        if self.at_once is not None and before not in self.vectors:
            raise CompileError(f"all lanes store to one place in {update.buffer}")
        self.write(update.buffer, pointer, self.taken(before, update.op, update.value, dtype))

    def running(self, running: Running) -> None:
        """The next total; `loop` puts the total before the first round, and of the round before, into a register."""
        before, dtype = self.names[running.name], running.dtype
        given = [before, self.value(running.value, dtype)]
        register = self.define(running.name, dtype)
        self.operation(REDUCTIONS[running.op], dtype, dtype, given, register)

    def taken(self, before: str, op: str, value: Any, dtype: Any) -> str:
        """One step of a reduction, whose steps may be regrouped."""
        return self.operation(REDUCTIONS[op], dtype, dtype, [before, self.value(value, dtype)], flags=REGROUP)

    def prefetch(self, prefetch: Prefetch) -> None:
        place = self.pointer(prefetch.buffer, prefetch.index, sure="")  # it may be behind the last row
        kinds = ("ptr", "i32", "i32", "i32")
        self.emit(self.call("llvm.prefetch.p0", "void", kinds, (place, "0", "3", "1")))

    def index(self, index: Index) -> str:
        return fold(index, lambda leaf: self.names[leaf] if isinstance(leaf, str) else str(leaf), self.joined)

    def joined(self, op: str, left: str, right: str) -> str:
        """The register of an operation on indices."""
        word = INDEXING[op].llvm
        if word.startswith("llvm."):
            return self.set(self.call(f"{word}.i64", "i64", ("i64", "i64"), (left, right)))
        return self.set(f"{word} i64 {left}, {right}")

    def pointer(self, buffer: str, index: Index, sure: str = "inbounds ") -> str:
        kind = stored_type(self.types[buffer])
        return self.set(f"getelementptr {sure}{kind}, ptr %{buffer}, i64 {self.index(index)}")

    def value(self, operand: Any, dtype: Any) -> str:
        return self.names[operand] if isinstance(operand, str) else self.number(operand, dtype)

    def number(self, value: Any, dtype: Any) -> str:
        return constant(value, dtype)

    def kind(self, dtype: Any, stored: bool = False) -> str:
        """The type of a value, in a register or in memory."""
        return stored_type(dtype) if stored else TYPES[dtype]

    def suffix(self, dtype: Any) -> str:
        """The suffix of a function's name for a dtype."""
        return f"f{8 * dtype.itemsize}" if dtype.kind == "f" else TYPES[dtype]

    def read(self, buffer: str, pointer: str, register: str | None = None, many: bool = False) -> str:
        dtype = self.types[buffer]
        if many:
            register = self.set(f"load {self.vector(dtype)}, ptr {pointer}, align {dtype.itemsize}", register)
            self.vectors.add(register)
            return register
        if dtype.kind == "b":
            byte = self.set(f"load {self.kind(dtype, stored=True)}, ptr {pointer}, align 1")
            return self.set(f"icmp ne {self.kind(dtype, stored=True)} {byte}, {self.number(0, dtypes.int8)}", register)
        return self.set(f"load {self.kind(dtype)}, ptr {pointer}, align {dtype.itemsize}", register)

    def write(self, buffer: str, pointer: str, value: str) -> None:
        dtype = self.types[buffer]
        if dtype.kind == "b":
            value = self.set(f"zext {self.kind(dtype)} {value} to {self.kind(dtype, stored=True)}")
        kind = self.vector(dtype) if value in self.vectors else self.kind(dtype, stored=True)
        self.emit(f"store {kind} {value}, ptr {pointer}, align {dtype.itemsize}")

    # Lanes ------------------------------------------------------------------------------------------------------------

    def over_lanes(self, loop: Lanes) -> None:
        """All rounds of a loop as one round of vectors; an index is that of the first lane."""
        plain = self.at_once is None and loop.low == 0 and loop.high.__class__ is int and not loop.accumulators
        if not plain or not 0 < loop.high <= MOST_LANES:  # type: ignore[operator]
            raise CompileError(f"the loop over {loop.variable} can't become lanes of a vector")
        outside = dict(self.names)
        self.at_once, self.names[loop.variable] = loop, "0"
        self.block(loop.body)
        self.at_once, self.names = None, outside

    def vector(self, dtype: Any) -> str:
        """The type of a value for each lane."""
        assert self.at_once is not None
        if dtype.kind == "b":
            raise CompileError("there is no native code for lanes of bools")
        return f"<{self.at_once.high} x {TYPES[dtype]}>"

    def moves(self, index: Index) -> bool:
        """Whether an index moves by one element from lane to lane."""
        if self.at_once is None or not depends(index, self.at_once.variable):
            return False
        start, step = (index[1], index[2]) if isinstance(index, tuple) and index[0] == "+" else (0, index)
        if step != self.at_once.variable or depends(start, step):
            raise CompileError(f"there is no native code for the positions {index!r} in lanes")
        return True

    def check_same(self, *indices: Index) -> None:
        """Refuse positions that differ between lanes."""
        if any(map(self.moves, indices)):
            raise CompileError(f"there is no native code for {indices!r} in lanes")

    def spread(self, value: str, dtype: Any) -> str:
        """A value for each lane: the same one, if it is a single value so far."""
        if value in self.vectors:
            return value
        kind = self.vector(dtype)
        first = self.set(f"insertelement {kind} poison, {TYPES[dtype]} {value}, i64 0")
        mask = kind.replace(TYPES[dtype], "i32")
        register = self.set(f"shufflevector {kind} {first}, {kind} poison, {mask} zeroinitializer")
        self.vectors.add(register)
        return register

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        if isinstance(loop, Lanes):
            return self.over_lanes(loop)
        self.loops += 1
        self.check_same(loop.low, loop.high)
        number, before = self.loops, self.label
        low, high = self.index(loop.low), self.index(loop.high)
        outside = dict(self.names)
        variable = self.names[loop.variable] = f"%{loop.variable}.{number}"
        for accumulator in loop.accumulators:
            self.names[accumulator.name] = f"%{accumulator.name}.{number}"
            self.types[accumulator.name] = accumulator.dtype
        earlier = [self.fresh() for _ in loop.totals]
        self.names |= {total.name: register for total, register in zip(loop.totals, earlier)}
        self.emit(f"br label %.head.{number}")
        self.begin(f".head.{number}")
        place = len(self.lines)
        self.emit(f"%.more.{number} = icmp slt i64 {variable}, {high}")
        self.emit(f"br i1 %.more.{number}, label %.round.{number}, label %.end.{number}")
        self.begin(f".round.{number}")
        self.block(loop.body)
        self.vectors |= {
            self.names[a.name] for a in loop.accumulators if self.value(a.value, a.dtype) in self.vectors
        }
        taken = [self.taken(self.names[a.name], a.op, a.value, a.dtype) for a in loop.accumulators]
        self.emit(f"%.next.{number} = add nsw i64 {variable}, 1")
        self.emit(f"br label %.head.{number}{self._hint(loop)}")
        heads = [(variable, "i64", low, f"%.next.{number}")]
        for accumulator, value in zip(loop.accumulators, taken):
            dtype, kind = accumulator.dtype, TYPES[accumulator.dtype]
            start = constant(identity(accumulator.op, dtype), dtype)
            if value in self.vectors:
                start, kind = f"splat ({kind} {start})", self.vector(dtype)
            heads.append((self.names[accumulator.name], kind, start, value))
        for total, register in zip(loop.totals, earlier):
            start = constant(identity(total.op, total.dtype), total.dtype)
            heads.append((register, TYPES[total.dtype], start, self.names[total.name]))
        self.lines[place:place] = [
            f"  {register} = phi {kind} [{start}, %{before}], [{value}, %{self.label}]"
            for register, kind, start, value in heads
        ]
        self.begin(f".end.{number}")
        self.names = outside | {a.name: self.names[a.name] for a in loop.accumulators}

    def _hint(self, loop: For) -> str:
        """The metadata with hints for the vectoriser on an innermost loop."""
        if any(isinstance(s, For) for s in loop.body):
            return ""
        hints = []
        if loop.steps > 1:  # LLVM overestimates the cost of shuffling neighbours, and would unroll instead of vectorise
            fills = not loop.accumulators  # partly filled vectors are slow to reduce
            rounds = loop.high if fills and isinstance(loop.high, int) and loop.high <= MOST_LANES else 0
            lanes = 1 << (rounds - 1).bit_length() if rounds else LANES
            hints = ['!"llvm.loop.unroll.disable"', f'!"llvm.loop.vectorize.width", i32 {lanes}']
            if rounds:  # all of them at once
                hints.append('!"llvm.loop.vectorize.predicate.enable", i1 true')
        elif loop.low == 0 and loop.high in FEW_VECTORS and not loop.accumulators and len(loop.body) <= INTERLEAVED:
            # LLVM would unroll all of it, and then vectorise the loop around it, whose rounds are far apart.
            hints = ['!"llvm.loop.unroll.disable"']
        elif any(a.op == "prod" and a.dtype.kind in "iu" and a.dtype.itemsize < 4 for a in loop.accumulators):
            # No processor multiplies vectors of small integers, and LLVM takes seconds to find a substitute.
            hints = ['!"llvm.loop.vectorize.enable", i1 false', '!"llvm.loop.unroll.disable"']
        elif self._sums_short_row(loop):
            hints = ['!"llvm.loop.unroll.disable"']
        elif len(loop.body) > VERY_LONG:
            hints = ['!"llvm.loop.interleave.count", i32 1', '!"llvm.loop.unroll.disable"']
        elif len(loop.body) > INTERLEAVED:
            hints = [f'!"llvm.loop.interleave.count", i32 {ROUNDS}']
        if not hints:
            return ""
        number = len(self.metadata)
        listed = ", ".join(f"!{number + k}" for k in range(len(hints) + 1))
        self.metadata.append(f"!{number} = distinct !{{{listed}}}")
        self.metadata += [f"!{number + k} = !{{{hint}}}" for k, hint in enumerate(hints, 1)]
        return f", !llvm.loop !{number}"

    @staticmethod
    def _sums_short_row(loop: For) -> bool:
        """Whether LLVM would write out all rounds of a sum, and then not find the vectors in them."""
        rounds = loop.high if isinstance(loop.high, int) and loop.low == 0 else 0
        return bool(loop.accumulators) and SHORT_ROW[0] < rounds < SHORT_ROW[1] and len(loop.body) <= SIMPLE

    # Values -----------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        dtype = let.dtype
        if let.op == "load":
            buffer, index = let.args
            pointer = self.pointer(buffer, index)
            self.read(buffer, pointer, self.define(let.name, dtype), self.moves(index))
        elif let.op == "index":
            self.check_same(let.args[0])
            where = self.index(let.args[0])
            self.set(conversion(where, dtypes.int64, dtype, self), self.define(let.name, dtype))
        else:
            kinds = operand_dtypes(let, self.types.__getitem__)
            operands = [self.value(operand, kind) for operand, kind in zip(let.args, kinds)]
            self.operation(let.op, kinds[-1], dtype, operands, self.define(let.name, dtype))

    def operation(
        self, op: str, given: Any, dtype: Any, operands: list[str], register: str | None = None, flags: str = CONTRACT
    ) -> str:
        """An operation on operands of the dtype `given`, from its text in the table or as a call of C's library."""
        kind, real, operation = self.kind(given), given.kind == "f", OPERATIONS[op]
        word, function = operation.text("llvm", given.kind), operation.text("c", given.kind)
        many = not self.vectors.isdisjoint(operands)
        if many and (not word or word.startswith("llvm.") or "{" in word or dtype != given):
            raise CompileError(f"there is no native code for {op} of {given} in lanes")
        if many:
            kind, operands = self.vector(given), [self.spread(operand, given) for operand in operands]
        if op == "whole":
            exact = self.set(f"fptosi {kind} {operands[0]} to {self.kind(dtype)}")
            text = f"freeze {self.kind(dtype)} {exact}"  # for a nan the value is undefined; freeze makes it some number
        elif op == "cast":
            text = conversion(operands[0], given, dtype, self)
        elif op == "bitcast":
            text = f"bitcast {kind} {operands[0]} to {self.kind(dtype)}"
        elif word.startswith("llvm."):
            name, *flag = word.split()
            kinds = [*[kind] * len(operands), *["i1"] * len(flag)]
            text = self.call(f"{name}.{self.suffix(given)}", kind, kinds, [*operands, *flag], CONTRACT if real else "")
        elif "{" in word:
            each, none = self.kind(dtypes.bool), self.number(0, given)
            every = self.number(given.kind == "b" or -1, given)
            text = word.format(**dict(zip("xyz", operands)), t=kind, b=each, none=none, every=every)
        elif word:
            text = f"{word.replace(CONTRACT, flags)} {kind} {', '.join(operands)}"
        elif function.isidentifier():
            name = f"{function}f" if given == dtypes.float32 else function
            text = self.call(name, kind, [kind] * len(operands), operands)
        else:
            raise CompileError(f"there is no native code for {op} of {given}")
        register = self.set(text, register)
        if many:
            self.vectors.add(register)
        return register


def conversion(value: str, source: Any, target: Any, printer: Printer) -> str:
    """A value as another dtype.  A float beyond the range of an integer becomes the nearest integer."""
    old, new = printer.kind(source), printer.kind(target)
    if old == new:
        return f"select i1 true, {old} {value}, {old} {value}"
    if target.kind == "b":
        zero = printer.number(0, source)
        return f"fcmp une {old} {value}, {zero}" if source.kind == "f" else f"icmp ne {old} {value}, {zero}"
    if source.kind == "f" and target.kind == "f":
        return f"{'fpext' if source.itemsize < target.itemsize else 'fptrunc'} {old} {value} to {new}"
    if source.kind == "f":
        name = f"llvm.fpto{'s' if target.kind == 'i' else 'u'}i.sat.{printer.suffix(target)}.{printer.suffix(source)}"
        return printer.call(name, new, (old,), (value,))
    if target.kind == "f":
        return f"{'s' if source.kind == 'i' else 'u'}itofp {old} {value} to {new}"
    wider = source.kind == "b" or source.itemsize < target.itemsize
    how = ("sext" if source.kind == "i" else "zext") if wider else "trunc"
    return f"{how} {old} {value} to {new}"
