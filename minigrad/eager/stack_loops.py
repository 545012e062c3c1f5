"""Machine code for eager mode: sums and maxima of rows at positions, and stacks of small matrices.

Each kernel is made for a dtype and for small sizes.  How many rows or matrices there are is not a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

from ..compile.codegen.native import compile_kernels
from ..compile.codegen.workers import WORKERS
from ..compile.loops.index import plus, times
from ..compile.loops.ir import (
    DOUBLE,
    LONG,
    Accumulate,
    Accumulator,
    For,
    Kernel,
    Let,
    Parameter,
    Statement,
    Store,
    Writer,
)
from ..compile.nodes.thresholds import MATRICES_AT_ONCE, WIDEST_ROW
from ..compile.running.steps import address

MOST = 1 << 40  # rows or matrices: the caller has checked all positions
Matrix = list[list[str]]


@lru_cache(512)
def function_for(make: Callable[..., Kernel], *sizes: Any) -> Callable[[int], object]:
    """The machine code of the kernel that `make` returns for these sizes."""
    return compile_kernels([make(*sizes)])[0]


def run_on(function: Callable[[int], object], addresses: Sequence[int], count: int, step: int = MOST) -> None:
    """Run a kernel on arrays at these addresses, for `count` of its units, which threads share in ranges of `step`."""
    WORKERS.run(function, [(*addresses, low, min(low + step, count)) for low in range(0, max(1, count), step)])


def _kernel(parameters: dict[str, Any], statements: list[Statement]) -> Kernel:
    """A loop over rows or matrices; only the last parameters, which are named with a capital letter, are written."""
    listed = [Parameter(n, dtype, MOST, "inout" if n.isupper() else "in") for n, dtype in parameters.items()]
    return Kernel("for_eager", listed, [For("p", "lo", "hi", statements)], MOST, "rows")


# Rows -----------------------------------------------------------------------------------------------------------------


def combine_rows(op: str, out: Any, places: Any, rows: Any, start: int, stop: int) -> None:
    """Columns `start` to `stop` of each row are added to row `places[i]` of `out`, a flat array of as wide rows.

    That is the `op` "sum"; with "max", the larger element stays.
    """
    count, width = rows.shape
    for low in range(start, stop, WIDEST_ROW):
        function = function_for(combining, op, out.dtype, width, min(WIDEST_ROW, stop - low))
        further = low * out.itemsize
        run_on(function, [places.ctypes.data, rows.ctypes.data + further, out.ctypes.data + further], count)


def combining(op: str, dtype: Any, width: int, columns: int) -> Kernel:
    """`for p: for r: OUT[places[p], r] += rows[p, r]`, or the maximum, for some columns of rows of this width."""
    place, here = plus(times("at", width), "r"), plus(times("p", width), "r")
    return _kernel({"places": LONG, "rows": dtype, "OUT": dtype}, [
        Let("n", "load", ("places", "p"), LONG), Let("at", "position", ("n", MOST), LONG),
        For("r", 0, columns, [Let("x", "load", ("rows", here), dtype), Accumulate(op, "OUT", place, "x")]),
    ])


# Small matrices.  Equations and factors are computed in float64, as NumPy does. ---------------------------------------


def on_stacks(name: str, sizes: tuple[int, ...], *stacks: Any) -> None:
    """Run the kernel `name` on all matrices of stacks, which are contiguous; the last stacks are written."""
    function, count = function_for(MATRICES[name], stacks[0].dtype, *sizes), len(stacks[0])
    run_on(function, [*map(address, stacks)], count, max(MATRICES_AT_ONCE, -(-count // 64)))


def product(dtype: Any, rows: int, inner: int, columns: int) -> Kernel:
    """The product of two matrices, row by row; for a single column, each number is a sum of its own."""
    w, v, row = Writer("w", dtype), Writer("v", dtype), plus(times("p", rows), "r")
    if columns == 1:
        term = w.mul(w.load("x", plus(times(row, inner), "k")), w.load("y", plus(times("p", inner), "k")))
        total = Accumulator("total", "sum", term, dtype)
        body: list[Statement] = [For("k", 0, inner, [*w.statements], [total]), Store("OUT", row, "total")]
    else:
        terms = []
        for k in range(inner):
            right = v.load("y", plus(plus(times("p", inner * columns), k * columns), "j"))
            terms.append(v.mul(w.load("x", plus(times(row, inner), k)), right))
        store = Store("OUT", plus(times(row, columns), "j"), reduce(v.add, terms))
        body = [*w.statements, For("j", 0, columns, [*v.statements, store])]
    return _kernel({"x": dtype, "y": dtype, "OUT": dtype}, [For("r", 0, rows, body)])


def solution(dtype: Any, n: int, columns: int) -> Kernel:
    """The solution of linear equations, and the size of the smallest pivot."""
    w = Writer("w", DOUBLE)
    a, b = _wide(w, dtype, "a", n, n), _wide(w, dtype, "b", n, columns)
    _eliminate(w, a, b)
    for i in reversed(range(n)):
        for c in range(columns):
            rest = b[i][c]
            for j in range(i + 1, n):
                rest = w.sub(rest, w.mul(a[i][j], b[j][c]))
            b[i][c] = w.div(rest, a[i][i])
    stores = [*_stored(w, dtype, "OUT", b), Store("LEAST", "p", _smallest(w, a))]
    return _kernel({"a": dtype, "b": dtype, "OUT": dtype, "LEAST": DOUBLE}, [*w.statements, *stores])


def sign_and_log(dtype: Any, n: int) -> Kernel:
    """The sign of the determinant, the logarithm of its size, and the size of the smallest pivot."""
    w = Writer("w", DOUBLE)
    a = _wide(w, dtype, "a", n, n)
    sign: Any = 1.0
    for swap in _eliminate(w, a, [[] for _ in a]):
        sign = w.select(swap, w.neg(sign) if isinstance(sign, str) else -1.0, sign)
    for i in range(n):
        sign = w.select(w.lt(a[i][i], 0.0), w.neg(sign) if isinstance(sign, str) else -1.0, sign)
    logs = [w.let("log", (w.let("cast", (w.abs(a[i][i]),), dtype),), dtype) for i in range(n)]
    total = logs[0]
    for each in logs[1:]:
        total = w.let("add", (total, each), dtype)
    stores = [Store("OUT", times("p", 2), w.let("cast", (sign,), dtype)), Store("OUT", plus(times("p", 2), 1), total)]
    stores.append(Store("LEAST", "p", _smallest(w, a)))
    return _kernel({"a": dtype, "OUT": dtype, "LEAST": DOUBLE}, [*w.statements, *stores])


def root(dtype: Any, n: int) -> Kernel:
    """The Cholesky factor, and the smallest number under a root."""
    w = Writer("w", DOUBLE)
    a = _wide(w, dtype, "a", n, n)
    least: Any = None
    for j in range(n):
        for i in range(j, n):
            for k in range(j):
                a[i][j] = w.sub(a[i][j], w.mul(a[i][k], a[j][k]))
            if i == j:
                least = a[j][j] if least is None else w.min(least, a[j][j])
                a[j][j] = w.sqrt(a[j][j])
            else:
                a[i][j] = w.div(a[i][j], a[j][j])
    lower: Any = [[a[i][j] if j <= i else 0.0 for j in range(n)] for i in range(n)]
    stores = [*_stored(w, dtype, "OUT", lower), Store("LEAST", "p", least)]
    return _kernel({"a": dtype, "OUT": dtype, "LEAST": DOUBLE}, [*w.statements, *stores])


MATRICES = {"product": product, "solution": solution, "sign_and_log": sign_and_log, "root": root}


def _loaded(w: Writer, buffer: str, rows: int, columns: int) -> Matrix:
    start = times("p", rows * columns)
    return [[w.load(buffer, plus(start, i * columns + j)) for j in range(columns)] for i in range(rows)]


def _wide(w: Writer, dtype: Any, buffer: str, rows: int, columns: int) -> Matrix:
    """A matrix in the dtype of the writer."""
    loads = Writer(buffer, dtype)
    narrow = _loaded(loads, buffer, rows, columns)
    w.statements += loads.statements
    return narrow if dtype == w.dtype else [[w.cast(x) for x in row] for row in narrow]


def _stored(w: Writer, dtype: Any, buffer: str, matrix: Any) -> list[Statement]:
    values = [x if dtype == w.dtype or not isinstance(x, str) else w.let("cast", (x,), dtype)
              for row in matrix for x in row]
    start = times("p", len(values))
    return [Store(buffer, plus(start, number), value) for number, value in enumerate(values)]


def _smallest(w: Writer, a: Matrix) -> str:
    """The size of the smallest pivot; nan after a pivot of 0, by which other rows were divided."""
    least = w.abs(a[0][0])
    for i in range(1, len(a)):
        least = w.min(least, w.abs(a[i][i]))
    return least


def _eliminate(w: Writer, a: Matrix, b: Matrix) -> list[str]:
    """Gauss's elimination with the largest pivot of each column, in place; returns which rows were swapped.

    Whether two rows are swapped is a choice for each element, so that matrices side by side do the same.
    """
    swaps = []
    for k in range(len(a)):
        for i in range(k + 1, len(a)):
            swap = w.lt(w.abs(a[k][k]), w.abs(a[i][k]))
            swaps.append(swap)
            for rows in (a, b):
                first, second = rows[k], rows[i]
                rows[k] = [w.select(swap, y, x) for x, y in zip(first, second)]
                rows[i] = [w.select(swap, x, y) for x, y in zip(first, second)]
        for i in range(k + 1, len(a)):
            factor = w.div(a[i][k], a[k][k])
            for rows in (a, b):
                rows[i] = [w.sub(x, w.mul(factor, y)) for x, y in zip(rows[i], rows[k])]
    return swaps
