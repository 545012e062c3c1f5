"""LLVM's words: a kernel as text that needs no passes of LLVM, only the translation to machine code.

Arithmetic follows IEEE 754 with one exception: the sums that a loop accumulates may be regrouped (`reassoc`), and take
in the products that `loops.bands` marks as their terms (`contract`).  Comparisons with nan, infinities and -0.0 give
what NumPy gives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import IndexOperation
from ..loops.ir import LONG, For, Kernel, Let, Running, Store
from ..loops.operations import OPERATIONS, REDUCTIONS, identity
from ..loops.widen import Machine
from .printing import Words, hoisted, stages

TYPES = {dtype: f"i{8 * dtype.itemsize}" for dtype in dtypes.INTEGERS}
TYPES |= {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "i1"}


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


def kind_of(dtype: Any, lanes: int) -> str:
    """The type of a number or of a vector."""
    return TYPES[dtype] if lanes == 1 else f"<{lanes} x {TYPES[dtype]}>"


def suffix(dtype: Any, lanes: int) -> str:
    """The suffix of a function's name."""
    one = f"f{8 * dtype.itemsize}" if dtype.kind == "f" else TYPES[dtype]
    return one if lanes == 1 else f"v{lanes}{one}"


def conversion(old: Any, new: Any) -> str:
    """The instruction that casts a number to another type."""
    if old.kind == "f":
        return "fpext" if old.itemsize < new.itemsize else "fptrunc"
    if new.kind == "f":
        return "sitofp" if old.kind == "i" else "uitofp"
    if old.kind == "b" or old.itemsize < new.itemsize:
        return "sext" if old.kind == "i" else "zext"
    return "trunc"


# Kernels --------------------------------------------------------------------------------------------------------------


PURE = "nounwind willreturn memory(none)"
REGROUP = "reassoc nsz contract"  # flags: regroup sums, and fuse them with their terms


def llvm_source(kernel: Kernel, machine: Machine | None = None) -> str:
    """The text of a module with one function, `void kernel(void **table)`; without a `machine`, no loop has vectors.

    The table holds the addresses of the parameters, then `lo` and `hi`.
    """
    if machine is None:
        return _LlvmWords(hoisted(kernel, Machine())).module(Machine().bits)
    *_, last = stages(kernel, machine).values()
    return _LlvmWords(last).module(machine.bits)


