"""Verifies a kernel: names, types and indices are right, and no load or store goes beyond its memory.

Kernels of the compiler are right by construction.  Tests of the compiler check it: see `tests/compile/partitions.py`.

The smallest and largest value of an index follow from the ranges of the loop variables in it.  Machine code computes
indices in 64 bits, so every part of an index must fit into 64 bits for the range to be right.  A kernel may compute
an index from memory only by the operation "position", whose result is inside a given dimension for every number.

Parameters, variables, values and accumulators share one namespace, and a name in scope is never reused.  Code that is
never reached is verified as well, except for its bounds, because printers print it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.compile.loops.index import fold
from minigrad.compile.loops.ir import (
    LONG,
    METHODS,
    Accumulate,
    For,
    Kernel,
    Let,
    Parameter,
    Running,
    Statement,
    Store,
    Walk,
)
from minigrad.compile.loops.operations import OPERATIONS, REDUCTIONS, Operation, operand_dtypes
from minigrad.core import dtypes
from minigrad.support.errors import CompileError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
GENERATED = re.compile(r".*_[0-9]+")  # the names that `legalise` generates
ROLES = {"in": "r", "out": "rw", "inout": "rw", "partial": "rw", "scratch": "rw"}
PARALLEL = ("elements", "rows", "chunks")
TYPES = set(dtypes.ALL.values())
NUMBERS = (bool, int, float)
GIVES: dict[str, Callable[[Any, Any], bool]] = {  # whether operands of a dtype give this one
    "same": lambda given, dtype: given == dtype,
    "bool": lambda given, dtype: dtype.kind == "b",
    "any": lambda given, dtype: True,
    "bits": lambda given, dtype: dtype.kind != "b" and given.itemsize == dtype.itemsize,
}
LEAST, MOST = -(1 << 63), (1 << 63) - 1  # the limits of 64 bits
DEEPEST_LOOP, DEEPEST_INDEX = 16, 200  # LLVM recurses into both
Range = tuple[int, int]  # the smallest and the largest value


class Scope(NamedTuple):
    """The definitions at one place: all names, types of values, ranges of variables."""

    names: set[str]
    values: dict[str, Any]
    ranges: dict[str, Range]
    reached: bool = True  # False in a loop without rounds
    depth: int = 0  # the number of loops around it

    def define(self, name: Any) -> None:
        """Add a name that is not in scope yet."""
        if not isinstance(name, str) or not NAME.fullmatch(name) or GENERATED.fullmatch(name):
            raise wrong(f"the name {name!r}")
        if name in self.names:
            raise wrong(f"the name {name!r} is used twice")
        self.names.add(name)


def verify(kernel: Kernel) -> None:
    """Raise a `CompileError` if the kernel is not valid."""
    if not isinstance(kernel.name, str) or not NAME.fullmatch(kernel.name):
        raise wrong(f"its name {kernel.name!r}")
    if kernel.parallel not in PARALLEL or not _is_count(kernel.units):
        raise wrong("its units or how they are shared")
    scope = Scope({"lo", "hi"}, {}, {"lo": (0, kernel.units), "hi": (0, kernel.units)})
    for parameter in kernel.parameters:
        scope.define(parameter.name)
        if parameter.dtype not in TYPES or parameter.role not in ROLES or not _is_count(parameter.size):
            raise wrong(f"the parameter {parameter.name}")
    _Verifier(kernel, scope).block(kernel.body)


class _Verifier(Walk):
    """Checks statements one after the other, and adds their definitions to the scope."""

    def __init__(self, kernel: Kernel, scope: Scope) -> None:
        self.buffers = {parameter.name: parameter for parameter in kernel.parameters}
        self.scope = scope

    def visit(self, statement: Statement) -> None:
        if statement.__class__ not in METHODS:
            raise wrong(f"a statement of the kind {type(statement).__name__}")
        super().visit(statement)

    def store(self, statement: Store | Accumulate) -> None:
        buffer = self._access(statement.buffer, statement.index, write=True)
        self._operand(statement.value, buffer.dtype)

    def accumulate(self, update: Accumulate) -> None:
        self.store(update)
        _check_reduction(update.op, self.buffers[update.buffer].dtype)

    def running(self, running: Running) -> None:
        if not self.scope.depth or running.dtype not in TYPES:
            raise wrong(f"the running total {running.name}")
        _check_reduction(running.op, running.dtype)
        self._operand(running.value, running.dtype)
        self.scope.define(running.name)
        self.scope.values[running.name] = running.dtype

    def loop(self, loop: For) -> None:
        outside = self.scope
        if outside.depth == DEEPEST_LOOP or loop.steps.__class__ is not int or loop.steps < 1:
            raise wrong(f"a loop inside {outside.depth} loops, or with {loop.steps!r} steps")
        variables = {name: range for name, range in outside.ranges.items() if name not in outside.values}
        low, high = range_of(loop.low, variables)[0], range_of(loop.high, variables)[1]
        inside = Scope(
            {*outside.names}, {**outside.values}, {**outside.ranges}, outside.reached and high > low, outside.depth + 1
        )
        inside.define(loop.variable)
        inside.ranges[loop.variable] = (low, max(low, high - 1))
        for accumulator in loop.accumulators:
            outside.define(accumulator.name)
            inside.define(accumulator.name)
        self.scope = inside
        self.block(loop.body)
        for accumulator in loop.accumulators:
            if accumulator.dtype not in TYPES:
                raise wrong(f"the accumulator {accumulator.name}")
            _check_reduction(accumulator.op, accumulator.dtype)
            self._operand(accumulator.value, accumulator.dtype)
            outside.values[accumulator.name] = accumulator.dtype
        self.scope = outside

    def let(self, let: Let) -> None:
        if let.dtype not in TYPES or not isinstance(let.args, tuple):
            raise wrong(f"the type or the operands of {let.name}")
        operation = OPERATIONS.get(let.op)
        if let.op == "load" and len(let.args) == 2:
            buffer = self._access(*let.args, write=False)
            if buffer.dtype != let.dtype:
                raise wrong(f"{let.name} is a {let.dtype} and {buffer.name} holds {buffer.dtype}")
        elif let.op == "index" and len(let.args) == 1:
            range_of(let.args[0], self.scope.ranges)
        elif operation is not None and not operation.internal and len(let.args) == operation.arity:
            self._operation(operation, let)
        else:
            raise wrong(f"the operation {let.op!r} of {len(let.args)} operands")
        self.scope.define(let.name)
        self.scope.values[let.name] = let.dtype
        if let.op == "position":
            self.scope.ranges[let.name] = self._dimension(let)

    def _operation(self, operation: Operation, let: Let) -> None:
        values, dtype = self.scope.values, let.dtype
        needed = operand_dtypes(let, lambda name: values.get(name, dtype))
        for operand, each in zip(let.args, needed):
            self._operand(operand, each)
        given = needed[-1]
        right = given.kind in operation.takes and GIVES[operation.gives](given, dtype)
        if not right or (operation.gives == "bits" and not isinstance(let.args[0], str)):  # numbers have no bits
            raise wrong(f"{let.op} of {given} as {dtype}")

    @staticmethod
    def _dimension(let: Let) -> Range:
        """The range of a position, which is computed in 64 bits."""
        value, size = let.args
        if let.dtype != LONG or not isinstance(value, str) or not _is_count(size) or size == 0:
            raise wrong(f"a position of {value!r} as {let.dtype} in a dimension of {size!r}")
        return 0, size - 1

    def _access(self, name: Any, index: Any, write: bool) -> Parameter:
        buffer = self._buffer(name)
        if write and "w" not in ROLES[buffer.role]:
            raise wrong(f"it writes {name}, which it may only read")
        low, high = range_of(index, self.scope.ranges)
        if self.scope.reached and (low < 0 or high >= buffer.size):
            raise wrong(f"it goes from {low} to {high} in {name}, which has {buffer.size} elements")
        return buffer

    def _buffer(self, name: Any) -> Parameter:
        if name not in self.buffers:
            raise wrong(f"there is no memory named {name!r}")
        return self.buffers[name]

    def _operand(self, operand: Any, dtype: Any) -> None:
        """Check that an operand is a value or a number of this dtype."""
        values = self.scope.values
        if operand.__class__ in NUMBERS:
            if not _is_a(dtype, operand):
                raise wrong(f"{operand!r} is not a {dtype}")
        elif operand not in values:
            raise wrong(f"{operand!r} is not a value in scope")
        elif values[operand] != dtype:
            raise wrong(f"{operand!r} is a {values[operand]} where a {dtype} is needed")


def range_of(index: Any, ranges: dict[str, Range]) -> Range:
    """The smallest and the largest value of an index.

    >>> range_of(("+", ("*", "p", 10), ("min", "i", 5)), {"p": (0, 3), "i": (2, 9)})
    (2, 35)
    """
    _check_form(index)
    return fold(index, lambda leaf: _range_of_leaf(leaf, ranges), _joined)


def _check_form(index: Any, depth: int = 0) -> None:
    """Check that an index consists of operations on two operands, and is not too deep for a fold."""
    if index.__class__ is tuple:
        if len(index) != 3 or depth == DEEPEST_INDEX:
            raise wrong(f"the index {index!r}")
        for part in index[1:]:
            _check_form(part, depth + 1)


def _range_of_leaf(leaf: Any, ranges: dict[str, Range]) -> Range:
    if leaf.__class__ is int:
        return _in_64_bits(leaf, leaf)
    if not isinstance(leaf, str):
        raise wrong(f"the index {leaf!r}")
    if leaf not in ranges:
        raise wrong(f"there is no variable {leaf!r}")
    return ranges[leaf]


def _joined(operation: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    if operation == "+":
        return _in_64_bits(a + c, b + d)
    if operation == "*":
        products = (a * c, a * d, b * c, b * d)
        return _in_64_bits(min(products), max(products))
    if operation == "min":
        return min(a, c), min(b, d)
    if operation in ("//", "%") and c == d > 0 and a >= 0:  # where Python and machines agree
        if operation == "//":
            return a // c, b // c
        return (0, c - 1) if b - a >= c - 1 or a % c > b % c else (a % c, b % c)
    raise wrong(f"the index operation {operation!r} on values from {a} to {b} and from {c} to {d}")


def _in_64_bits(low: int, high: int) -> Range:
    if low < LEAST or high > MOST:
        raise wrong(f"an index from {low} to {high}, which 64 bits do not hold")
    return low, high


def wrong(what: str) -> CompileError:
    """The error for a kernel that is not valid."""
    return CompileError(f"this kernel is not valid: {what}")


def _is_count(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 1 << 48


def _is_a(dtype: Any, number: Any) -> bool:
    """Whether a number is a value of a dtype; for a float dtype, whether it can be rounded to one."""
    if dtype.kind == "f":
        return number.__class__ is float or abs(number) <= MOST
    if number.__class__ is float and not number.is_integer():
        return False
    low, high = (0, 1) if dtype.kind == "b" else (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
    return bool(low <= number <= high)


def _check_reduction(op: Any, dtype: Any) -> None:
    if op not in REDUCTIONS or dtype.kind == "b":
        raise wrong(f"the reduction {op!r} of {dtype}")
