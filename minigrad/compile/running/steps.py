"""The steps of a run: those in machine code, what steps cost, and how they are called.

A matrix product that BLAS computes without copies has the sizes, strides and pieces that machine code needs.  Lists of
steps run in a single call: Python calls a list once, and machine code calls each of its steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from ctypes import addressof, c_char
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import float32
from ...core.primitive import P
from ...devices.blas import LOWERED, Blas, blas
from ...devices.registry import CPU
from ...devices.stacks import multiplies
from ...devices.threads import in_blocks
from ...support.context import setting, switched_variable
from ...support.source import ON_BEHALF_OF, caller
from ..codegen.step_code import (
    PLAIN,
    PRODUCT_FIELDS,
    ROUND_FIELDS,
    STACK,
    THREAD_FIELDS,
    TURNED,
    product_function,
    rounds_function,
    threads_functions,
)
from ..fusion.count import Count, functions_of, kept_by
from ..nodes.thresholds import (
    DIRECT_ELEMENTS,
    DIRECT_TERMS,
    FEWEST_DIRECT_COLUMNS,
    FLOP,
    LONGEST_STACK,
    MOST_DIRECT_ROWS,
    POOLED_BYTES,
    PRODUCT_FLOP,
)
from ..nodes.view import row_major
from .plan import Blocked, Buffer, Call, Check, Launch, Plan, Read, Step

# The kernels of OpenBLAS for small products.
SMALL_KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}


@dataclass(frozen=True)
class Matrix:
    """A matrix in a buffer, from an element on.  Its rows are `step` elements apart, or its columns if it is turned."""

    buffer: int
    offset: int
    step: int
    turned: bool = False

    def after(self, rows: int, columns: int) -> Matrix:
        """The matrix without its first `rows` rows and `columns` columns."""
        down, right = (1, self.step) if self.turned else (self.step, 1)
        return replace(self, offset=self.offset + rows * down + columns * right)


@dataclass(frozen=True, eq=False)
class Product:
    """The products of a stack of m × k matrices with k × n matrices.

    `stack` has a row for each: where it begins in both operands and in the result, in elements after the first one.
    """

    left: Matrix
    right: Matrix
    out: Matrix
    m: int
    n: int
    k: int
    dtype: Any
    stack: Any

    def pieces(self, count: int, least: int) -> list[Product]:
        """The same work in at most `count` pieces: of the stack, or of the longer side of the result."""
        if len(self.stack) > 1:
            return [replace(self, stack=self.stack[low:high]) for low, high in ranges(len(self.stack), count, 1)]
        if self.m >= self.n:
            return [
                replace(self, left=self.left.after(low, 0), out=self.out.after(low, 0), m=high - low)
                for low, high in ranges(self.m, count, least)
            ]
        return [
            replace(self, right=self.right.after(0, low), out=self.out.after(0, low), n=high - low)
            for low, high in ranges(self.n, count, least)
        ]

    def blocks(self) -> list[Product]:
        """The same work as products that OpenBLAS computes directly on the operands.

        For AVX-512 it has such kernels for small products.  If the right factor is transposed, the result of a small
        product has at most 1024 elements; larger products copy that factor first, which takes as long as multiplying
        it by 16 rows.
        """
        most = min(DIRECT_ELEMENTS // self.m, DIRECT_TERMS // (self.m * self.k))
        copied = self.right.turned and not self.left.turned and 1 < self.m <= MOST_DIRECT_ROWS
        if not copied or not FEWEST_DIRECT_COLUMNS <= most < self.n:
            return [self]
        count, rest = divmod(self.n, most)
        begins = np.arange(count)[:, None] * np.array([0, most * self.right.step, most])
        stack = (self.stack[:, None] + begins).reshape(-1, 3)
        found = [replace(self, n=most, stack=stack)]
        if rest:
            done = count * most
            found.append(replace(self, right=self.right.after(0, done), out=self.out.after(0, done), n=rest))
        return found

    @cached_property
    def function(self) -> str:
        """The function of BLAS."""
        return ("s" if self.dtype is float32 else "d") + ("gemv" if 1 in (self.m, self.n) else "gemm")

    def fields(self) -> tuple[list[Matrix], list[int]]:
        """The operands in the order of the function, and the fields of its table after those of the stack."""
        left, right, out, m, n, k = self.left, self.right, self.out, self.m, self.n, self.k
        if self.function.endswith("gemm"):
            turns = [TURNED if each.turned else PLAIN for each in (left, right)]
            return [left, right, out], [*turns, m, n, k, left.step, right.step, out.step]
        if n == 1:
            sizes = [TURNED, k, m] if left.turned else [PLAIN, m, k]
            return [left, right, out], [*sizes, left.step, 1 if right.turned else right.step, out.step]
        sizes = [PLAIN, n, k] if right.turned else [TURNED, k, n]
        return [right, left, out], [*sizes, right.step, left.step if left.turned else 1, 1]

    def offsets(self) -> Any:
        """Where each product of the stack begins in the operands of the function, in bytes after the first one."""
        swapped = self.function.endswith("gemv") and self.n != 1
        rows = self.stack[:, [1, 0, 2]] if swapped else self.stack
        return np.ascontiguousarray(rows * self.dtype.itemsize)


def product_of(call: Call, buffers: Sequence[Buffer]) -> Product | None:
    """The matrices of a call, or None if BLAS cannot read them where they are, or is slower."""
    out, (left, right) = buffers[call.out], call.reads
    batch, (m, n), k = out.shape[:-2], out.shape[-2:], left.shape[-1]
    if not k or any(buffers[read.buffer].dtype is not out.dtype for read in call.reads):
        return None
    if multiplies(left.shape, right.shape, out.dtype):
        return None  # a kernel for many small matrices is faster
    steps = [_batch_strides(read, batch) for read in (left, right)] + [list(row_major(out.shape)[:-2])]
    rows = _rows_as_one([*zip(batch, steps[0])], m, left.strides[-2])
    if batch and rows is not None and not any(steps[1]):
        left = Read(left.buffer, left.offset, (prod(batch) * m, k), (rows, left.strides[-1]))
        batch, m, steps = (), prod(batch) * m, [[], [], []]
    matrices = [_matrix(read.buffer, read.offset, read.shape[-2:], read.strides[-2:]) for read in (left, right)]
    one, other = matrices
    if one is None or other is None or prod(batch) > LONGEST_STACK or max(m, n, k, one.step, other.step) >= 1 << 31:
        return None
    stack = np.indices(batch).reshape(len(batch), prod(batch)).T @ np.array(steps, np.int64).T
    return Product(one, other, Matrix(call.out, 0, n), m, n, k, out.dtype, stack)


def _batch_strides(read: Read, batch: tuple[int, ...]) -> list[int]:
    """The strides of an operand along the dimensions of the stack, 0 where it is repeated."""
    missing = len(batch) + 2 - len(read.shape)
    found = [0] * missing
    return found + [0 if extent == 1 else stride for extent, stride in zip(read.shape[:-2], read.strides)]


def _rows_as_one(batch: Sequence[tuple[int, int]], m: int, stride: int) -> int | None:
    """The stride of the rows of all matrices of a stack, if it is the same everywhere; else None."""
    length, step = m, stride if m > 1 else None
    for extent, apart in reversed(batch):
        if extent > 1:
            if step is None:
                length, step = 1, apart
            if apart != length * step:
                return None
            length *= extent
    return 0 if step is None else step


def _matrix(buffer: int, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Matrix | None:
    """A matrix as BLAS takes it: its rows or its columns lie in order, and do not overlap; else None."""
    (rows, columns), (down, right) = shape, strides
    if (right == 1 or columns == 1) and (down >= columns or rows == 1):
        return Matrix(buffer, offset, down if rows > 1 else columns)
    if (down == 1 or rows == 1) and (right >= rows or columns == 1):
        return Matrix(buffer, offset, right if columns > 1 else rows, turned=True)
    return None


def ranges(size: int, count: int, least: int) -> list[tuple[int, int]]:
    """`size` in at most `count` ranges that begin at multiples of `least`.

    >>> ranges(10, 2, 4), ranges(0, 2, 4)
    ([(0, 8), (8, 10)], [])
    """
    length = -(-size // (count * least)) * least or 1
    return [(low, min(low + length, size)) for low in range(0, size, length)]


# Steps in machine code ------------------------------------------------------------------------------------------------


Entry = tuple[int, int, int]  # of a list of steps or of moves: see `codegen.step_code`


class NativeStep(NamedTuple):
    """Machine code and the address of its table.  `keep` holds the memory that the table refers to."""

    function: Callable[[int], object]
    table: int
    keep: Any = None

    @property
    def entry(self) -> Entry:
        """The step in a list of steps."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0, self.table, 0  # type: ignore[arg-type]


