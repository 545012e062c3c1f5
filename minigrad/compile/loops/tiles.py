"""Tiles: interchanges the loops of a kernel that reads memory against its order, such as that of `x.T + 1`.

`for p: for r: … x[r · 2048 + p]` fetches a cache line for each element.  In narrow bands of r, with the loop over p
inside, each line is fetched once: the next p finds its neighbours in the cache.
"""

from __future__ import annotations

from dataclasses import replace

from ..nodes.thresholds import BAND_COLUMNS, CACHE_LINE, FAR_BYTES
from .index import depends, plus, step_of, times
from .ir import Accumulate, For, Kernel, Let, Statement, Store


def tiled(kernel: Kernel) -> Kernel:
    """The kernel with bands where they help."""
    sizes = {parameter.name: parameter.dtype.itemsize for parameter in kernel.parameters}
    return replace(kernel, body=[_tiled(statement, sizes) for statement in kernel.body])


def _tiled(statement: Statement, sizes: dict[str, int]) -> Statement:
    if not isinstance(statement, For):
        return statement
    inner = statement.body[0] if len(statement.body) == 1 and not statement.accumulators else None
    if not isinstance(inner, For) or not _in_any_order(statement, inner) or not _reads_against(statement, inner, sizes):
        return replace(statement, body=[_tiled(each, sizes) for each in statement.body])
    band, columns = f"{inner.variable}_band", int(str(inner.high))
    low = times(band, BAND_COLUMNS)
    narrow = replace(inner, low=low, high=("min", plus(low, BAND_COLUMNS), columns))
    return For(band, 0, -(-columns // BAND_COLUMNS), [replace(statement, body=[narrow])])


def _in_any_order(outer: For, inner: For) -> bool:
    """Whether the rounds may be interchanged: they write apart, and what is added to one place keeps its order."""
    plain = inner.low == 0 and isinstance(inner.high, int) and inner.high >= 2 * BAND_COLUMNS
    if not plain or inner.steps > 1 or outer.steps > 1 or inner.accumulators:
        return False
    for each in inner.body:
        if isinstance(each, Accumulate):
            if not depends(each.index, inner.variable) or depends(each.index, outer.variable):
                return False
        elif not isinstance(each, (Let, Store)):
            return False
    return True


def _reads_against(outer: For, inner: For, sizes: dict[str, int]) -> bool:
    """Whether an array is read with large steps in the inner loop, and with small ones in the outer loop."""
    for each in inner.body:
        if isinstance(each, Let) and each.op == "load":
            buffer, index = each.args
            across, along = step_of(index, inner.variable), step_of(index, outer.variable)
            if across is not None and along is not None and 0 < along * sizes[buffer] < CACHE_LINE:
                if across * sizes[buffer] >= FAR_BYTES:
                    return True
    return False