class _LlvmWords(Words):
    """Writes each value as the register of its name; a register on the way has a dollar and a word after the name."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.declared, self.stores = dict[str, None](), count()

    def module(self, width: int) -> str:
        """One function, which reads its arguments from a table of addresses."""
        lines, names = [], [p.name for p in self.kernel.parameters]
        for number, name in enumerate([*names, "lo", "hi"]):
            lines.append(f"%{name}$at = getelementptr ptr, ptr %.table, i64 {number}")
            lines.append(f"%{name} = load {'ptr' if number < len(names) else 'i64'}, ptr %{name}$at")
        head = f'define void @kernel(ptr %.table) "prefer-vector-width"="{width}" {{'
        body = [line if line.endswith(":") else f"  {line}" for line in [*lines, *self.block(self.kernel.body)]]
        return "\n".join([head, *body, "  ret void", "}", "", *self.declared]) + "\n"

    def value(self, operand: Any, dtype: Any, lanes: int = 1) -> str:
        if isinstance(operand, str):
            return f"%{operand}"
        if isinstance(operand, tuple):
            return f"<{', '.join(f'{TYPES[dtype]} {constant(number, dtype)}' for number in operand)}>"
        one = constant(operand, dtype)
        return one if lanes == 1 else f"splat ({TYPES[dtype]} {one})"

    def typed(self, operand: Any, dtype: Any, lanes: int = 1) -> str:
        """An operand behind its type."""
        return f"{kind_of(dtype, lanes)} {self.value(operand, dtype, lanes)}"

    def call(self, function: str, result: str, kinds: Sequence[str], values: Sequence[str], flags: str = "") -> str:
        pure = "" if function.startswith("llvm.") else f" {PURE}"
        self.declared[f"declare {result} @{function}({', '.join(kinds)}){pure}"] = None
        listed = ", ".join([f"{kind} {value}" for kind, value in zip(kinds, values)])
        return f"call {flags}{' ' * bool(flags)}{result} @{function}({listed})"

    # Places -----------------------------------------------------------------------------------------------------------

    def position(self, let: Let, operation: IndexOperation) -> list[str]:
        word, given = operation.llvm, [self.value(arg, LONG) for arg in let.args]
        if word.startswith("llvm."):
            return [f"%{let.name} = " + self.call(f"{word}.i64", "i64", ("i64", "i64"), given)]
        return [f"%{let.name} = {word} i64 {', '.join(given)}"]

    def element(self, register: str, buffer: str, index: Any) -> str:
        return f"%{register} = getelementptr {TYPES[self.types[buffer]]}, ptr %{buffer}, i64 {self.value(index, LONG)}"

    def address(self, let: Let) -> list[str]:
        return [self.element(let.name, *let.args)]

    def load(self, let: Let) -> list[str]:
        kind, at = kind_of(let.dtype, let.lanes), f"{let.name}$from"
        return [self.element(at, *let.args), f"%{let.name} = load {kind}, ptr %{at}, align {let.dtype.itemsize}"]

    def store(self, store: Store) -> list[str]:
        dtype, at = self.types[store.buffer], f".store.{next(self.stores)}"
        value = self.typed(store.value, dtype, store.lanes)
        return [self.element(at, store.buffer, store.index), f"store {value}, ptr %{at}, align {dtype.itemsize}"]

    # Lanes ------------------------------------------------------------------------------------------------------------

    def shuffle(self, name: str, kind: str, taken: Sequence[int], first: str, second: str = "poison") -> str:
        """The line for chosen lanes of two vectors."""
        lanes = f"<{len(taken)} x i32> <{', '.join([f'i32 {lane}' for lane in taken])}>"
        return f"%{name} = shufflevector {kind} {first}, {kind} {second}, {lanes}"

    def spread(self, let: Let) -> list[str]:
        kind, one = kind_of(let.dtype, let.lanes), f"%{let.name}$one"
        first = f"{one} = insertelement {kind} poison, {self.typed(let.args[0], let.dtype)}, i64 0"
        return [first, f"%{let.name} = shufflevector {kind} {one}, {kind} poison, <{let.lanes} x i32> zeroinitializer"]

    def pack(self, let: Let) -> list[str]:
        lines, before, vector = [], "poison", kind_of(let.dtype, let.lanes)
        for lane, part in enumerate(let.args):
            register = f"%{let.name}" + f"$lane{lane}" * (lane < let.lanes - 1)
            lines.append(f"{register} = insertelement {vector} {before}, {self.typed(part, let.dtype)}, i64 {lane}")
            before = register
        return lines

    def every(self, let: Let) -> list[str]:
        vector, step, length = let.args
        return [self.shuffle(let.name, kind_of(let.dtype, length), range(length)[::step], f"%{vector}")]

    def weave(self, let: Let) -> list[str]:
        """The vectors one behind the other, and then their lanes by turns."""
        lines, (whole, *others), dtype = list[str](), [f"%{vector}" for vector in let.args], let.dtype
        each = lanes = let.lanes // len(let.args)
        for number, vector in enumerate(others):
            padded, part = (f"{let.name}${word}{number}" for word in ("pad", "part"))
            taken = [*range(each), *[0] * (lanes - each)]  # both operands of the next line have as many lanes
            lines.append(self.shuffle(padded, kind_of(dtype, each), taken, vector))
            lines.append(self.shuffle(part, kind_of(dtype, lanes), range(lanes + each), whole, f"%{padded}"))
            whole, lanes = f"%{part}", lanes + each
        turns = [lane for first in range(each) for lane in range(first, lanes, each)]
        return [*lines, self.shuffle(let.name, kind_of(dtype, lanes), turns, whole)]

    def lane(self, let: Let) -> list[str]:
        vector, lane, lanes = let.args
        return [f"%{let.name} = extractelement {kind_of(let.dtype, lanes)} %{vector}, i64 {lane}"]

    def across(self, let: Let, op: str) -> list[str]:
        """Halves are joined: LLVM's own reductions are slower for short vectors."""
        (vector, lanes), dtype, lines = let.args, let.dtype, list[str]()
        while lanes > 1:
            half, kind = lanes // 2, kind_of(dtype, lanes)
            parts = [f"{let.name}${half}{part}" for part in ("low", "high")]
            for first, part in zip((0, half), parts):
                one = f"%{part} = extractelement {kind} %{vector}, i64 {first}"
                lines.append(one if half == 1 else self.shuffle(part, kind, range(first, first + half), f"%{vector}"))
            vector, lanes = f"{let.name}${half}" if half > 1 else let.name, half
            lines.append(f"%{vector} = {self.operation(op, dtype, half, [f'%{part}' for part in parts], REGROUP)}")
        return lines

    # Operations -------------------------------------------------------------------------------------------------------

    def apply(self, let: Let, kinds: list[Any], regroups: bool = False) -> list[str]:
        operands = [self.value(arg, kind, let.lanes) for arg, kind in zip(let.args, kinds)]
        flags = REGROUP * regroups  # without `nsz`, a maximum must put -0 below 0, which takes twice as long
        return [f"%{let.name} = {self.operation(let.op, kinds[-1], let.lanes, operands, flags)}"]

    def operation(self, op: str, dtype: Any, lanes: int, operands: list[str], flags: str = "") -> str:
        """An operation, from its text in the table or as a call of C's library."""
        kind, operation, flags = kind_of(dtype, lanes), OPERATIONS[op], flags * (dtype.kind == "f")
        word, function = operation.text("llvm", dtype.kind), operation.text("c", dtype.kind)
        if word.startswith("llvm."):
            name, *flag = word.split()
            kinds = [*[kind] * len(operands), *["i1"] * len(flag)]
            return self.call(f"{name}.{suffix(dtype, lanes)}", kind, kinds, [*operands, *flag], flags)
        if "{" in word:
            none, every = (self.value(number, dtype, lanes) for number in (0, dtype.kind == "b" or -1))
            named = dict(zip("xyz", operands))
            return word.format(**named, t=kind, b=kind_of(dtypes.bool, lanes), none=none, every=every)
        if word:
            return " ".join(filter(None, [word, flags, kind, ", ".join(operands)]))
        if not function.isidentifier():
            raise CompileError(f"there is no native code for {op} of {dtype}")
        return self.call(function + "f" * (dtype.itemsize == 4), kind, [kind] * len(operands), operands)

    def convert(self, let: Let, old: Any) -> list[str]:
        """A value as another dtype.  A float beyond the range of an integer becomes the nearest integer."""
        new, name = let.dtype, f"%{let.name}"
        source, target = (kind_of(dtype, let.lanes) for dtype in (old, new))
        operand = self.value(let.args[0], old, let.lanes)
        value = f"{source} {operand}"
        if let.op == "whole":  # for a nan the value is undefined; freeze makes it some number
            return [f"{name}$exact = fptosi {value} to {target}", f"{name} = freeze {target} {name}$exact"]
        if source == target:
            return [f"{name} = freeze {value}"]
        if let.op == "bitcast":
            return [f"{name} = bitcast {value} to {target}"]
        if new.kind == "b":
            return [f"{name} = {'fcmp une' if old.kind == 'f' else 'icmp ne'} {value}, zeroinitializer"]
        if old.kind == "f" and new.kind in "iu":
            function = f"llvm.fpto{'s' if new.kind == 'i' else 'u'}i.sat"
            function += f".{suffix(new, let.lanes)}.{suffix(old, let.lanes)}"
            return [f"{name} = {self.call(function, target, [source], [operand])}"]
        return [f"{name} = {conversion(old, new)} {value} to {target}"]

    # Loops ------------------------------------------------------------------------------------------------------------

    def reduced(self, a: Any, name: str, flags: str) -> str:
        """One step of a reduction."""
        given = [self.value(a.value, a.dtype, a.lanes), f"%{a.name}.so_far"]
        return f"{name} = {self.operation(REDUCTIONS[a.op], a.dtype, a.lanes, given, flags)}"

    def running(self, running: Running) -> list[str]:
        return [self.reduced(running, f"%{running.name}", "")]

    def rounds(self, loop: For, body: list[str]) -> list[str]:
        """A test before the first round, and one after each round."""
        i, low, high = loop.variable, self.value(loop.low, LONG), self.value(loop.high, LONG)
        inside, after = [f"%{i} = phi i64"], [f"%{i}.end = phi i64"]
        firsts, nexts = [low], [f"%{i}.next"]
        for a in (*loop.accumulators, *loop.totals):
            kind, is_running = kind_of(a.dtype, a.lanes), isinstance(a, Running)
            firsts.append(self.value(identity(a.op, a.dtype) if a.start is None else a.start, a.dtype, a.lanes))
            nexts.append(f"%{a.name}" + ".next" * (not is_running))
            inside.append(f"%{a.name}.so_far = phi {kind}")
            after.append(f"%{a.name}{'.end' * is_running} = phi {kind}")
        sides = [f"[{first}, %.before.{i}], [{following}, %.again.{i}]" for first, following in zip(firsts, nexts)]
        updates = [self.reduced(a, f"%{a.name}.next", REGROUP) for a in loop.accumulators]
        return [
            f"br label %.before.{i}", f".before.{i}:", f"%{i}.last = sub nsw i64 {high}, {loop.stride - 1}",
            f"%{i}.any = icmp slt i64 {low}, %{i}.last", f"br i1 %{i}.any, label %.round.{i}, label %.end.{i}",
            f".round.{i}:", *map(" ".join, zip(inside, sides)), *body, *updates,
            f"br label %.again.{i}", f".again.{i}:", f"%{i}.next = add nsw i64 %{i}, {loop.stride}",
            f"%{i}.more = icmp slt i64 %{i}.next, %{i}.last", f"br i1 %{i}.more, label %.round.{i}, label %.end.{i}",
            f".end.{i}:", *map(" ".join, zip(after, sides)),
        ]