def listed(entries: Sequence[Entry]) -> Any:
    """Entries as a list for machine code."""
    return (ctypes.c_longlong * (3 * len(entries)))(*[number for entry in entries for number in entry])


def in_one_call(steps: Sequence[NativeStep]) -> NativeStep:
    """A step that runs other steps, one after the other."""
    if len(steps) == 1:
        return steps[0]
    rows, table = listed([step.entry for step in steps]), (ctypes.c_longlong * len(ROUND_FIELDS))()
    table[1], table[6], table[7] = 1, addressof(rows), len(steps)
    return NativeStep(rounds_function(), addressof(table), (rows, table, steps))


def can_share_products() -> bool:
    """Whether the library's own threads can be switched off, so that ours can share a product."""
    library = blas()
    return library is not None and library.set != 0


def divided(product: Product) -> list[Product]:
    """A product in the blocks that this library computes fastest."""
    library = blas()
    return product.blocks() if library is not None and library.kernels in SMALL_KERNELS else [product]


def multiplied(products: Sequence[Product], write: Callable[[Matrix, Any, int], None]) -> NativeStep:
    """Products on one thread of OpenBLAS.  `write(matrix, table, index)` writes the address of an operand."""
    library = blas()
    assert library is not None
    steps = [_called(product, library, write) for product in products]
    if library.set:
        lower, restore = on_one_thread()
        steps = [lower, *steps, restore]
    return in_one_call(steps)


