"""Prints a kernel as C: a listing to read, which compiles to the same kernel as the LLVM text.

A kernel with vectors is printed, too, but no compiler reads the listing.
Compile it with `-fwrapv` (integers wrap around), `-fno-math-errno`, `-ffp-contract=off`
(a product and a sum are two operations), and without `-ffast-math`.
"""

from __future__ import annotations

from ..loops.ir import Accumulate, For, Kernel, Let, Running, Store, Walk
from ..loops.legalise import legalise
from ..loops.operations import OPERATIONS, operand_dtypes
from .c_words import CWords, indented

HEADERS = ("math.h", "stdbool.h", "stdint.h", "string.h")


def c_source(kernel: Kernel, name: str | None = None) -> str:
    """A C file with the function `void name(parameters, lo, hi)` and the functions that it calls.

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
    printer = CPrinter(kernel, name)
    function = printer.function()
    includes = "\n".join(f"#include <{header}>" for header in HEADERS)
    return "\n\n".join([includes, *printer.helpers.values(), function]) + "\n"


class CPrinter(CWords, Walk):
    """Prints one kernel: one method per kind of statement returns its lines."""

    def __init__(self, kernel: Kernel, name: str | None = None) -> None:
        super().__init__()
        self.kernel = legalise(kernel, written_out=False)
        self.name = name or kernel.name
        self.kinds = {p.name: p.dtype for p in kernel.parameters}

    def function(self) -> str:
        """The function of the kernel."""
        head = f"void {self.name}({self.arguments(self.kernel)}) {{"
        return "\n".join([head, *indented(self.block(self.kernel.body)), "}"])

    def let(self, let: Let) -> list[str]:
        self.kinds[let.name] = let.dtype
        return [f"const {self.kind(let)} {let.name} = {self.expression(let)};"]

    def store(self, store: Store) -> list[str]:
        value = self.value(store.value, self.kinds[store.buffer])
        return [f"{self.place(store.buffer, store.index)} = {value};"]

    def accumulate(self, update: Accumulate) -> list[str]:
        at, dtype = self.place(update.buffer, update.index), self.kinds[update.buffer]
        return [self.update(at, update.op, update.value, dtype)]

    def running(self, running: Running) -> list[str]:
        return [self.update(running.name, running.op, running.value, running.dtype)]

    def loop(self, loop: For) -> list[str]:
        return [*self.starts(loop), self.head(loop), *indented(self.body(loop)), "}"]

    def head(self, loop: For) -> str:
        """The first line of a loop."""
        i, low, high = loop.variable, self.index(loop.low), self.index(loop.high)
        until, step = f"{i} < {high}", f"{i}++"
        if loop.stride > 1:
            until, step = f"{i} + {loop.stride - 1} < {high}", f"{i} += {loop.stride}"
        return f"for ({self.integer} {i} = {low}; {until}; {step}) {{"

    def body(self, loop: For) -> list[str]:
        """The statements of one iteration."""
        ends = [self.update(a.name, a.op, a.value, a.dtype) for a in loop.accumulators]
        return [*self.block(loop.body), *ends]

    def expression(self, let: Let) -> str:
        """The right side of a Let."""
        op, dtype = let.op, let.dtype
        if op == "load":
            return self.read(self.place(*let.args), dtype)
        if op == "index":
            lane = " + lane" * (let.lanes > 1)
            return f"({self.kind(let)})({self.index(let.args[0])}{lane})"
        if op not in OPERATIONS:  # a transform has written it
            return f"{op}({', '.join(map(str, let.args))})"
        kinds = operand_dtypes(let, self.kinds.__getitem__)
        operands = [self.value(operand, kind) for operand, kind in zip(let.args, kinds)]
        if op in ("cast", "bitcast", "whole"):
            return self.conversion(op, kinds[0], dtype, operands[0])
        return self.applied(OPERATIONS[op], kinds[-1], operands)
