"""Machine code for elementwise operations of eager mode on arrays whose rows are apart, or the same.

NumPy starts a loop for each row, which takes as long as the arithmetic on 1,000 elements.
"""

from __future__ import annotations

from dataclasses import replace

from ..compile.loops.index import plus
from ..compile.loops.ir import LONG, For, Index, Kernel, Let, Parameter, Statement, Store, Walk
from .reduction_loops import loaded_size
from .stack_loops import MOST


def in_rows(kernel: Kernel, flat: tuple[bool, ...], columns: int) -> Kernel:
    """The kernel of an elementwise operation, with a loop over matrices, their rows and columns in place of one loop.

    Arrays that are not `flat` repeat one element in a row.  `sizes` has the number of rows and of columns, and for each
    array how far its matrices and its rows are apart.  The number of columns is fixed unless it is 0.
    """
    *lets, loop = kernel.body
    assert isinstance(loop, For)
    (rows, first), (width, second) = loaded_size("rows", 0), loaded_size("columns", 1)
    sizes, starts = [*first, *second], dict[str, Index]()
    for number, name in enumerate([p.name for p in kernel.parameters if p.size > 1]):
        (matrix, first), (row, second) = (loaded_size(f"{name}_{k}", 2 * number + k) for k in (2, 3))
        start = plus(("*", "q", matrix), ("*", "p", row))
        starts[name] = plus(start, loop.variable) if flat[number] else start
        sizes += [*first, *second]
    inner = replace(loop, low=0, high=columns or width, body=_Moved(starts).block(loop.body))
    listed = [replace(p, size=MOST if p.name in starts else p.size) for p in kernel.parameters]
    body = [*sizes, *lets, For("q", "lo", "hi", [For("p", 0, rows, [inner])])]
    return Kernel("for_eager", [Parameter("sizes", LONG, MOST, "in"), *listed], body, MOST, "rows")


class _Moved(Walk):
    """Reads and writes at other places."""

    def __init__(self, starts: dict[str, Index]) -> None:
        self.starts = starts

    def let(self, let: Let) -> list[Statement]:
        return [replace(let, args=(let.args[0], self.starts[let.args[0]])) if let.op == "load" else let]

    def store(self, store: Store) -> list[Statement]:
        return [replace(store, index=self.starts[store.buffer])]