def on_one_thread() -> list[NativeStep]:
    """The steps before and after products that run on one thread of OpenBLAS."""
    library = blas()
    assert library is not None
    threads = (ctypes.c_void_p * len(THREAD_FIELDS))(addressof(LOWERED), library.get, library.set)
    return [NativeStep(each, addressof(threads), threads) for each in threads_functions()]


def _called(product: Product, library: Blas, write: Callable[[Matrix, Any, int], None]) -> NativeStep:
    """The calls of a function of BLAS for a stack."""
    operands, fields = product.fields()
    offsets = product.offsets()
    table = (ctypes.c_void_p * len(PRODUCT_FIELDS[product.function[1:]]))()
    table[3], table[4], table[5] = library.functions[product.function], offsets.ctypes.data, len(offsets)
    for index, number in enumerate(fields, start=len(STACK)):
        table[index] = number
    for index, matrix in enumerate(operands):
        write(matrix, table, index)
    return NativeStep(product_function(product.function, library.bits), addressof(table), (table, offsets))


# Costs ----------------------------------------------------------------------------------------------------------------

COPIES = "copies"
JOINED = ", "  # between the names of steps that run in one call
ROUNDS = "rounds"  # the name of all rounds of a loop in machine code


def work_of(step: Step) -> float:
    """The cost of a step, in bytes of memory traffic that take as long."""
    if isinstance(step, Blocked):
        products = step.count.flops - step.launch.count.flops
        return step.count.bytes + FLOP * step.launch.count.flops + PRODUCT_FLOP * products
    flop = FLOP if isinstance(step, Launch) else PRODUCT_FLOP * multiplies_matrices(step)
    return step.count.bytes + flop * step.count.flops


def multiplies_matrices(step: Step) -> bool:
    return isinstance(step, Call) and step.op is P.matmul


def own_count(step: Step) -> Count:
    """The cost of a step alone: nothing for a check; for a loop that ran, its copies, as its steps have their own."""
    attrs = attrs_of(step)
    if functions_of(attrs):
        return kept_by(attrs, attrs["body"].tally.last or 0) if "body" in attrs else Count()
    return Count() if isinstance(step, Check) else step.count


def attrs_of(step: Step | None) -> Mapping[str, Any]:
    return step.attrs if isinstance(step, Call) else {}


def copies_of(plan: Plan) -> Count:
    """The cost of the copies of results at the end of a run."""
    return sum([_copied(read, plan.buffers[read.buffer]) for read in plan.copied.values()], Count())


def _copied(read: Read, buffer: Buffer) -> Count:
    different = prod([size for size, stride in zip(read.shape, read.strides) if stride])
    itemsize = buffer.dtype.itemsize
    return Count(min(different, buffer.size) * itemsize, read.size * itemsize, 0, 1)


# Calls of steps, one after the other or at the same time --------------------------------------------------------------
#
# Native kernels and array libraries release the interpreter's lock while they compute, so threads are enough.  They are
# the same threads that share a large kernel.  A step that shares its work uses the threads that are free, and does not
# wait for a thread that has not begun.

Run = Callable[[Any], object]  # called with the starts of the generators of random numbers
RUNNING: ContextVar[Any] = switched_variable("minigrad profile", None)  # the active `profile`


class Named(NamedTuple):
    """The function of a step, with its name and its own cost after a run, without that of the steps inside a loop."""

    name: str
    run: Run
    cost: Callable[[], Count]


def as_steps(levels: Sequence[Sequence[Named]]) -> list[Run]:
    """A function for each level, which runs all its calls."""
    return [level[0].run if len(level) == 1 else partial(together, level) for level in levels if level]


def is_profiled() -> bool:
    """Whether a profile is active."""
    return RUNNING.get() is not None


def in_turn(runs: Sequence[Run], starts: Any) -> None:
    """Run functions one after the other."""
    for run in runs:
        run(starts)


def together(calls: Sequence[Named], starts: Any) -> None:
    """Run all calls of a level at the same time; if several fail, raise the first error."""
    errors: dict[int, Exception] = {}

    def work(number: int, _: int) -> None:
        try:
            calls[number].run(starts)
        except Exception as error:
            errors[number] = error

    with setting(ON_BEHALF_OF, ON_BEHALF_OF.get() or caller(2)):
        in_blocks(work, len(calls), 1)
    if errors:
        raise errors[min(errors)]


# Memory ---------------------------------------------------------------------------------------------------------------

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
BYTE = np.dtype(np.uint8)


def aligned(size: int) -> Any:
    """Memory of this many bytes that begins at a cache line."""
    memory = (CPU.pool.take if size >= POOLED_BYTES else np.empty)((size + ALIGNMENT,), BYTE)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def address(array: Any) -> int:
    """Where the memory of an array begins."""
    try:
        return addressof(c_char.from_buffer(array))  # takes a quarter of the time
    except (TypeError, ValueError):  # it is read-only, empty, or not contiguous
        return int(array.__array_interface__["data"][0])
