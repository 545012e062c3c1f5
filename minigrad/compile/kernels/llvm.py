"""The printer to LLVM's language, which is compiled while the program runs.

Arithmetic is IEEE's: a product and a sum may be joined (`contract`), sums that a loop accumulates may be regrouped
(`reassoc`), and nothing else.  Comparisons with nan, infinities and -0.0 are what NumPy says.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...core.errors import CompileError
from ..scalar import identity
from .ir import Accumulate, Accumulator, For, Index, Kernel, Let, Prefetch, Statement, Store
from .maths import written_out

BOOL, INDEX = np.dtype(np.bool_), np.dtype(np.int64)
FLOATS = {"float32": "float", "float64": "double"}
INTRINSICS = {
    "sqrt": "llvm.sqrt", "floor": "llvm.floor", "rint": "llvm.rint", "sin": "llvm.sin", "cos": "llvm.cos",
    "exp": "llvm.exp", "log": "llvm.log", "pow": "llvm.pow", "copysign": "llvm.copysign",
}  # fmt: skip
LIBRARY = ("expm1", "log1p", "tanh", "erf", "atan2")  # C's mathematical library, for what LLVM has no name for
ARITHMETIC = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"), "div": ("fdiv", "")}
LOGIC = {"and": "and", "or": "or", "xor": "xor"}
COMPARISONS = {"lt": ("olt", "lt"), "le": ("ole", "le"), "eq": ("oeq", "eq")}
INDEXING = {"+": "add nsw", "*": "mul nsw", "//": "udiv", "%": "urem"}
INTERLEAVED = 12  # statements in an innermost loop from which two rounds at a time run in half the time
CONTRACT = "contract"
REGROUP = "reassoc nsz contract"


def type_of(dtype: Any) -> str:
    """A dtype in LLVM's words; a bool is a bit in a register and a byte in memory."""
    if dtype.kind == "f":
        if dtype.name not in FLOATS:
            raise CompileError(f"no native kernels of {dtype}: processors compute with it in another type")
        return FLOATS[dtype.name]
    return "i1" if dtype.kind == "b" else f"i{8 * dtype.itemsize}"


def stored_type(dtype: Any) -> str:
    """What a value is in memory."""
    return "i8" if dtype.kind == "b" else type_of(dtype)


