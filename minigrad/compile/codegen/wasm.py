"""WebAssembly's words: a kernel as instructions, which browsers compile to machine code.

The result is a list of instructions, of which `wasm_format` makes bytes and text.  A value is a local variable, and a
value with several lanes is one for each vector of 128 bits.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import IndexOperation
from ..loops.ir import INT, Accumulator, For, Kernel, Let, Running, Store
from ..loops.legalise import BYTE
from ..loops.operations import OPERATIONS, REDUCTIONS, identity
from .printing import Words, stages
from .wasm_format import TABLE, Function, Instruction, listing
from .wasm_words import (
    MACHINE,
    NARROW,
    READ_BYTES,
    SHIFTS,
    VECTOR,
    WRITE_BYTES,
    constant,
    instruction,
    is_operand,
    kind_of,
    part_of,
    text_of,
)


def wasm_source(kernel: Kernel, name: str = "kernel") -> str:
    """The text of a module with a function `void name(void **table)`, whose table holds the addresses of the
    parameters, then `lo` and `hi`, each with 32 bits.
    """
    return listing([wasm_function(kernel, name)])


def wasm_function(kernel: Kernel, name: str = "kernel") -> Function:
    """The function of a kernel."""
    if kernel.computes_in(dtypes.float16):
        raise CompileError("WebAssembly has no instructions for float16")
    *_, last = stages(kernel, MACHINE).values()
    return _WasmWords(last).function(name)


class _WasmWords(Words):
    position_type = INT

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.locals: dict[str, str] = {}  # their types
        self.vectors: dict[str, int] = {}  # the lanes of one vector of a value

    def function(self, name: str) -> Function:
        """The function: it reads its arguments from the table, and runs the loops."""
        code: list[Instruction] = []
        for number, argument in enumerate([*[p.name for p in self.kernel.parameters], "lo", "hi"]):
            code += [("local.get", TABLE), ("i32.load", 4 * number), self.local(argument, "i32")]
        code += self.block(self.kernel.body)
        short: list[Instruction] = []
        for each in code:  # the value that a variable was set to stays on the stack
            if short and each[0] == "local.get" and short[-1] == ("local.set", each[1]):
                short[-1] = ("local.tee", each[1])
            else:
                short.append(each)
        return Function(name, dict(sorted(self.locals.items(), key=lambda item: item[1])), short)

    # Local variables --------------------------------------------------------------------------------------------------

    def local(self, name: str, kind: str) -> Instruction:
        """The instruction that sets a local variable, declared here."""
        self.locals[name] = "v128" if "x" in kind else kind
        return "local.set", name

    def set(self, name: str, dtype: Any, vector: int = 1, part: int = 0) -> Instruction:
        """The instruction that sets a value, or one of its vectors."""
        self.vectors[name] = vector
        return self.local(f"{name}:{part}" if vector > 1 else name, kind_of(dtype, vector))

    def value(self, operand: Any, dtype: Any, vector: int = 1, part: int = 0) -> Instruction:
        """The instruction that puts an operand on the stack, or one of its vectors."""
        if isinstance(operand, str):
            return "local.get", f"{operand}:{part}" if vector > 1 else operand
        if isinstance(operand, tuple):
            return "v128.const", kind_of(dtype, vector), *operand[part * vector : (part + 1) * vector]
        return constant(operand, dtype, vector)

    def vector_of(self, let: Let, dtype: Any) -> int:
        """The lanes of one vector of a value: those of an operand, or as many as fill the vector."""
        if let.lanes == 1:
            return 1
        known = [self.vectors[arg] for arg in let.args if isinstance(arg, str) and self.vectors.get(arg, 1) > 1]
        return known[0] if known else min(4, VECTOR // dtype.itemsize)

    # Places -----------------------------------------------------------------------------------------------------------

    def position(self, let: Let, operation: IndexOperation) -> list[Instruction]:
        left, right = [self.value(arg, INT) for arg in let.args]
        end = [(f"i32.{operation.wasm}",)] if operation.wasm else [left, right, ("i32.lt_s",), ("select",)]
        return [left, right, *end, self.set(let.name, INT)]

    def element(self, buffer: str, index: Any, further: int) -> tuple[list[Instruction], int]:
        """The instructions that put an address on the stack, and the number of bytes to add to it."""
        place: list[Instruction] = [("local.get", buffer)]
        if isinstance(index, int) and index >= 0:
            return place, index + further
        return [*place, self.value(index, INT), ("i32.add",)], further

    def address(self, let: Let) -> list[Instruction]:
        buffer, index = let.args
        return [("local.get", buffer), self.value(index, INT), ("i32.add",), self.set(let.name, INT)]

    def load(self, let: Let) -> list[Instruction]:
        code, dtype, vector = list[Instruction](), let.dtype, self.vector_of(let, let.dtype)
        buffer, index = let.args
        for part in range(let.lanes // vector):
            place, offset = self.element(buffer, index, part * vector * dtype.itemsize)
            code += place
            if vector > 1 and dtype == BYTE:
                code += [("v128.load32_zero", offset), *READ_BYTES]
            else:
                code.append(("v128.load" if vector > 1 else f"{kind_of(dtype)}.load{part_of(dtype, True)}", offset))
            code.append(self.set(let.name, dtype, vector, part))
        return code

    def store(self, store: Store) -> list[Instruction]:
        code, dtype = list[Instruction](), self.types[store.buffer]
        vector = 1 if store.lanes == 1 else min(4, VECTOR // dtype.itemsize)
        for part in range(store.lanes // vector):
            place, offset = self.element(store.buffer, store.index, part * vector * dtype.itemsize)
            code += [*place, self.value(store.value, dtype, vector, part)]
            if vector > 1 and dtype == BYTE:
                code += [*WRITE_BYTES, ("v128.store32_lane", offset, 0)]
            else:
                code.append(("v128.store" if vector > 1 else f"{kind_of(dtype)}.store{part_of(dtype)}", offset))
        return code

    # Lanes ------------------------------------------------------------------------------------------------------------

    def spread(self, let: Let) -> list[Instruction]:
        """A number in all lanes; of a true bool, all bits."""
        vector, dtype = self.vector_of(let, let.dtype), let.dtype
        if dtype.kind == "b":
            vector = let.args[1]
        kind, code = kind_of(dtype, vector), [self.value(let.args[0], dtype)]
        if dtype.kind == "b":
            code = [("i32.const", 0), *code, ("i32.sub",), *[("i64.extend_i32_s",)] * (kind == "i64x2")]
        parts = range(let.lanes // vector)
        first = self.set(let.name, dtype, vector)
        code += [(f"{kind}.splat",), first]
        for part in parts[1:]:
            code += [("local.get", first[1]), self.set(let.name, dtype, vector, part)]
        return code

    def across(self, let: Let, op: str) -> list[Instruction]:
        """The vectors are joined, and then the lanes of the one that is left."""
        (name, lanes), dtype, vector = let.args, let.dtype, self.vectors[let.args[0]]
        code, whole = [self.value(name, dtype, vector)], f"{let.name}.whole"
        for part in range(lanes // vector)[1:]:
            code += [self.local(whole, kind_of(dtype, vector))]
            code += self.words(op, dtype, dtype, vector, [("local.get", whole), self.value(name, dtype, vector, part)])
        code.append(self.local(whole, kind_of(dtype, vector)))
        for lane in range(vector):
            code += [("local.get", whole), (f"{kind_of(dtype, vector)}.extract_lane", lane)]
            code.append(self.set(f"{let.name}.lane" if lane else let.name, dtype))
            if lane:
                given = [self.value(each, dtype) for each in (let.name, f"{let.name}.lane")]
                code += [*self.words(op, dtype, dtype, 1, given), self.set(let.name, dtype)]
        return code

    # Operations -------------------------------------------------------------------------------------------------------

    def apply(self, let: Let, kinds: list[Any], regroups: bool = False) -> list[Instruction]:
        code, vector = list[Instruction](), self.vector_of(let, kinds[-1])
        for part in range(let.lanes // vector):
            given = [self.value(arg, kind, vector, part) for arg, kind in zip(let.args, kinds)]
            if let.op in SHIFTS and vector > 1:
                given[1] = ("i32.const", let.args[1])
            code += self.words(let.op, kinds[-1], let.dtype, vector, given)
            code.append(self.set(let.name, let.dtype, vector, part))
        return code

    def convert(self, let: Let, old: Any) -> list[Instruction]:
        return self.apply(let, [old])

    def words(self, op: str, given: Any, dtype: Any, vector: int, operands: list[Instruction]) -> list[Instruction]:
        """The instructions of an operation, or a call of a function of C's library."""
        text, kind, code = text_of(op, given, dtype, vector), kind_of(given, vector), list[Instruction]()
        if text is None:
            function = OPERATIONS[op].text("c", given.kind)
            if not function.isidentifier() or vector > 1:
                raise CompileError(f"there are no instructions for {op} of {given}")
            return [*operands, ("call", function + "f" * (given == dtypes.float32), *[kind] * (1 + len(operands)))]
        for word in text.split():
            if word in "xyz":
                code.append(operands["xyz".index(word)])
            elif is_operand(word):
                code.append(constant(float(word.replace("one", "1")), dtype if word == "one" else given, vector))
            else:
                code.append((instruction(word, kind),))
        return code if vector > 1 or "select" in text else [*code, *NARROW.get(dtype, ())]

    # Loops ------------------------------------------------------------------------------------------------------------

    def running(self, running: Running) -> list[Instruction]:
        name, before = running.name, f"{running.name}.so_far"
        step = self.step(running, before)
        return [*step, self.set(name, running.dtype), self.value(name, running.dtype), ("local.set", before)]

    def step(self, a: Accumulator, before: str, vector: int = 1, part: int = 0) -> list[Instruction]:
        """One step of a reduction."""
        given = [self.value(each, a.dtype, vector, part) for each in (before, a.value)]
        return self.words(REDUCTIONS[a.op], a.dtype, a.dtype, vector, given)

    def rounds(self, loop: For, body: list[Instruction]) -> list[Instruction]:
        """A test before the first round, and one after each round."""
        i, high, code, ends = loop.variable, self.value(loop.high, INT), list[Instruction](), list[Instruction]()
        for a in loop.accumulators:
            vector = 1 if a.lanes == 1 else VECTOR // a.dtype.itemsize
            start = identity(a.op, a.dtype) if a.start is None else a.start
            for part in range(a.lanes // vector):
                target = self.set(a.name, a.dtype, vector, part)
                code += [self.value(start, a.dtype, vector, part), target]
                ends += [*self.step(a, a.name, vector, part), target]
        for total in loop.totals:
            start = constant(identity(total.op, total.dtype), total.dtype)
            code += [start, self.set(f"{total.name}.so_far", total.dtype)]
        variable, last = ("local.get", i), high
        code += [self.value(loop.low, INT), self.set(i, INT)]
        if loop.stride > 1:
            code += [high, ("i32.const", loop.stride - 1), ("i32.sub",), self.set(f"{i}.last", INT)]
            last = ("local.get", f"{i}.last")
        code += [("block",), variable, last, ("i32.ge_s",), ("br_if", 0), ("loop",), *body, *ends]
        code += [variable, ("i32.const", loop.stride), ("i32.add",), self.set(i, INT), variable, last, ("i32.lt_s",)]
        code += [("br_if", 0), ("end",), ("end",)]
        return [*code, variable, self.set(f"{i}.end", INT)] if loop.stride > 1 else code
