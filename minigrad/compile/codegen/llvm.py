"""Prints a kernel as LLVM text, which `native.py` compiles.

Arithmetic follows IEEE 754 with one exception: the sums that a loop accumulates may be regrouped (`reassoc`), and take
in the products that `loops.sums` marks as their terms (`contract`).  Comparisons with nan, infinities and -0.0 give
what NumPy gives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import INDEXING, computed, fold
from ..loops.ir import Accumulate, For, Index, Kernel, Let, Running, Store, Walk
from ..loops.legalise import legalise
from ..loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes
from ..loops.scalar import identity

NOTHING = {("+", "0"), ("*", "1"), ("//", "1")}  # operations on indices that do nothing
# The types of values in registers; in memory, a bool is a byte.
TYPES = {dtype: f"i{8 * dtype.itemsize}" for dtype in dtypes.INTEGERS}
TYPES |= {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "i1"}
PURE = "nounwind willreturn memory(none)"
INTERLEAVED = 24  # from so many statements in an innermost loop on,
ROUNDS = 4  # this many interleaved iterations are faster: they wait less for each other
LANES, MOST_LANES = 8, 32  # iterations at once in a loop over several steps
FEW_VECTORS = (8, 16, 32)  # rounds of a loop that fill vectors
VERY_LONG = 100  # so many statements keep the processor busy without interleaving, which LLVM takes long to compile
READY = "; this text needs no passes of LLVM"
REGROUP = "reassoc nsz contract"  # flags: regroup sums, and fuse them with their terms


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
        self.now = self.around = 1  # lanes of the statement that is being printed, and of the loop over lanes around it
        self.declared: dict[str, None] = {}
        self.metadata: list[str] = []
        self.used: set[str] = set()
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.names: dict[str, str] = {"lo": "%lo", "hi": "%hi"}  # the registers of values and variables
        self.depths: dict[str, int] = {}  # a register -> the number of loops around it
        # For each loop around the current statement, the line before it and what belongs there; and for each depth, the
        # registers of texts that need not be set again.
        self.rooms: list[tuple[int, list[str]]] = []
        self.known: list[dict[str, str]] = [{}]

    # The frame --------------------------------------------------------------------------------------------------------

    def module(self) -> str:
        """The loops as one function, and the function that reads its arguments from the table and calls it."""
        self.block(self.kernel.body)
        names = [p.name for p in self.kernel.parameters]
        width = f'"prefer-vector-width"="{self.width}"'
        taken = ", ".join([*[f"ptr noalias %{name}" for name in names], "i64 %lo", "i64 %hi"])
        given = ", ".join([*[f"ptr %{name}" for name in names], "i64 %lo", "i64 %hi"])
        text = [f"define internal void @body({taken}) alwaysinline {width} {{", ".entry:", *filter(None, self.lines)]
        text += ["  ret void", "}", "", f"define void @{self.name}(ptr %.table) {width} {{"]
        text += [*self.arguments(), f"  call void @body({given})", "  ret void", "}", ""]
        return "\n".join([*text, *self.declared, *self.metadata]) + "\n"

    def ready_module(self) -> str:
        """One function, which reads its arguments from the table: LLVM only has to translate it."""
        self.block(self.kernel.body)
        head = f'define void @{self.name}(ptr %.table) "prefer-vector-width"="{self.width}" {{'
        text = [READY, head, ".entry:", *self.arguments(), *filter(None, self.lines), "  ret void", "}", ""]
        return "\n".join([*text, *self.declared]) + "\n"

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
        self.names[name], self.depths[register] = register, len(self.rooms)
        return register

    def call(self, function: str, result: str, kinds: Sequence[str], values: Sequence[str], flags: str = "") -> str:
        pure = "" if function.startswith("llvm.") else " " + PURE
        self.declared[f"declare {result} @{function}({', '.join(kinds)}){pure}"] = None
        listed = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, values))
        return f"call {flags + ' ' if flags else ''}{result} @{function}({listed})"

    # Statements -------------------------------------------------------------------------------------------------------

    def store(self, store: Store) -> None:
        pointer = self.pointer(store.buffer, store.index)
        self.write(store.buffer, pointer, self.value(store.value, self.types[store.buffer]))

    def accumulate(self, update: Accumulate) -> None:
        pointer, dtype = self.pointer(update.buffer, update.index), self.types[update.buffer]
        value = self.value(update.value, dtype)
        self.write(update.buffer, pointer, self.taken(self.read(update.buffer, pointer), update.op, value, dtype))

    def running(self, running: Running) -> None:
        """The next total; `rounds` puts the total before the first round, and of the round before, into a register."""
        before, dtype = self.names[running.name], running.dtype
        given = [before, self.value(running.value, dtype)]
        register = self.define(running.name, dtype)
        self.operation(REDUCTIONS[running.op], dtype, dtype, given, register)

    def taken(self, before: str, op: str, value: str, dtype: Any) -> str:
        """One step of a reduction, whose steps may be regrouped; the next step need not wait for a look for a nan."""
        return self.operation(REDUCTIONS[op], dtype, dtype, [value, before], flags=REGROUP)

    def index(self, index: Index) -> str:
        return fold(index, lambda leaf: self.names[leaf] if isinstance(leaf, str) else str(leaf), self.joined)

    def joined(self, op: str, left: str, right: str) -> str:
        """The register of an operation on indices, which is set once, before all loops that do not change it."""
        if not left.startswith("%") and not right.startswith("%"):
            return str(int(computed(op, int(left), int(right))))
        if (op, right) in NOTHING:
            return left
        word = INDEXING[op].llvm
        if word.startswith("llvm."):
            text = self.call(f"{word}.i64", "i64", ("i64", "i64"), (left, right))
        else:
            text = f"{word} i64 {left}, {right}"
        depth = max(self.depth_of(left), self.depth_of(right))
        risky = op in ("//", "%") and right.startswith("%")  # before a loop without rounds, it may divide by 0
        return self.outside(text, len(self.rooms) if risky else depth)

    def outside(self, text: str, depth: int) -> str:
        """The register that `text` sets, once, with as few loops around it as possible."""
        register = self.known[depth].get(text)
        if register is None:
            here = self.lines
            if depth < len(self.rooms):
                self.lines = self.rooms[depth][1]
            register = self.known[depth][text] = self.set(text)
            self.lines, self.depths[register] = here, depth
        return register

    def depth_of(self, register: str) -> int:
        """The number of loops around the statement that sets a register; 0 for numbers and arguments."""
        return self.depths.get(register, 0)

    def open(self) -> None:
        """Begin a loop: the following statements are inside."""
        self.lines.append("")
        self.rooms.append((len(self.lines) - 1, []))
        self.known.append({})

    def close(self) -> None:
        """End a loop: write what belongs before it."""
        place, lines = self.rooms.pop()
        self.lines[place] = "\n".join(lines)
        self.known.pop()

    def pointer(self, buffer: str, index: Index, sure: str = "inbounds ") -> str:
        """The address of an element.  A number at the end becomes a part of the instruction that reads or writes."""
        kind, start = stored_type(self.types[buffer]), f"%{buffer}"
        if isinstance(index, tuple) and index[0] == "+" and isinstance(index[2], int):
            place = self.index(index[1])
            start = self.outside(f"getelementptr {kind}, ptr {start}, i64 {place}", self.depth_of(place))
            return self.set(f"getelementptr {kind}, ptr {start}, i64 {index[2]}")
        return self.set(f"getelementptr {sure}{kind}, ptr {start}, i64 {self.index(index)}")

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

    def read(self, buffer: str, pointer: str, register: str | None = None) -> str:
        dtype = self.types[buffer]
        if dtype.kind == "b":
            byte = self.set(f"load {self.kind(dtype, stored=True)}, ptr {pointer}, align 1")
            return self.set(f"icmp ne {self.kind(dtype, stored=True)} {byte}, {self.number(0, dtypes.int8)}", register)
        return self.set(f"load {self.kind(dtype)}, ptr {pointer}, align {dtype.itemsize}", register)

    def write(self, buffer: str, pointer: str, value: str) -> None:
        dtype = self.types[buffer]
        if dtype.kind == "b":
            value = self.set(f"zext {self.kind(dtype)} {value} to {self.kind(dtype, stored=True)}")
        self.emit(f"store {self.kind(dtype, stored=True)} {value}, ptr {pointer}, align {dtype.itemsize}")

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        outside = dict(self.names)
        self.types |= {a.name: a.dtype for a in loop.accumulators}
        sums = self.all_rounds(loop, [self.number(identity(a.op, a.dtype), a.dtype) for a in loop.accumulators])
        self.names = outside | dict(zip([a.name for a in loop.accumulators], sums))

    def all_rounds(self, loop: For, sums: list[str]) -> list[str]:
        """All rounds of a loop: the accumulators after them, if they begin as `sums`."""
        return self.rounds(loop, self.index(loop.low), self.index(loop.high), sums, 1)[1]

    def rounds(
        self, loop: For, low: str, high: str, sums: list[str], lanes: int, sure: bool = False
    ) -> tuple[str, list[str]]:
        """A loop over as many rounds as fill all lanes: the number of the next round, and the accumulators so far.

        There is a test after each round, and one before the first round unless it is `sure`.
        """
        self.loops += 1
        number, before = self.loops, self.label
        variable, following = f"%{loop.variable}.{number}", f"%.next.{number}"
        self.open()
        self.depths[variable] = len(self.rooms)
        last = self.set(f"sub nsw i64 {high}, {lanes - 1}") if lanes > 1 else high
        any_round = "true" if sure else self.set(f"icmp slt i64 {low}, {last}")
        self.emit(f"br i1 {any_round}, label %.round.{number}, label %.end.{number}")
        self.begin(f".round.{number}")
        start = self.room()
        changing = [(variable, "i64", low, following)]  # register, type, value before the loop, value after a round
        earlier = [self.fresh() for _ in loop.totals]
        self.names |= {total.name: register for total, register in zip(loop.totals, earlier)}
        values = self.body(loop, variable, lanes)
        self.close()
        for a, begin, value in zip(loop.accumulators, sums, values):
            register = f"%{a.name}.{number}"
            begin = self.number(identity(a.op, a.dtype), a.dtype) if lanes > 1 else begin
            changing.append((register, self.kind(a.dtype), begin, self.taken(register, a.op, value, a.dtype)))
        self.now = 1
        for total, register in zip(loop.totals, earlier):
            begin = constant(identity(total.op, total.dtype), total.dtype)
            changing.append((register, TYPES[total.dtype], begin, self.names[total.name]))
        self.emit(f"{following} = add nsw i64 {variable}, {lanes}")
        more = self.set(f"icmp slt i64 {following}, {last}")
        self.emit(f"br i1 {more}, label %.round.{number}, label %.end.{number}{self.hint(loop)}")
        choices = [f"phi {kind} [{begin}, %{before}], [{after}, %{self.label}]" for _, kind, begin, after in changing]
        self.lines[start] = "\n".join(f"  {register} = {text}" for (register, *_), text in zip(changing, choices))
        self.begin(f".end.{number}")
        place, *sums = map(self.set, choices[: 1 + len(loop.accumulators)])
        return place, sums

    def body(self, loop: For, place: str, lanes: int) -> list[str]:
        """The statements of rounds that begin at `place`; returns what the accumulators take in, in all lanes."""
        self.names[loop.variable] = place
        self.block(loop.body)
        self.now = self.around
        return [self.value(a.value, a.dtype) for a in loop.accumulators]

    def room(self) -> int:
        """The number of a new line that is written later."""
        self.lines.append("")
        return len(self.lines) - 1

    def hint(self, loop: For) -> str:
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

    # Values -----------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        dtype = let.dtype
        if let.op == "load":
            buffer, index = let.args
            self.read(buffer, self.pointer(buffer, index), self.define(let.name, dtype))
        elif let.op == "index":
            where = self.index(let.args[0])
            self.set(conversion(where, dtypes.int64, dtype, self), self.define(let.name, dtype))
        else:
            kinds = operand_dtypes(let, self.types.__getitem__)
            operands = [self.value(operand, kind) for operand, kind in zip(let.args, kinds)]
            self.operation(let.op, kinds[-1], dtype, operands, self.define(let.name, dtype))

    def operation(
        self, op: str, given: Any, dtype: Any, operands: list[str], register: str | None = None, flags: str = ""
    ) -> str:
        """An operation on operands of the dtype `given`, from its text in the table or as a call of C's library."""
        kind, real, operation = self.kind(given), given.kind == "f", OPERATIONS[op]
        flags = flags if real else ""
        word, function = operation.text("llvm", given.kind), operation.text("c", given.kind)
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
            text = self.call(f"{name}.{self.suffix(given)}", kind, kinds, [*operands, *flag], flags)
        elif "{" in word:
            each, none = self.kind(dtypes.bool), self.number(0, given)
            every = self.number(given.kind == "b" or -1, given)
            text = word.format(**dict(zip("xyz", operands)), t=kind, b=each, none=none, every=every)
        elif word:
            text = f"{word} {flags} {kind} {', '.join(operands)}" if flags else f"{word} {kind} {', '.join(operands)}"
        elif function.isidentifier():
            name = f"{function}f" if given == dtypes.float32 else function
            text = self.call(name, kind, [kind] * len(operands), operands)
        else:
            raise CompileError(f"there is no native code for {op} of {given}")
        return self.set(text, register)


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
