"""Verifying a kernel: that every name is known, and that no load or store goes beyond its memory.

What the compiler makes passes by construction, and tests see to it that it does.  A kernel that comes from a file could
say anything, and machine code would do it.

An index is a whole number made of loop variables, so its smallest and largest value follow from the loops' ranges.
"""

from __future__ import annotations

import re
from typing import Any

from ...core import dtypes
from ...core.errors import CompileError
from .ir import OPERATIONS, REDUCTIONS, Accumulate, For, Kernel, Let, Prefetch, Statement, Store

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
ROLES = {"in": "r", "out": "rw", "inout": "rw", "partial": "rw", "scratch": "rw"}
PARALLEL = ("elements", "rows", "chunks")
TYPES = set(dtypes.ALL.values())
NUMBERS = (bool, int, float)
Range = tuple[int, int]  # the smallest and the largest value


def verify(kernel: Kernel) -> None:
    """Raise a `CompileError` that says what is wrong, if anything is."""
    if not NAME.fullmatch(kernel.name) or kernel.parallel not in PARALLEL or not _is_count(kernel.units):
        raise wrong("its name, its units or how they are shared")
    names = [parameter.name for parameter in kernel.parameters]
    if len({*names}) < len(names):
        raise wrong("two parameters of one name")
    for parameter in kernel.parameters:
        _check_name(parameter.name)
        if parameter.dtype not in TYPES or parameter.role not in ROLES or not _is_count(parameter.size):
            raise wrong(f"the parameter {parameter.name}")
    _Verifier(kernel).block(kernel.body, {}, {"lo": (0, kernel.units), "hi": (0, kernel.units)})


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.buffers = {parameter.name: parameter for parameter in kernel.parameters}

    def block(self, body: list[Statement], values: dict[str, Any], ranges: dict[str, Range]) -> None:
        """Check statements, given the types of the values and the ranges of the variables that are known before."""
        for statement in body:
            if isinstance(statement, Let):
                self._let(statement, values, ranges)
                values[statement.name] = statement.dtype
            elif isinstance(statement, (Store, Accumulate)):
                self._access(statement.buffer, statement.index, ranges, write=True)
                self._operand(statement.value, values)
                if isinstance(statement, Accumulate) and statement.op not in REDUCTIONS:
                    raise wrong(f"the reduction {statement.op!r}")
            elif isinstance(statement, Prefetch):
                self._buffer(statement.buffer)
                range_of(statement.index, ranges)
            elif isinstance(statement, For):
                self._loop(statement, values, ranges)
            else:
                raise wrong(f"a statement of the kind {type(statement).__name__}")

    def _loop(self, loop: For, values: dict[str, Any], ranges: dict[str, Range]) -> None:
        _check_name(loop.variable)
        low, high = range_of(loop.low, ranges)[0], range_of(loop.high, ranges)[1]
        inside = dict(values)
        if high > low:  # else it is never entered
            self.block(loop.body, inside, ranges | {loop.variable: (low, high - 1)})
            for accumulator in loop.accumulators:
                self._operand(accumulator.value, inside)
        for accumulator in loop.accumulators:
            _check_name(accumulator.name)
            if accumulator.op not in REDUCTIONS or accumulator.dtype not in TYPES:
                raise wrong(f"the accumulator {accumulator.name}")
            values[accumulator.name] = accumulator.dtype

    def _let(self, let: Let, values: dict[str, Any], ranges: dict[str, Range]) -> None:
        _check_name(let.name)
        if let.dtype not in TYPES:
            raise wrong(f"the type of {let.name}")
        if let.op == "load" and len(let.args) == 2:
            self._access(*let.args, ranges, write=False)
        elif let.op == "index" and len(let.args) == 1:
            range_of(let.args[0], ranges)
        elif let.op in OPERATIONS and len(let.args) == OPERATIONS[let.op]:
            for operand in let.args:
                self._operand(operand, values)
        else:
            raise wrong(f"the operation {let.op!r} of {len(let.args)} operands")

    def _access(self, buffer: Any, index: Any, ranges: dict[str, Range], write: bool) -> None:
        parameter = self._buffer(buffer)
        if write and "w" not in ROLES[parameter.role]:
            raise wrong(f"it writes {buffer}, which it may only read")
        low, high = range_of(index, ranges)
        if low < 0 or high >= parameter.size:
            raise wrong(f"it goes from {low} to {high} in {buffer}, which has {parameter.size} elements")

    def _buffer(self, name: Any) -> Any:
        if name not in self.buffers:
            raise wrong(f"there is no memory named {name!r}")
        return self.buffers[name]

    def _operand(self, operand: Any, values: dict[str, Any]) -> None:
        if operand.__class__ not in NUMBERS and operand not in values:
            raise wrong(f"{operand!r} is no value that is known there")


def range_of(index: Any, ranges: dict[str, Range]) -> Range:
    """The smallest and the largest value of an index.

    >>> range_of(("+", ("*", "p", 10), ("min", "i", 5)), {"p": (0, 3), "i": (2, 9)})
    (2, 35)
    """
    if index.__class__ is int:
        return index, index
    if isinstance(index, str):
        if index not in ranges:
            raise wrong(f"there is no variable {index!r}")
        return ranges[index]
    if not isinstance(index, tuple) or len(index) != 3:
        raise wrong(f"the index {index!r}")
    operation = index[0]
    (a, b), (c, d) = range_of(index[1], ranges), range_of(index[2], ranges)
    if operation == "+":
        return a + c, b + d
    if operation == "*":
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    if operation == "min":
        return min(a, c), min(b, d)
    if operation in ("//", "%") and c == d > 0 and a >= 0:  # where Python and machines agree
        if operation == "//":
            return a // c, b // c
        return (0, c - 1) if b - a >= c - 1 or a % c > b % c else (a % c, b % c)
    raise wrong(f"the index operation {operation!r} of what lies from {a} to {b} by {c} to {d}")


def wrong(what: str) -> CompileError:
    """The error of a kernel that is none."""
    return CompileError(f"this is no kernel that can be run: {what}")


def _is_count(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 1 << 48


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise wrong(f"the name {name!r}")
