"""The printer to C: a listing to read, and for compilers the same kernel as the printer to LLVM writes.

Compile it with `-fwrapv` (integers wrap around), `-fno-math-errno`, and no `-ffast-math`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import CompileError
from ..loops.ir import Accumulate, For, Index, Kernel, Let, Parameter, Prefetch, Statement, Store, statements
from ..loops.legalise import elementary
from ..loops.maths import BOOL, EXPANSIONS, FLOAT, expansion
from ..loops.scalar import identity

TYPES = {"float16": "_Float16", "float32": "float", "float64": "double", "bool": "bool"}
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "lt": "<", "le": "<=", "eq": "==", "quotient": "/",
}  # fmt: skip
LIBRARY = {
    "abs": "fabs", "sqrt": "sqrt", "floor": "floor", "rint": "rint", "copysign": "copysign", "pow": "pow",
    "atan2": "atan2", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos",
    "tanh": "tanh", "erf": "erf", "remainder": "fmod",
}  # fmt: skip
UPDATES = {"sum": "+=", "prod": "*="}
PRECEDENCE = {"+": 1, "*": 2, "//": 2, "%": 2}
INDENT = "    "


def c_source(kernel: Kernel, name: str | None = None) -> str:
    """A file with one function, `void name(parameters, lo, hi)`, and the functions that it uses.

    >>> from minigrad.compile.loops.ir import *
    >>> lets = [Let("x", "load", ("a", "i"), FLOAT), Let("y", "mul", ("x", 2.0), FLOAT)]
    >>> body = [For("i", "lo", "hi", [*lets, Store("b", "i", "y")])]
    >>> kernel = Kernel("twice", [Parameter("a", FLOAT, 8, "in"), Parameter("b", FLOAT, 8, "out")], body, 8, "elements")
    >>> print(c_source(kernel).split("\\n\\n")[-1])
    void twice(const float *restrict a, float *restrict b, int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; i++) {
            const float x = a[i];
            const float y = x * 2.0f;
            b[i] = y;
        }
    }
    """
    return CPrinter(kernel, name).file()


class CPrinter:
    """Prints one kernel.  The functions that it needs besides are collected on the way."""

    headers: tuple[str, ...] = ("math.h", "stdbool.h", "stdint.h", "string.h")
    inline = "static inline "
    restrict = "*restrict "
    byte, integer = "uint8_t", "int64_t"
    types = TYPES

    def __init__(self, kernel: Kernel, name: str | None = None) -> None:
        self.kernel = elementary(kernel, written_out=False)
        self.name = name or kernel.name
        self.kinds: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.helpers: dict[str, str] = {}

    def file(self) -> str:
        """Everything, in the order in which C wants it."""
        function = self.function()
        parts = ["\n".join(f"#include <{header}>" for header in self.headers), *self.helpers.values(), function]
        return "\n\n".join(parts) + "\n"

    def function(self) -> str:
        """The kernel's own function."""
        body = self.block(self.kernel.body)
        return "\n".join([f"void {self.name}({self.arguments()}) {{", *indented(body), "}"])

    def arguments(self) -> str:
        """The parameters, and the range."""
        written = {s.buffer for s in statements(self.kernel.body) if isinstance(s, (Store, Accumulate))}
        listed = [self.pointer(p, p.name not in written) for p in self.kernel.parameters]
        return ", ".join([*listed, f"{self.integer} lo", f"{self.integer} hi"])

    def pointer(self, parameter: Parameter, read_only: bool) -> str:
        """A parameter as C declares it."""
        return f"{'const ' * read_only}{self.stored_type(parameter.dtype)} {self.restrict}{parameter.name}"

    # Types and numbers ------------------------------------------------------------------------------------------------

    def type(self, dtype: Any) -> str:
        """A dtype in C's words."""
        return self.types.get(dtype.name, f"{dtype.name}_t")

    def stored_type(self, dtype: Any) -> str:
        """What a value is in memory: a bool may be any byte there."""
        return self.byte if dtype.kind == "b" else self.type(dtype)

    def value(self, operand: Any, dtype: Any) -> str:
        """An operand: a name, or a number of a dtype."""
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

    def index(self, index: Index, around: int = 0) -> str:
        """A position; in parentheses if what is around it binds more tightly."""
        if not isinstance(index, tuple):
            return str(index)
        op, left, right = index
        if op == "min":
            kind = self.integer
            self.helper("least", f"{kind} least({kind} a, {kind} b) {{\n{INDENT}return a < b ? a : b;\n}}")
            return f"least({self.index(left)}, {self.index(right)})"
        rank = PRECEDENCE[op]
        text = f"{self.index(left, rank)} {op[0]} {self.index(right, rank + (op != '+'))}"
        return f"({text})" if rank < around else text

    # Statements -------------------------------------------------------------------------------------------------------

    def block(self, body: list[Statement]) -> list[str]:
        """The lines of a body."""
        lines: list[str] = []
        for statement in body:
            lines += self.statement(statement)
        return lines

    def statement(self, statement: Statement) -> list[str]:
        """The lines of a statement."""
        if isinstance(statement, Let):
            self.kinds[statement.name] = statement.dtype
            return [f"const {self.type(statement.dtype)} {statement.name} = {self.expression(statement)};"]
        if isinstance(statement, For):
            return self.loop(statement)
        place = f"{statement.buffer}[{self.index(statement.index)}]"
        if isinstance(statement, Prefetch):
            return [f"__builtin_prefetch(&{place});"]
        dtype = self.kinds[statement.buffer]
        value = self.value(statement.value, dtype)
        if isinstance(statement, Accumulate):
            return [self.update(place, statement.op, value, dtype)]
        return [f"{place} = {value};"]

    def loop(self, loop: For) -> list[str]:
        """A loop, and before it what its accumulators start with."""
        lines = self.starts(loop)
        return [*lines, self.head(loop), *indented(self.body(loop)), "}"]

    def head(self, loop: For, start: str = "", step: str = "") -> str:
        """The first line of a loop; each of several workers has its own start and goes on by their number."""
        i, low, high = loop.variable, self.index(loop.low, 1 if start else 0), self.index(loop.high)
        forward = f"{i} += {step}" if step else f"{i}++"
        first = start if low == "0" and start else f"{low} + {start}" if start else low
        return f"for ({self.integer} {i} = {first}; {i} < {high}; {forward}) {{"

    def starts(self, loop: For) -> list[str]:
        """The accumulators' declarations."""
        lines = []
        for a in loop.accumulators:
            self.kinds[a.name] = a.dtype
            lines.append(f"{self.type(a.dtype)} {a.name} = {self.value(identity(a.op, a.dtype), a.dtype)};")
        return lines

    def body(self, loop: For) -> list[str]:
        """What a loop does in each round."""
        updates = [self.update(a.name, a.op, self.value(a.value, a.dtype), a.dtype) for a in loop.accumulators]
        return [*self.block(loop.body), *updates]

    def update(self, place: str, op: str, value: str, dtype: Any) -> str:
        """One step of a reduction."""
        if op in UPDATES:
            return f"{place} {UPDATES[op]} {value};"
        return f"{place} = {self.extreme(op, dtype)}({place}, {value});"

    # Expressions ------------------------------------------------------------------------------------------------------

    def expression(self, let: Let) -> str:
        """The right side of a Let."""
        op, dtype = let.op, let.dtype
        if op == "load":
            buffer, index = let.args
            place = f"{buffer}[{self.index(index)}]"
            return f"{place} != 0" if dtype.kind == "b" else place
        if op == "index":
            return f"({self.type(dtype)})({self.index(let.args[0])})"
        if op == "select":
            condition, x, y = let.args
            return f"{self.value(condition, BOOL)} ? {self.value(x, dtype)} : {self.value(y, dtype)}"
        given = next((self.kinds[a] for a in let.args if isinstance(a, str)), dtype)
        operands = [self.value(a, given) for a in let.args]
        if op in ("cast", "bitcast", "whole"):
            return self.conversion(op, given, dtype, operands[0])
        if op in LIBRARY and given.kind == "f":
            return f"{self.library(op, given)}({', '.join(operands)})"
        if op in SYMBOLS:
            return f"{operands[0]} {SYMBOLS[op]} {operands[1]}"
        return self.rest(op, given, operands)

    def rest(self, op: str, dtype: Any, operands: list[str]) -> str:
        """What needs more than a symbol."""
        x = operands[0]
        if op == "neg":
            return f"-{x}"
        if op == "invert":
            return f"!{x}" if dtype.kind == "b" else f"~{x}"
        if op == "abs":
            return f"{x} < 0 ? -{x} : {x}"
        if op == "remainder":
            return f"{x} % {operands[1]}"
        if op in ("max", "min"):
            return f"{self.extreme(op, dtype)}({x}, {operands[1]})"
        raise CompileError(f"there is no native code for {op} of {dtype}")

    def library(self, op: str, dtype: Any) -> str:
        """The name of a function of a float: C's, or one of ours that is written out."""
        if op in EXPANSIONS and dtype == FLOAT:
            if f"own_{op}" not in self.helpers:
                self.define(op)
            return f"own_{op}"
        return LIBRARY[op] + ("f" if dtype.itemsize == 4 else "")

    def define(self, op: str) -> None:
        """Write out a function of float32."""
        inside = type(self)(Kernel(op, [], [], 0, "elements"))
        inside.helpers, inside.kinds = self.helpers, {"x": FLOAT}
        lines = inside.block([*expansion(op, "x", "y")])
        text = "\n".join([f"float own_{op}(float x) {{", *indented([*lines, "return y;"]), "}"])
        self.helper(f"own_{op}", text)

    def helper(self, name: str, text: str) -> str:
        """A function that stands before the kernel."""
        self.helpers.setdefault(name, self.inline + text)
        return name

    def extreme(self, op: str, dtype: Any) -> str:
        """The name of a maximum or minimum, which is nan if one of the two is."""
        kind, sign = self.type(dtype), ">" if op == "max" else "<"
        test = f"a {sign} b || a != a" if dtype.kind == "f" else f"a {sign} b"
        name = f"{op}_{dtype.name}"
        return self.helper(name, f"{kind} {name}({kind} a, {kind} b) {{\n{INDENT}return {test} ? a : b;\n}}")

    def conversion(self, op: str, source: Any, target: Any, value: str) -> str:
        """A value as another dtype."""
        old, new = self.type(source), self.type(target)
        if op == "bitcast":
            name = f"{target.name}_of_bits"
            lines = [f"{new} y;", "memcpy(&y, &x, sizeof y);", "return y;"]
            return self.helper(name, "\n".join([f"{new} {name}({old} x) {{", *indented(lines), "}"])) + f"({value})"
        if target.kind == "b":
            return f"{value} != 0"
        if source.kind == "f" and target.kind in "iu":
            return f"{self.nearest(source, target)}({value})"
        return f"({new}){value}"

    def nearest(self, source: Any, target: Any) -> str:
        """The name of a cast that makes the nearest integer of a float beyond the range, and 0 of a nan."""
        if source.itemsize == 2:
            source = FLOAT
        limits, old, new = np.iinfo(target), self.type(source), self.type(target)
        name = f"{target.name}_of_{source.name}"
        low, high = (self.value(float(x), source) for x in (int(limits.min), int(limits.max) + 1))
        least, most = (self.value(int(x), target) for x in (limits.min, limits.max))
        lines = [
            "if (x != x) return 0;",
            f"if (x <= {low}) return {least};",
            f"return x >= {high} ? {most} : ({new})x;",
        ]
        return self.helper(name, "\n".join([f"{new} {name}({old} x) {{", *indented(lines), "}"]))


def indented(lines: list[str]) -> list[str]:
    """Lines, a step further to the right."""
    return [INDENT + line for line in lines]
