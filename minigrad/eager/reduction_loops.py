"""Machine code for the reductions of eager mode.

The array has three dimensions, and the one in the middle is reduced.  Short rows have a kernel for each length; the
kernels for long ones read the sizes from memory.
"""

from __future__ import annotations

from ctypes import addressof, c_int64
from typing import Any

import numpy as np

from ..compile.codegen.workers import WORKERS
from ..compile.loops.index import plus, times
from ..compile.loops.ir import LONG, Accumulate, Accumulator, For, Index, Kernel, Let, Parameter, Statement, Store
from ..compile.loops.operations import OPERATIONS, REDUCTIONS, identity
from ..compile.nodes.thresholds import (
    FEW_ELEMENTS,
    FEWEST_PART_ROWS,
    PART_ELEMENTS,
    REDUCTION_PIECES,
    ROW_BLOCK,
    SHORT_ROW,
    WORTH_SHARING_ELEMENTS,
)
from ..compile.running.steps import address
from ..devices.threads import THREADS
from .stack_loops import MOST, function_for


def reduce_middle(op: str, x: Any) -> Any:
    """The reduction of the middle dimension of a contiguous array, by "sum", "prod", "max" or "min".

    How it is divided depends on the shape only: so the result does not depend on the number of threads.
    """
    outer, rows, columns = x.shape
    if x.size < FEW_ELEMENTS:
        return OPERATIONS[REDUCTIONS[op]].numpy.reduce(x, 1, x.dtype)
    step = PART_ELEMENTS // columns
    if outer > 1 or rows < 2 * step or step < FEWEST_PART_ROWS:
        return _reduced(op, x, outer, rows)
    return reduce_middle(op, _reduced(op, x, -(-rows // step), step)[None])


def _reduced(op: str, x: Any, count: int, rows: int) -> Any:
    """The reductions of `count` matrices with `rows` rows each; the last matrix has the rows that are left."""
    columns, item, all_rows = x.shape[2], x.itemsize, x.shape[0] * x.shape[1]
    out = np.empty((count, columns), x.dtype)
    make, short = (_of_rows, rows) if columns == 1 else (_of_columns, columns)
    function = function_for(make, op, x.dtype, short if short <= SHORT_ROW else 0)
    shared, wide = x.size >= WORTH_SHARING_ELEMENTS, count == 1 and columns > SHORT_ROW
    size, pieces = columns if wide else count, REDUCTION_PIECES * THREADS.count  # if wide, threads share the columns
    step = max(SHORT_ROW if wide else 1, -(-size // pieces)) if shared and THREADS.count > 1 else size
    start, result, fixed = address(x), address(out), (rows, all_rows, columns)
    sizes = (c_int64 * 8)(*fixed, step if wide else columns, *fixed, (size - 1) % step + 1)  # and of the last piece
    where = addressof(sizes)
    WORKERS.run(function, [
        (where + 32 * (low + step >= size), start + low * item, result + low * item, 0, 1) if wide
        else (where, start, result, low, min(low + step, size))
        for low in range(0, size, step)
    ])
    return out


def _of_rows(op: str, dtype: Any, length: int) -> Kernel:
    """One result for each row of `length` elements; if `length` is 0, `sizes` holds the length."""
    if length:
        return _kernel(dtype, [], [_loop(op, dtype, 0, length, times("p", length)), Store("OUT", "p", "total")])
    size, stop, lets = _sizes()
    blocks: Index = ("//", plus(size, ROW_BLOCK - 1), ROW_BLOCK)
    low = plus(("*", "p", size), times("b", ROW_BLOCK))
    return _kernel(dtype, lets, [
        Store("OUT", "p", identity(op, dtype)),
        For("b", 0, blocks, [
            _loop(op, dtype, ("min", low, stop), ("min", plus(low, ROW_BLOCK), stop)),
            Accumulate(op, "OUT", "p", "total"),
        ]),
    ])


def _sizes() -> tuple[Index, Index, list[Statement]]:
    """The rows of a matrix, the row at which matrix p ends, and the statements that load these sizes."""
    (size, first), (left, second) = loaded_size("rows", 0), loaded_size("left", 1)
    return size, ("min", ("*", plus("p", 1), size), left), [*first, *second]


def _loop(op: str, dtype: Any, low: Index, high: Index, start: Index = 0) -> For:
    load = Let("v", "load", ("x", plus(start, "r")), dtype)
    return For("r", low, high, [load], [Accumulator("total", op, "v", dtype)])


def _of_columns(op: str, dtype: Any, columns: int) -> Kernel:
    """One row of results for each matrix, with this number of columns, or with the number in `sizes` if it is 0."""
    size, stop, lets = _sizes()
    width, count = columns, columns
    if not columns:
        (width, first), (count, second) = loaded_size("width", 2), loaded_size("count", 3)
        lets = [*lets, *first, *second]
    place: Index = ("*", "p", width)
    load = Let("v", "load", ("x", plus(("*", "m", width), "r")), dtype)
    return _kernel(dtype, lets, [
        For("z", 0, count, [Store("OUT", plus(place, "z"), identity(op, dtype))]),
        For("m", ("*", "p", size), stop, [For("r", 0, count, [load, Accumulate(op, "OUT", plus(place, "r"), "v")])]),
    ])


def loaded_size(name: str, place: int) -> tuple[Any, list[Statement]]:
    """The name of a size that is read from memory, and the statements that read it."""
    lets = Let(f"{name}0", "load", ("sizes", place), LONG), Let(name, "position", (f"{name}0", MOST), LONG)
    return name, [*lets]


def _kernel(dtype: Any, lets: list[Statement], body: list[Statement]) -> Kernel:
    parameters = [Parameter(n, kind, MOST, "in") for n, kind in (("sizes", LONG), ("x", dtype))]
    out = Parameter("OUT", dtype, MOST, "inout")
    return Kernel("for_eager", [*parameters, out], [*lets, For("p", "lo", "hi", body)], MOST, "rows")
