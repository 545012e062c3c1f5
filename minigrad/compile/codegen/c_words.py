"""The words of C for the types, numbers, positions and operations of the loop language."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...support.errors import CompileError
from ..loops.index import ATOM, INDEXING, fold
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Let, Store, Writer, statements
from ..loops.operations import OPERATIONS, REDUCTIONS, Operation, identity

TYPES = {dtype: f"{name}_t" for name, dtype in dtypes.ALL.items()}
TYPES |= {dtypes.float16: "_Float16", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "bool"}
UPDATES = {"sum": "+=", "prod": "*="}
INDENT = "    "


class CWords:
    """Writes types, numbers, positions and operations in C, and collects the helper functions that they call."""

    language = "c"
    restrict = "*restrict "
    inline = "static inline "
    byte, integer = "uint8_t", "int64_t"
    types = TYPES
    kinds: dict[str, Any]  # the dtypes of values and memory
    writes_functions = True  # functions of float32 are written out, because compilers then vectorise them

    def __init__(self) -> None:
        self.helpers: dict[str, str] = {}

    def type(self, dtype: Any) -> str:
        return self.types[dtype]

    def kind(self, s: Let | Accumulator) -> str:
        """The type of a value, or of a vector: `floatx8` has eight numbers."""
        return self.type(s.dtype) + f"x{s.lanes}" * (s.lanes > 1)

    def stored_type(self, dtype: Any) -> str:
        """The type of a value in memory, where a bool may be any byte."""
        return self.byte if dtype.kind == "b" else self.type(dtype)

    def arguments(self, kernel: Kernel) -> str:
        """The parameters of a function: pointers, and the range."""
        written = {s.buffer for s in statements(kernel.body) if isinstance(s, (Store, Accumulate))}
        kinds = [f"{'const ' * (p.name not in written)}{self.stored_type(p.dtype)}" for p in kernel.parameters]
        pointers = [f"{kind} {self.restrict}{p.name}" for kind, p in zip(kinds, kernel.parameters)]
        return ", ".join([*pointers, f"{self.integer} lo", f"{self.integer} hi"])

    def value(self, operand: Any, dtype: Any) -> str:
        """An operand: a name, or a number in a dtype."""
        if isinstance(operand, str):
            return operand
        if dtype.kind == "b":
            return "true" if operand else "false"
        if dtype.kind in "iu":
            number = int(operand)
            if number == np.iinfo(np.int64).min:
                return f"({number + 1}LL - 1)"
            return f"{number}LL" if abs(number) >= 1 << 31 else str(number)
        with np.errstate(over="ignore"):
            real = dtype.type(operand)
        if not np.isfinite(real):
            return "NAN" if np.isnan(real) else "INFINITY" if real > 0 else "-INFINITY"
        text = f"{real!s}f" if dtype.itemsize == 4 else str(real)
        return f"({self.type(dtype)}){text}" if dtype.itemsize == 2 else text

    def helper(self, result: str, name: str, parameters: str, lines: list[str]) -> str:
        """Define a function before the kernel, and return its name."""
        head = f"{self.inline}{result} {name}({parameters}) {{"
        self.helpers.setdefault(name, "\n".join([head, *indented(lines), "}"]))
        return name

    def read(self, place: str, dtype: Any) -> str:
        """A value from memory, where every byte except 0 is a true bool."""
        return f"{place} != 0" if dtype.kind == "b" else place

    def place(self, buffer: str, index: Index) -> str:
        """An element of a buffer."""
        return f"{buffer}[{self.index(index)}]"

    def index(self, index: Index, around: int = 0) -> str:
        """A position, in parentheses if the operation around it binds more tightly."""
        return _bound(*fold(index, lambda leaf: (str(leaf), ATOM), self.joined), around)

    def joined(self, op: str, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
        """The text of an operation on indices, and how tightly it binds."""
        rank = INDEXING[op].rank
        if op == "min":
            kind = self.integer
            least = self.helper(kind, "least", f"{kind} a, {kind} b", ["return a < b ? a : b;"])
            return f"{least}({left[0]}, {right[0]})", rank
        return f"{_bound(*left, rank)} {op[0]} {_bound(*right, rank + (op != '+'))}", rank

    # Operations -------------------------------------------------------------------------------------------------------

    def applied(self, operation: Operation, dtype: Any, operands: list[str]) -> str:
        """An operation on operands of a dtype, from its text in the table."""
        text = operation.text(self.language, dtype.kind) or operation.text("c", dtype.kind)
        if not text:
            raise CompileError(f"there is no native code for {operation.name} of {dtype}")
        if text.startswith("return "):
            name, kind = f"{operation.name}_{dtype.name}", self.type(dtype)
            parameters = ", ".join([f"{kind} {letter}" for letter in "abc"[: operation.arity]])
            text = self.helper(kind, name, parameters, [text.format(x="a", y="b", z="c")])
        elif not text.isidentifier():
            return text.format(**dict(zip("xyz", operands)))
        elif operation.written_out and dtype == dtypes.float32 and self.writes_functions:
            text = self.written_out(operation)
        elif dtype == dtypes.float32:
            text += "f"
        return f"{text}({', '.join(operands)})"

    def starts(self, loop: For) -> list[str]:
        """The declarations of a loop's accumulators and running totals."""
        totals = [*loop.accumulators, *loop.totals]
        self.kinds |= {total.name: total.dtype for total in totals}
        return [self.declared(total) for total in totals]

    def declared(self, a: Accumulator) -> str:
        """The declaration of an accumulator or of a running total, with its first value."""
        start = identity(a.op, a.dtype) if a.start is None else a.start
        return f"{self.kind(a)} {a.name} = {self.value(start, a.dtype)};"

    def written_out(self, operation: Operation) -> str:
        """Define a function of float32 in terms of arithmetic, and return its name."""
        name, given, printer = f"own_{operation.name}", ("x", "w")[: operation.arity], type(self)
        if name not in self.helpers:
            inside, writer = printer(Kernel(name, [], [], 0, "elements")), Writer("y")  # type: ignore[call-arg]
            inside.helpers, inside.kinds = self.helpers, dict.fromkeys(given, dtypes.float32)
            assert operation.written_out is not None
            result = operation.written_out(writer, *given)
            lines = inside.block([*writer.ending(str(result), "y")])  # type: ignore[attr-defined]
            self.helper("float", name, ", ".join(f"float {x}" for x in given), [*lines, "return y;"])
        return name

    def update(self, place: str, op: str, value: Any, dtype: Any) -> str:
        """One step of a reduction."""
        value = self.value(value, dtype)
        if op in UPDATES:
            return f"{place} {UPDATES[op]} {value};"
        return f"{place} = {self.applied(OPERATIONS[REDUCTIONS[op]], dtype, [place, value])};"

    def conversion(self, op: str, source: Any, target: Any, value: str) -> str:
        """A value as another dtype."""
        old, new = self.type(source), self.type(target)
        if op == "bitcast":
            lines = [f"{new} y;", "memcpy(&y, &x, sizeof y);", "return y;"]
            return self.helper(new, f"{target.name}_of_bits", f"{old} x", lines) + f"({value})"
        if target.kind == "b":
            return f"{value} != 0"
        if source.kind == "f" and target.kind in "iu":
            return f"{self.nearest(source, target)}({value})"
        return f"({new}){value}"

    def nearest(self, source: Any, target: Any) -> str:
        """Define a cast of floats that returns the nearest integer, and 0 for nan; return its name."""
        if source.itemsize == 2:
            source = dtypes.float32
        limits, old, new = np.iinfo(target), self.type(source), self.type(target)
        low, high = (self.value(float(x), source) for x in (int(limits.min), int(limits.max) + 1))
        least, most = (self.value(int(x), target) for x in (limits.min, limits.max))
        lines = [
            "if (x != x) return 0;",
            f"if (x <= {low}) return {least};",
            f"return x >= {high} ? {most} : ({new})x;",
        ]
        return self.helper(new, f"{target.name}_of_{source.name}", f"{old} x", lines)


def _bound(text: str, rank: int, around: int) -> str:
    """A text, in parentheses if its rank is below the rank around it."""
    return f"({text})" if rank < around else text


def indented(lines: list[str]) -> list[str]:
    """Lines, indented by one step."""
    return [INDENT + line for line in lines]
