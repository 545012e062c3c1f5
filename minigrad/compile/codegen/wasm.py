"""Prints a kernel as WebAssembly, which browsers compile to machine code.

The result is a list of instructions, of which `wasm_format` makes bytes and text.  Innermost loops compute on vectors
of 128 bits if what they read and write lies side by side; all other loops run round by round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.ir import Accumulate, For, Index, Kernel, Lanes, Let, Running, Store
from ..loops.legalise import legalise
from ..loops.operations import OPERATIONS, REDUCTIONS, operand_dtypes
from ..loops.scalar import identity
from ..loops.sums import with_long_sums_in_blocks
from .wasm_format import TABLE, Function, Instruction, listing
from .wasm_lanes import lanes_of, vectors_in_round
from .wasm_places import Places
from .wasm_words import NARROW, READ_BOOLS, WRITE_BOOLS, constant, instruction, is_operand, kind_of, text_of

SHIFTS = ("shl", "shr_s", "shr_u")  # on vectors, they take the number of bits as one number
ROUNDS = 256  # in a block of a long sum, which adds up in four lanes


def wasm_source(kernel: Kernel, name: str = "kernel") -> str:
    """The text of a module with one function, `void name(void **table)`.

    The table holds the addresses of the parameters, then `lo` and `hi`, each with 32 bits.
    """
    return listing([wasm_function(kernel, name)])


def wasm_function(kernel: Kernel, name: str = "kernel") -> Function:
    """The function of a kernel."""
    if kernel.computes_in(dtypes.float16):
        raise CompileError("WebAssembly has no instructions for float16")
    return _Printer(legalise(with_long_sums_in_blocks(kernel, ROUNDS), fused=False)).function(name)


class _Printer(Places):
    """Prints one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.kernel = kernel

    def function(self, name: str) -> Function:
        """The function: it reads its arguments from the table, and runs the loops."""
        for number, argument in enumerate([*[p.name for p in self.kernel.parameters], "lo", "hi"]):
            self.emit(("local.get", TABLE), ("i32.load", 4 * number))
            self.set(argument, "i32")
        self.block(self.kernel.body)
        return Function(name, dict(sorted(self.locals.items(), key=lambda item: item[1])), self.code)

    # Statements -------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        self.now = self.lanes if let.name in self.wide else 1
        if self.now == 1 and self.copy:  # it was computed for the first vector
            return
        if let.op == "load":
            self.load(*let.args)
        elif let.op == "index":
            self.position(let.args[0], let.dtype)
        else:
            self.operation(let.op, operand_dtypes(let, self.types.__getitem__), let.dtype, let.args)
        self.define(let.name, let.dtype)

    def load(self, buffer: str, index: Index) -> None:
        offset, dtype = self.address(buffer, index), self.types[buffer]
        if self.now > 1:
            self.emit(*([("v128.load32_zero", offset), *READ_BOOLS] if dtype.kind == "b" else [("v128.load", offset)]))
        else:
            self.emit((f"{kind_of(dtype)}.load{_part(dtype, sign=True)}", offset))
            if dtype.kind == "b":
                self.emit(("i32.const", 0), ("i32.ne",))

    def position(self, index: Index, dtype: Any) -> None:
        """A position as a value; in lanes, one more in each lane."""
        self.push(self.index(index))
        kind = kind_of(dtypes.int32, self.now)
        if self.now > 1:
            first = self.copy * self.lanes
            self.emit((f"{kind}.splat",), ("v128.const", kind, *range(first, first + self.lanes)), (f"{kind}.add",))
        self.words(text_of("cast", dtypes.int32, dtype, self.now) or "", [], [dtypes.int32], dtype)

    def store(self, store: Store) -> None:
        self.now = self.lanes
        offset, dtype = self.address(store.buffer, store.index), self.types[store.buffer]
        self.value(store.value, dtype)
        self.write(dtype, offset)

    def accumulate(self, update: Accumulate) -> None:
        self.now = self.lanes
        dtype, before = self.types[update.buffer], f"{update.buffer}.before"
        offset = self.address(update.buffer, update.index)
        self.load(update.buffer, update.index)
        self.define(before, dtype)
        self.operation(REDUCTIONS[update.op], [dtype, dtype], dtype, (before, update.value))
        self.write(dtype, offset)

    def write(self, dtype: Any, offset: int) -> None:
        """Store the top of the stack at the address below it."""
        if self.now == 1:
            self.emit((f"{kind_of(dtype)}.store{_part(dtype)}", offset))
        elif dtype.kind == "b":
            self.emit(*WRITE_BOOLS, ("v128.store32_lane", offset, 0))
        else:
            self.emit(("v128.store", offset))

    def running(self, running: Running) -> None:
        self.reduce(running.op, running.name, running.value, running.dtype)

    def reduce(self, op: str, name: str, value: Any, dtype: Any) -> None:
        """One step of a reduction."""
        self.operation(REDUCTIONS[op], [dtype, dtype], dtype, (name, value))
        self.define(name, dtype)

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, operand: Any, dtype: Any) -> None:
        """Put an operand on the stack, in all lanes."""
        if not isinstance(operand, str):
            self.emit(constant(operand, dtype, self.now))
            return
        local: Instruction = ("local.get", self.at[operand])
        if self.now > 1 and operand not in self.wide:
            kind = kind_of(dtype, self.now)
            code: tuple[Instruction, ...] = (local,)
            if dtype.kind == "b":
                code = (("i32.const", 0), local, ("i32.sub",), *[("i64.extend_i32_s",)] * (kind == "i64x2"))
            local = self.outside((*code, (f"{kind}.splat",)), self.depth_of(local), kind)
        self.push(local)

    def operation(self, op: str, given: Sequence[Any], dtype: Any, operands: Sequence[Any]) -> None:
        """Put the result of an operation on the stack, by instructions or by a function of C's library."""
        text = text_of(op, given[-1], dtype, self.now)
        if text is not None:
            self.words(text, operands, given, dtype)
            return
        function = OPERATIONS[op].text("c", given[-1].kind)
        if not function.isidentifier() or self.now > 1:
            raise CompileError(f"there are no instructions for {op} of {given[-1]}")
        for operand in operands:
            self.value(operand, given[-1])
        self.emit(("call", function + "f" * (given[-1] == dtypes.float32)))

    def words(self, text: str, operands: Sequence[Any], given: Sequence[Any], dtype: Any) -> None:
        """The instructions for a text; without operands, `x` is on the stack."""
        kind = kind_of(given[-1], self.now)
        shifts = text.endswith(SHIFTS) and self.now > 1
        for word in text.split():
            if word in "xyz":
                number = "xyz".index(word)
                if shifts and number == 1:
                    self.push(self.index(operands[1]))
                elif operands:
                    self.value(operands[number], given[number])
            elif is_operand(word):
                self.emit(constant(float(word.replace("one", "1")), dtype if word == "one" else given[-1], self.now))
            else:
                self.emit((instruction(word, kind),))
        if self.now == 1 and "select" not in text:
            self.emit(*NARROW.get(dtype, ()))

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        low, high = self.index(loop.low), self.index(loop.high)
        self.now = self.lanes
        for total in (*loop.accumulators, *loop.totals):
            self.emit(constant(identity(total.op, total.dtype), total.dtype, self.now))
            self.define(total.name, total.dtype)
        self.push(low)
        self.at[loop.variable] = self.set(loop.variable, "i32")
        left = high[1] - low[1] if low[0] == high[0] == "i32.const" else None
        lanes, wide = lanes_of(loop, self.types) if self.lanes == 1 else (1, set[str]())
        if lanes > 1 and isinstance(loop, Lanes):
            self.together(loop, lanes, wide)
            return
        if lanes > 1 and (left is None or left >= lanes):
            self.wide = wide
            left = self.on_vectors(loop, high, lanes, left)
            self.wide = set()
        if left is None or left > 0:
            self.rounds(loop, high)
        for a in loop.accumulators:
            self.depths[self.at[a.name]] = len(self.rooms)

    def together(self, loop: Lanes, lanes: int, wide: set[str]) -> None:
        """All rounds of a loop over lanes, as one vector."""
        self.lanes, self.variable, self.wide = lanes, loop.variable, wide
        self.block(loop.body)
        self.lanes, self.variable, self.wide = 1, "", set()

    def on_vectors(self, loop: For, high: Instruction, lanes: int, left: int | None) -> int | None:
        """The rounds that fill vectors, some of which run several vectors; returns how many rounds are left."""
        copies = vectors_in_round(loop)
        if left is not None and left < copies * lanes:
            copies = 1
        self.now = lanes
        for name, a in [(f"{a.name}.{copy}", a) for a in loop.accumulators for copy in range(copies)]:
            self.emit(constant(identity(a.op, a.dtype), a.dtype, lanes))
            self.define(name, a.dtype)
        for count in sorted({copies, 1}, reverse=True):
            if left is None or left >= count * lanes:
                self.rounds(loop, high, lanes, count)
                left = None if left is None else left % (count * lanes)
        for a in loop.accumulators:
            first, kind = f"{a.name}.0", kind_of(a.dtype, lanes)
            self.now = lanes
            for copy in range(1, copies):
                self.reduce(a.op, first, f"{a.name}.{copy}", a.dtype)
            self.now = 1
            for lane in range(lanes):
                self.push(("local.get", self.at[first]))
                self.emit((f"{kind}.extract_lane", lane))
                self.define(f"{a.name}.lane", a.dtype)
                self.reduce(a.op, a.name, f"{a.name}.lane", a.dtype)
        return left

    def rounds(self, loop: For, high: Instruction, lanes: int = 1, copies: int = 1) -> None:
        """The rounds that are left, as many at once as fill the lanes of some vectors."""
        step, variable = lanes * copies, ("local.get", self.at[loop.variable])
        last = self.joined("+", high, ("i32.const", 1 - step))
        place = len(self.code)
        self.rooms.append([])
        self.known.append({})
        self.depths[variable[1]] = len(self.rooms)
        self.emit(("block",), variable, last, ("i32.ge_s",), ("br_if", 0), ("loop",))
        around = self.lanes, self.variable
        if lanes > 1:
            self.lanes, self.variable = lanes, loop.variable
        for self.copy in range(copies):
            self.block(loop.body)
            self.now = self.lanes
            for a in loop.accumulators:
                self.reduce(a.op, a.name if lanes == 1 else f"{a.name}.{self.copy}", a.value, a.dtype)
        self.now, self.copy, (self.lanes, self.variable) = 1, 0, around
        self.emit(variable, ("i32.const", step), ("i32.add",), ("local.tee", variable[1]), last, ("i32.lt_s",))
        self.emit(("br_if", 0), ("end",), ("end",))
        self.code[place:place] = self.rooms.pop()
        self.known.pop()


def _part(dtype: Any, sign: bool = False) -> str:
    """The end of the name of an instruction that reads or writes a part of a register: its bits, and its sign."""
    if dtype.itemsize >= 4:
        return ""
    return f"{8 * dtype.itemsize}{('_s' if dtype.kind == 'i' else '_u') * sign}"