def suffix(dtype: Any) -> str:
    """How LLVM names the version of a function for a dtype."""
    return f"f{8 * dtype.itemsize}" if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def constant(value: Any, dtype: Any) -> str:
    """A number in LLVM's words."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    number = float(value)
    if dtype.itemsize == 4:
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"


def llvm_source(kernel: Kernel, name: str, width: int = 256) -> str:
    """The text of a module with one function, `void name(void **table)`.

    The table holds the addresses of the parameters, and then `lo` and `hi`.  `width` is that of the vectors in bits.
    """
    return _Printer(kernel, name, width).module()


class _Printer:
    def __init__(self, kernel: Kernel, name: str, width: int) -> None:
        self.kernel, self.name, self.width = kernel, name, width
        self.lines: list[str] = []
        self.label = "entry"
        self.count = 0
        self.loops = 0
        self.declared: dict[str, None] = {}
        self.metadata: list[str] = []
        self.used: set[str] = set()
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.names: dict[str, str] = {"lo": "%lo", "hi": "%hi"}

    # the frame ------------------------------------------------------------------------------------------------------

    def module(self) -> str:
        pointers = [f"ptr noalias %{p.name}" for p in self.kernel.parameters]
        self.block(self.kernel.body)
        width = f'"prefer-vector-width"="{self.width}"'
        text = [f"define internal void @body({', '.join([*pointers, 'i64 %lo', 'i64 %hi'])}) alwaysinline {width} {{"]
        text += ["entry:", *self.lines, "  ret void", "}", "", f"define void @{self.name}(ptr %table) {width} {{"]
        arguments = []
        listed = [("ptr", p.name) for p in self.kernel.parameters]
        for number, (kind, label) in enumerate([*listed, ("i64", "lo"), ("i64", "hi")]):
            text.append(f"  %at.{number} = getelementptr ptr, ptr %table, i64 {number}")
            text.append(f"  %{label} = load {kind}, ptr %at.{number}")
            arguments.append(f"{kind} %{label}")
        text += [f"  call void @body({', '.join(arguments)})", "  ret void", "}", ""]
        return "\n".join([*text, *self.declared, *self.metadata]) + "\n"

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        self.lines.append(label + ":")
        self.label = label

    def fresh(self) -> str:
        self.count += 1
        return f"%.{self.count}"

    def define(self, name: str, dtype: Any) -> str:
        """A register for a value: its own name the first time, another one if a later pass computes it again."""
        self.types[name] = dtype
        register = f"%{name}" if name not in self.used else self.fresh()
        self.used.add(name)
        self.names[name] = register
        return register

    def call(self, function: str, result: str, arguments: list[tuple[str, str]], flags: str = "") -> str:
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declared[f"declare {result} @{function}({kinds})"] = None
        listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return f"call {flags}{' ' if flags else ''}{result} @{function}({listed})"

    # statements -----------------------------------------------------------------------------------------------------

    def block(self, body: list[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Let):
                written = written_out(statement)
                for let in [statement] if written is None else written:
                    self.let(let)  # type: ignore[arg-type]
            elif isinstance(statement, Store):
                self.store(statement)
            elif isinstance(statement, Accumulate):
                self.accumulate(statement)
            elif isinstance(statement, Prefetch):
                pointer = self.pointer(statement.buffer, statement.index)
                self.emit(self.call("llvm.prefetch.p0", "void",
                                    [("ptr", pointer), ("i32", "0"), ("i32", "3"), ("i32", "1")]))  # fmt: skip
            else:
                self.loop(statement)

    def index(self, index: Index) -> str:
        if isinstance(index, int):
            return str(index)
        if isinstance(index, str):
            return self.names[index]
        op, left, right = index
        a, b, result = self.index(left), self.index(right), self.fresh()
        if op == "min":
            self.emit(f"{result} = {self.call('llvm.smin.i64', 'i64', [('i64', a), ('i64', b)])}")
        else:
            self.emit(f"{result} = {INDEXING[op]} i64 {a}, {b}")
        return result

    def pointer(self, buffer: str, index: Index) -> str:
        where, result = self.index(index), self.fresh()
        kind = stored_type(self.types[buffer])
        self.emit(f"{result} = getelementptr inbounds {kind}, ptr %{buffer}, i64 {where}")
        return result

    def value(self, operand: Any, dtype: Any) -> str:
        return self.names[operand] if isinstance(operand, str) else constant(operand, dtype)

    def read(self, buffer: str, index: Index, register: str) -> None:
        dtype = self.types[buffer]
        pointer, kind = self.pointer(buffer, index), stored_type(dtype)
        if dtype.kind != "b":
            self.emit(f"{register} = load {kind}, ptr {pointer}, align {dtype.itemsize}")
            return
        byte = self.fresh()
        self.emit(f"{byte} = load i8, ptr {pointer}, align 1")
        self.emit(f"{register} = icmp ne i8 {byte}, 0")

    def write(self, buffer: str, pointer: str, value: str) -> None:
        dtype = self.types[buffer]
        if dtype.kind == "b":
            byte = self.fresh()
            self.emit(f"{byte} = zext i1 {value} to i8")
            value = byte
        self.emit(f"store {stored_type(dtype)} {value}, ptr {pointer}, align {dtype.itemsize}")

    def store(self, statement: Store) -> None:
        value = self.value(statement.value, self.types[statement.buffer])
        self.write(statement.buffer, self.pointer(statement.buffer, statement.index), value)

    def accumulate(self, statement: Accumulate) -> None:
        dtype, before = self.types[statement.buffer], self.fresh()
        pointer, kind = self.pointer(statement.buffer, statement.index), type_of(dtype)
        self.emit(f"{before} = load {kind}, ptr {pointer}, align {dtype.itemsize}")
        value = self.combined(statement.op, dtype, before, self.value(statement.value, dtype))
        self.emit(f"store {kind} {value}, ptr {pointer}, align {dtype.itemsize}")

    def combined(self, op: str, dtype: Any, before: str, value: str) -> str:
        """One step of a reduction."""
        if op in ("max", "min"):
            return self.extreme(op, dtype, before, value, self.fresh())
        result, real = self.fresh(), dtype.kind == "f"
        name = ARITHMETIC["add" if op == "sum" else "mul"][not real]
        self.emit(f"{result} = {name} {REGROUP if real else ''} {type_of(dtype)} {before}, {value}")
        return result

    def extreme(self, op: str, dtype: Any, x: str, y: str, result: str) -> str:
        kind = type_of(dtype)
        if dtype.kind == "f":
            function = f"llvm.{op}imum.{suffix(dtype)}"
        else:
            function = f"llvm.{'s' if dtype.kind == 'i' else 'u'}{op}.{kind}"
        self.emit(f"{result} = {self.call(function, kind, [(kind, x), (kind, y)])}")
        return result

    # loops ----------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        self.loops += 1
        number, before = self.loops, self.label
        low, high = self.index(loop.low), self.index(loop.high)
        outside = dict(self.names)
        variable = self.names[loop.variable] = f"%{loop.variable}.{number}"
        for accumulator in loop.accumulators:
            self.names[accumulator.name] = f"%{accumulator.name}.{number}"
            self.types[accumulator.name] = accumulator.dtype
        self.emit(f"br label %head{number}")
        self.begin(f"head{number}")
        place = len(self.lines)
        self.emit(f"%more{number} = icmp slt i64 {variable}, {high}")
        self.emit(f"br i1 %more{number}, label %body{number}, label %end{number}")
        self.begin(f"body{number}")
        self.block(loop.body)
        taken = [self._taken(accumulator) for accumulator in loop.accumulators]
        self.emit(f"%next{number} = add nsw i64 {variable}, 1")
        innermost = not any(isinstance(s, For) for s in loop.body)
        self.emit(f"br label %head{number}{self._hint(len(loop.body)) if innermost else ''}")
        phis = [f"  {variable} = phi i64 [{low}, %{before}], [%next{number}, %{self.label}]"]
        for accumulator, value in zip(loop.accumulators, taken):
            start = constant(identity(accumulator.op, accumulator.dtype), accumulator.dtype)
            register = self.names[accumulator.name]
            phis.append(f"  {register} = phi {type_of(accumulator.dtype)} [{start}, %{before}], "
                        f"[{value}, %{self.label}]")  # fmt: skip
        self.lines[place:place] = phis
        self.begin(f"end{number}")
        self.names = outside | {a.name: self.names[a.name] for a in loop.accumulators}

    def _taken(self, accumulator: Accumulator) -> str:
        value = self.value(accumulator.value, accumulator.dtype)
        return self.combined(accumulator.op, accumulator.dtype, self.names[accumulator.name], value)

    def _hint(self, statements: int) -> str:
        """Metadata that asks for two rounds at a time."""
        if statements <= INTERLEAVED:
            return ""
        number = 2 * (len(self.metadata) // 2)
        self.metadata.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}")
        self.metadata.append(f'!{number + 1} = !{{!"llvm.loop.interleave.count", i32 2}}')
        return f", !llvm.loop !{number}"

    # values ---------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        if let.op == "load":
            buffer, index = let.args
            self.read(buffer, index, self.define(let.name, let.dtype))
        elif let.op == "index":
            where = self.index(let.args[0])
            self.convert(where, INDEX, let.dtype, self.define(let.name, let.dtype))
        elif let.op == "select":
            condition, x, y = let.args
            chosen, kind = self.value(condition, BOOL), type_of(let.dtype)
            x, y = self.value(x, let.dtype), self.value(y, let.dtype)
            self.emit(f"{self.define(let.name, let.dtype)} = select i1 {chosen}, {kind} {x}, {kind} {y}")
        else:
            given = next((self.types[a] for a in let.args if isinstance(a, str)), let.dtype)
            operands = [self.value(a, given) for a in let.args]
            if let.op == "whole":
                exact = self.fresh()  # of a nan it is nothing at all, which `freeze` makes some number or other
                self.emit(f"{exact} = fptosi {type_of(given)} {operands[0]} to {type_of(let.dtype)}")
                self.emit(f"{self.define(let.name, let.dtype)} = freeze {type_of(let.dtype)} {exact}")
            elif let.op in ("cast", "bitcast"):
                convert = self.convert if let.op == "cast" else self.reinterpret
                convert(operands[0], given, let.dtype, self.define(let.name, let.dtype))
            else:
                self.operation(let.op, given, operands, self.define(let.name, let.dtype))

    def operation(self, op: str, dtype: Any, operands: list[str], result: str) -> None:
        """`result = op(operands)`, the operands being of one dtype."""
        kind, real = type_of(dtype), dtype.kind == "f"
        listed = f"{kind} {', '.join(operands)}"
        if op in ARITHMETIC:
            self.emit(f"{result} = {ARITHMETIC[op][not real]} {CONTRACT if real else ''} {listed}")
        elif op in COMPARISONS:
            sign = "" if op == "eq" else "s" if dtype.kind == "i" else "u"
            test = f"fcmp {COMPARISONS[op][0]}" if real else f"icmp {sign}{COMPARISONS[op][1]}"
            self.emit(f"{result} = {test} {listed}")
        elif op in ("max", "min"):
            self.extreme(op, dtype, operands[0], operands[1], result)
        elif op in LOGIC:
            self.emit(f"{result} = {LOGIC[op]} {listed}")
        elif op == "invert":
            self.emit(f"{result} = xor {listed}, {'true' if dtype.kind == 'b' else -1}")
        elif op in ("lshift", "rshift"):
            self.emit(f"{result} = {'shl' if op == 'lshift' else 'ashr' if dtype.kind == 'i' else 'lshr'} {listed}")
        elif op == "neg":
            self.emit(f"{result} = fneg {listed}" if real else f"{result} = sub {kind} 0, {operands[0]}")
        elif op == "abs":
            self.size(dtype, operands[0], result)
        elif op in ("floordiv", "mod"):
            self.divide(op, dtype, operands[0], operands[1], result)
        elif op in ("floor", "rint") and not real:
            self.emit(f"{result} = or {listed}, 0")
        elif op in INTRINSICS:
            arguments = [(kind, operand) for operand in operands]
            self.emit(f"{result} = {self.call(f'{INTRINSICS[op]}.{suffix(dtype)}', kind, arguments, CONTRACT)}")
        elif op in LIBRARY and real:
            name = op + ("f" if dtype.itemsize == 4 else "")
            self.emit(f"{result} = {self.call(name, kind, [(kind, operand) for operand in operands])}")
        else:
            raise CompileError(f"no native code for {op} of {dtype}")

    def size(self, dtype: Any, x: str, result: str) -> None:
        """The absolute value."""
        kind = type_of(dtype)
        if dtype.kind == "f":
            self.emit(f"{result} = {self.call(f'llvm.fabs.{suffix(dtype)}', kind, [(kind, x)])}")
        elif dtype.kind == "i":
            self.emit(f"{result} = {self.call(f'llvm.abs.{kind}', kind, [(kind, x), ('i1', 'false')])}")
        else:
            self.emit(f"{result} = or {kind} {x}, {'false' if dtype.kind == 'b' else 0}")

    def divide(self, op: str, dtype: Any, x: str, y: str, result: str) -> None:
        """The quotient rounded down, or what remains of it, which has the sign of y.

        As NumPy does it: from the exact remainder, so that the two go together.
        """
        kind, zero = type_of(dtype), constant(0.0, dtype)
        rest, negative, opposite, wrong, shifted, signed = [self.fresh() for _ in range(6)]
        library = "fmodf" if dtype.itemsize == 4 else "fmod"
        self.emit(f"{rest} = {self.call(library, kind, [(kind, x), (kind, y)])}")
        self.emit(f"{negative} = fcmp olt {kind} {rest}, {zero}")
        self.emit(f"{opposite} = fcmp olt {kind} {y}, {zero}")
        self.emit(f"{wrong} = xor i1 {negative}, {opposite}")
        present, adjust = self.fresh(), self.fresh()
        self.emit(f"{present} = fcmp une {kind} {rest}, {zero}")
        self.emit(f"{adjust} = and i1 {wrong}, {present}")
        if op == "mod":
            self.emit(f"{shifted} = fadd {kind} {rest}, {y}")
            copied = self.call(f"llvm.copysign.{suffix(dtype)}", kind, [(kind, zero), (kind, y)])
            self.emit(f"{signed} = {copied}")
            inner = self.fresh()
            self.emit(f"{inner} = select i1 {present}, {kind} {rest}, {kind} {signed}")
            self.emit(f"{result} = select i1 {adjust}, {kind} {shifted}, {kind} {inner}")
            return
        self.whole_quotient(dtype, x, y, rest, adjust, result)

    def whole_quotient(self, dtype: Any, x: str, y: str, rest: str, adjust: str, result: str) -> None:
        """(x - rest) / y, which is whole but for rounding; x / y where that is infinite or nan."""
        kind, zero = type_of(dtype), constant(0.0, dtype)
        names = [self.fresh() for _ in range(9)]
        exact, multiple, quotient, lower, down, nearest, none, plain, signed = names
        self.emit(f"{multiple} = fsub {kind} {x}, {rest}")
        self.emit(f"{quotient} = fdiv {kind} {multiple}, {y}")
        self.emit(f"{lower} = fsub {kind} {quotient}, {constant(1.0, dtype)}")
        self.emit(f"{down} = select i1 {adjust}, {kind} {lower}, {kind} {quotient}")
        self.emit(f"{nearest} = {self.call(f'llvm.rint.{suffix(dtype)}', kind, [(kind, down)])}")
        self.emit(f"{plain} = fdiv {kind} {x}, {y}")
        self.emit(f"{signed} = {self.call(f'llvm.copysign.{suffix(dtype)}', kind, [(kind, nearest), (kind, plain)])}")
        self.emit(f"{none} = fcmp oeq {kind} {y}, {zero}")
        self.emit(f"{exact} = fcmp oeq {kind} {nearest}, {zero}")
        kept = self.fresh()
        self.emit(f"{kept} = select i1 {exact}, {kind} {signed}, {kind} {nearest}")
        self.emit(f"{result} = select i1 {none}, {kind} {plain}, {kind} {kept}")

    def convert(self, value: str, source: Any, target: Any, result: str) -> None:
        """A value as another dtype.  A float beyond an integer's range becomes the nearest one: never undefined."""
        old, new = type_of(source), type_of(target)
        signed = source.kind == "i"
        if target.kind == "b":
            tests = {"f": f"fcmp une {old} {value}, {constant(0.0, source)}", "b": f"or i1 {value}, false"}
            self.emit(f"{result} = {tests.get(source.kind, f'icmp ne {old} {value}, 0')}")
        elif source.kind == "f" and target.kind == "f":
            how = "fpext" if source.itemsize < target.itemsize else "fptrunc"
            self.emit(f"{result} = fadd {new} {value}, {constant(-0.0, target)}" if old == new
                      else f"{result} = {how} {old} {value} to {new}")  # fmt: skip
        elif source.kind == "f":
            function = f"llvm.fpto{'s' if target.kind == 'i' else 'u'}i.sat.{new}.{suffix(source)}"
            self.emit(f"{result} = {self.call(function, new, [(old, value)])}")
        elif target.kind == "f":
            self.emit(f"{result} = {'s' if signed else 'u'}itofp {old} {value} to {new}")
        elif old == new:
            self.emit(f"{result} = or {new} {value}, 0")
        else:
            wider = source.kind == "b" or source.itemsize < target.itemsize
            how = ("sext" if signed else "zext") if wider else "trunc"
            self.emit(f"{result} = {how} {old} {value} to {new}")

    def reinterpret(self, value: str, source: Any, target: Any, result: str) -> None:
        """The same bits as another dtype of the same size."""
        old, new = type_of(source), type_of(target)
        self.emit(f"{result} = or {new} {value}, 0" if old == new else f"{result} = bitcast {old} {value} to {new}")
