"""Machine code that adds rows at positions, for eager mode: a kernel for each dtype and number of columns."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...support.errors import CompileError
from ..loops.index import plus, times
from ..loops.ir import LONG, Accumulate, For, Kernel, Let, Parameter, Statement

MOST = 1 << 40  # rows: the number of rows is not a part of the kernel, and the caller has checked the positions
WIDEST = 1 << 12  # columns of a kernel, so that few kernels serve long rows of any length


def row_adder() -> Callable[[Any, Any, Any, int, int], None] | None:
    """The function that adds some columns of rows to the rows at positions; None if kernels are not compiled."""
    if os.environ.get("MINIGRAD_BACKEND") == "numpy":
        return None
    try:
        from .native import llvmlite

        llvmlite()
    except CompileError:
        return None
    return add_rows


def add_rows(out: Any, places: Any, rows: Any, start: int, stop: int) -> None:
    """Add columns `start` to `stop` of each row to row `places[i]` of `out`, a flat array of as wide rows."""
    count, width = rows.shape
    for low in range(start, stop, WIDEST):
        function = _function(out.dtype, width, min(WIDEST, stop - low))
        further = low * out.itemsize
        addresses = places.ctypes.data, rows.ctypes.data + further, out.ctypes.data + further, 0, count
        table = (ctypes.c_void_p * len(addresses))(*addresses)
        function(ctypes.addressof(table))


@lru_cache(64)
def _function(dtype: Any, width: int, columns: int) -> Callable[[int], object]:
    from .native import compile_kernels

    (made,) = compile_kernels([adding_kernel(dtype, width, columns)])
    return made.function


def adding_kernel(dtype: Any, width: int, columns: int) -> Kernel:
    """`for p: for r: out[places[p], r] += rows[p, r]`, for some columns of rows of this width."""
    place, here = plus(times("at", width), "r"), plus(times("p", width), "r")
    body: list[Statement] = [For("p", "lo", "hi", [
        Let("n", "load", ("places", "p"), LONG), Let("at", "position", ("n", MOST), LONG),
        For("r", 0, columns, [Let("x", "load", ("rows", here), dtype), Accumulate("sum", "out", place, "x")]),
    ])]
    sizes = {"places": (LONG, MOST, "in"), "rows": (dtype, MOST * width, "in"), "out": (dtype, MOST * width, "inout")}
    return Kernel("add_rows", [Parameter(name, *rest) for name, rest in sizes.items()], body, MOST, "rows")
