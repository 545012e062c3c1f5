"""Machine code for the reductions of eager mode.

The array has three dimensions, and the one in the middle is reduced.  Short rows have a kernel for each length; the
kernels for long ones read the sizes from memory.
"""

from __future__ import annotations

import ctypes
from ctypes import addressof
from typing import Any

import numpy as np

from ...devices.threads import THREADS, in_blocks
from ..loops.index import plus, times
from ..loops.ir import LONG, Accumulate, Accumulator, For, Index, Kernel, Let, Parameter, Statement, Store
from ..loops.scalar import identity
from .for_eager import MOST, function_for

SHORT = 64  # elements: shorter rows have a kernel for their length
BLOCK = 1 << 12  # elements of a long row that are added up by themselves, so that rounding errors stay small
PART = 1 << 16  # elements of a part of a large array, whose reductions are reduced again
FEWEST = 8  # rows in a part
WORTH_SHARING = 1 << 18  # elements for several threads
Table = ctypes.c_int64 * 8  # the addresses of the sizes, of the array and of the result, the range, and the sizes
SIZES = 5 * 8  # bytes before the sizes


def reduce_middle(op: str, x: Any) -> Any:
    """The reduction of the middle dimension of a contiguous array, by "sum", "prod", "max" or "min".

    How it is divided depends on the shape only: so the result does not depend on the number of threads.
    """
    outer, rows, columns = x.shape
    step = PART // columns
    if outer > 1 or rows < 2 * step or step < FEWEST:
        return _reduced(op, x)
    whole = rows // step
    parts = _reduced(op, x[0, : whole * step].reshape(whole, step, columns))
    rest = _reduced(op, x[:, whole * step :]) if rows % step else parts[:0]
    return reduce_middle(op, np.concatenate([parts, rest])[None])


def _reduced(op: str, x: Any) -> Any:
    outer, rows, columns = x.shape
    out = np.empty((outer, columns), x.dtype)
    make, short = (_of_rows, rows) if columns == 1 else (_of_columns, columns)
    function = function_for(make, op, x.dtype, short if short <= SHORT else 0)
    start, result, item = x.ctypes.data, out.ctypes.data, x.itemsize

    def run(low: int, high: int, first: int, count: int) -> None:
        """Reduce matrices from `low` to `high`, and `count` columns of them from the `first` one on."""
        table = Table(0, start + first * item, result + first * item, low, high, rows, columns, count)
        table[0] = (address := addressof(table)) + SIZES
        function(address)

    pieces = 4 * THREADS.count if x.size >= WORTH_SHARING and THREADS.count > 1 else 1
    if pieces == 1:
        run(0, outer, 0, columns)
    elif outer == 1 and columns > SHORT:
        in_blocks(lambda low, high: run(0, 1, low, high - low), columns, max(SHORT, -(-columns // pieces)))
    else:
        in_blocks(lambda low, high: run(low, high, 0, columns), outer, -(-outer // pieces))
    return out


def _of_rows(op: str, dtype: Any, length: int) -> Kernel:
    """One result for each row, of this length, or of the length in `sizes` if it is 0."""
    if length:
        return _kernel(dtype, [], [_loop(op, dtype, 0, length, times("p", length)), Store("OUT", "p", "total")])
    size, lets = loaded_size("length", 0)
    blocks: Index = ("//", size, BLOCK)
    start: Index = ("*", "p", size)
    add = Accumulate(op, "OUT", "p", "total")
    return _kernel(dtype, lets, [
        Store("OUT", "p", identity(op, dtype)),
        For("b", 0, blocks, [_loop(op, dtype, 0, BLOCK, plus(start, times("b", BLOCK))), add]),
        _loop(op, dtype, times(blocks, BLOCK), size, start), add,
    ])


def _loop(op: str, dtype: Any, low: Index, high: Index, start: Index) -> For:
    load = Let("v", "load", ("x", plus(start, "r")), dtype)
    return For("r", low, high, [load], [Accumulator("total", op, "v", dtype)])


def _of_columns(op: str, dtype: Any, columns: int) -> Kernel:
    """One row of results for each matrix, with this number of columns, or with the number in `sizes` if it is 0."""
    rows, lets = loaded_size("rows", 0)
    width, count = columns, columns
    if not columns:
        (width, first), (count, second) = loaded_size("width", 1), loaded_size("count", 2)
        lets = [*lets, *first, *second]
    place: Index = ("*", "p", width)
    start: Index = ("*", plus(("*", "p", rows), "m"), width)
    load = Let("v", "load", ("x", plus(start, "r")), dtype)
    return _kernel(dtype, lets, [
        For("z", 0, count, [Store("OUT", plus(place, "z"), identity(op, dtype))]),
        For("m", 0, rows, [For("r", 0, count, [load, Accumulate(op, "OUT", plus(place, "r"), "v")])]),
    ])


def loaded_size(name: str, place: int) -> tuple[Any, list[Statement]]:
    """The name of a size that is read from memory, and the statements that read it."""
    lets = Let(f"{name}0", "load", ("sizes", place), LONG), Let(name, "position", (f"{name}0", MOST), LONG)
    return name, [*lets]


def _kernel(dtype: Any, lets: list[Statement], body: list[Statement]) -> Kernel:
    parameters = [Parameter(n, kind, MOST, "in") for n, kind in (("sizes", LONG), ("x", dtype))]
    out = Parameter("OUT", dtype, MOST, "inout")
    return Kernel("for_eager", [*parameters, out], [*lets, For("p", "lo", "hi", body)], MOST, "rows")
