"""Verifying a kernel: that names, types and indices are right, so that no load or store goes beyond its memory.

What the compiler makes passes by construction, and tests see to it that it does.  A kernel that comes from a file could
say anything, and machine code would do it.

An index is a whole number made of loop variables, so its smallest and largest value follow from the loops' ranges.
Machine code computes it in 64 bits, so every part of it has to fit there: only then is the range right.

Parameters, variables, values and accumulators share one namespace, and a name that is in scope is not used again.
Code that is never reached is verified like any other, except for its bounds: printers print it too.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ...core import dtypes
from ...core.errors import CompileError
from .ir import (
    OPERATIONS,
    REDUCTIONS,
    Accumulate,
    Accumulator,
    For,
    Index,
    Kernel,
    Let,
    Parameter,
    Prefetch,
    Statement,
    Store,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
GENERATED = re.compile(r".*_[0-9]+")  # what `elementary` calls the steps of an operation
ROLES = {"in": "r", "out": "rw", "inout": "rw", "partial": "rw", "scratch": "rw"}
PARALLEL = ("elements", "rows", "chunks")
TYPES = set(dtypes.ALL.values())
NUMBERS = (bool, int, float)
LEAST, MOST = -(1 << 63), (1 << 63) - 1  # of the integers that machine code computes indices in
DEEPEST_LOOP, DEEPEST_INDEX = 16, 200  # LLVM visits both by recursion
COMPARISONS = ("lt", "le", "eq")
# The kinds of dtypes that operations take; those that are not listed take floats only.
TAKES = {
    **dict.fromkeys(("add", "mul", "max", "min", "abs", *COMPARISONS), "fiub"),
    **dict.fromkeys(("sub", "neg", "floordiv", "mod", "floor", "rint"), "fiu"),
    **dict.fromkeys(("and", "or", "xor", "invert"), "iub"),
    **dict.fromkeys(("lshift", "rshift"), "iu"),
}
Range = tuple[int, int]  # the smallest and the largest value


class Scope(NamedTuple):
    """What is defined at one place: the names that are taken, types of values, ranges of variables."""

    names: set[str]
    values: dict[str, Any]
    ranges: dict[str, Range]
    reached: bool = True  # False in a loop without rounds
    depth: int = 0  # how many loops are around it

    def define(self, name: Any) -> None:
        """Take a name, which nothing in scope may have."""
        _check_name(name)
        if name in self.names:
            raise wrong(f"the name {name!r} is used twice")
        self.names.add(name)


def verify(kernel: Kernel) -> None:
    """Raise a `CompileError` that says what is wrong, if anything is."""
    if not isinstance(kernel.name, str) or not NAME.fullmatch(kernel.name):
        raise wrong(f"its name {kernel.name!r}")
    if kernel.parallel not in PARALLEL or not _is_count(kernel.units):
        raise wrong("its units or how they are shared")
    scope = Scope({"lo", "hi"}, {}, {"lo": (0, kernel.units), "hi": (0, kernel.units)})
    for parameter in kernel.parameters:
        scope.define(parameter.name)
        if parameter.dtype not in TYPES or parameter.role not in ROLES or not _is_count(parameter.size):
            raise wrong(f"the parameter {parameter.name}")
    _Verifier(kernel).block(kernel.body, scope)


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.buffers = {parameter.name: parameter for parameter in kernel.parameters}

    def block(self, body: list[Statement], scope: Scope) -> None:
        """Check statements, and add to the scope what they define."""
        for statement in body:
            if isinstance(statement, Let):
                self._let(statement, scope)
                scope.define(statement.name)
                scope.values[statement.name] = statement.dtype
            elif isinstance(statement, (Store, Accumulate)):
                buffer = self._access(statement.buffer, statement.index, scope, write=True)
                self._operand(statement.value, buffer.dtype, scope)
                if isinstance(statement, Accumulate):
                    _check_reduction(statement.op, buffer.dtype)
            elif isinstance(statement, Prefetch):
                size = self._buffer(statement.buffer).dtype.itemsize
                range_of(("*", statement.index, size), scope.ranges)  # it may be anywhere
            elif isinstance(statement, For):
                self._loop(statement, scope)
            else:
                raise wrong(f"a statement of the kind {type(statement).__name__}")

    def _loop(self, loop: For, scope: Scope) -> None:
        if scope.depth == DEEPEST_LOOP or loop.steps.__class__ is not int or loop.steps < 1:
            raise wrong(f"a loop in {scope.depth} others, or of {loop.steps!r} steps")
        low, high = range_of(loop.low, scope.ranges)[0], range_of(loop.high, scope.ranges)[1]
        inside = Scope(
            {*scope.names}, {**scope.values}, {**scope.ranges}, scope.reached and high > low, scope.depth + 1
        )
        inside.define(loop.variable)
        inside.ranges[loop.variable] = (low, max(low, high - 1))
        for accumulator in loop.accumulators:
            scope.define(accumulator.name)
            inside.define(accumulator.name)
        self.block(loop.body, inside)
        for accumulator in loop.accumulators:
            self._accumulator(accumulator, inside)
            scope.values[accumulator.name] = accumulator.dtype

    def _accumulator(self, accumulator: Accumulator, inside: Scope) -> None:
        if accumulator.dtype not in TYPES:
            raise wrong(f"the accumulator {accumulator.name}")
        _check_reduction(accumulator.op, accumulator.dtype)
        self._operand(accumulator.value, accumulator.dtype, inside)

    def _let(self, let: Let, scope: Scope) -> None:
        _check_name(let.name)
        if let.dtype not in TYPES or not isinstance(let.args, tuple):
            raise wrong(f"the type or the operands of {let.name}")
        if let.op == "load" and len(let.args) == 2:
            buffer = self._access(*let.args, scope, write=False)
            if buffer.dtype != let.dtype:
                raise wrong(f"{let.name} is a {let.dtype} and {buffer.name} holds {buffer.dtype}")
        elif let.op == "index" and len(let.args) == 1:
            range_of(let.args[0], scope.ranges)
        elif let.op in OPERATIONS and len(let.args) == OPERATIONS[let.op]:
            self._operation(let, scope)
        else:
            raise wrong(f"the operation {let.op!r} of {len(let.args)} operands")

    def _operation(self, let: Let, scope: Scope) -> None:
        """Check the types: the operands of an operation are of one, and so is its result, with few exceptions."""
        operands, dtype = let.args, let.dtype
        if let.op == "select":
            self._operand(operands[0], dtypes.bool, scope)
            given, operands = dtype, operands[1:]
        else:
            named = [a for a in operands if isinstance(a, str) and a in scope.values]
            given = scope.values[named[0]] if named else dtype
        for operand in operands:
            self._operand(operand, given, scope)
        if let.op == "bitcast":
            right = bool(named) and given.itemsize == dtype.itemsize and "b" not in (given.kind, dtype.kind)
        elif let.op in COMPARISONS:
            right = dtype == dtypes.bool
        elif let.op in ("select", "cast"):
            right = True
        else:
            right = given == dtype and given.kind in TAKES.get(let.op, "f")
        if not right:
            raise wrong(f"{let.op} of {given} as {dtype}")

    def _access(self, name: Any, index: Any, scope: Scope, write: bool) -> Parameter:
        buffer = self._buffer(name)
        if write and "w" not in ROLES[buffer.role]:
            raise wrong(f"it writes {name}, which it may only read")
        low, high = range_of(index, scope.ranges)
        if scope.reached and (low < 0 or high >= buffer.size):
            raise wrong(f"it goes from {low} to {high} in {name}, which has {buffer.size} elements")
        return buffer

    def _buffer(self, name: Any) -> Parameter:
        if name not in self.buffers:
            raise wrong(f"there is no memory named {name!r}")
        return self.buffers[name]

    def _operand(self, operand: Any, dtype: Any, scope: Scope) -> None:
        """Check that an operand is a value of this dtype, or a number that is one."""
        if operand.__class__ in NUMBERS:
            if not _is_a(dtype, operand):
                raise wrong(f"{operand!r} is not a {dtype}")
        elif operand not in scope.values:
            raise wrong(f"{operand!r} is no value that is known there")
        elif scope.values[operand] != dtype:
            raise wrong(f"{operand!r} is a {scope.values[operand]} where a {dtype} is needed")


def range_of(index: Any, ranges: dict[str, Range], depth: int = 0) -> Range:
    """The smallest and the largest value of an index.

    >>> range_of(("+", ("*", "p", 10), ("min", "i", 5)), {"p": (0, 3), "i": (2, 9)})
    (2, 35)
    """
    low, high = _range_of(index, ranges, depth)
    if low < LEAST or high > MOST:
        raise wrong(f"an index from {low} to {high}, which 64 bits do not hold")
    return low, high


def _range_of(index: Index, ranges: dict[str, Range], depth: int) -> Range:
    if index.__class__ is int:
        return index, index
    if isinstance(index, str):
        if index not in ranges:
            raise wrong(f"there is no variable {index!r}")
        return ranges[index]
    if not isinstance(index, tuple) or len(index) != 3 or depth == DEEPEST_INDEX:
        raise wrong(f"the index {index!r}")
    operation = index[0]
    (a, b), (c, d) = (range_of(part, ranges, depth + 1) for part in index[1:])
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
    """The error of a kernel that is not a valid one."""
    return CompileError(f"this is no kernel that can be run: {what}")


def _is_count(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 1 << 48


def _is_a(dtype: Any, number: Any) -> bool:
    """Whether a number is a value of a dtype; of a float, whether it can be rounded to one."""
    if dtype.kind == "f":
        return number.__class__ is float or abs(number) <= MOST
    if number.__class__ is float and not number.is_integer():
        return False
    low, high = (0, 1) if dtype.kind == "b" else (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
    return bool(low <= number <= high)


def _check_reduction(op: Any, dtype: Any) -> None:
    if op not in REDUCTIONS or dtype.kind == "b":
        raise wrong(f"the reduction {op!r} of {dtype}")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name) or GENERATED.fullmatch(name):
        raise wrong(f"the name {name!r}")
