"""Steps in machine code: kernels, matrix products, and lists of steps that run in a single call.

Python calls a list once, and machine code calls each of its steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import addressof
from typing import Any, NamedTuple

from ...devices.blas import LOWERED, Blas, blas
from ..codegen.step_code import (
    PRODUCT_FIELDS,
    ROUND_FIELDS,
    STACK,
    THREAD_FIELDS,
    product_function,
    rounds_function,
    threads_functions,
)
from .products import SMALL_KERNELS, Matrix, Product

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
