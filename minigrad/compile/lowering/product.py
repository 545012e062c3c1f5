"""Lowers a product of matrices, one of which is read through windows, to loops: a convolution without copies.

Each round computes a block of the result in registers: some rows, times some vectors of columns.  For each element of
the sum, a round loads the vectors and multiplies them by one number per row.  The numbers may lie anywhere in memory,
so they can be elements of overlapping windows.  Columns must be neighbours.  If they are not, the loops first copy them
to scratch memory, which stays in the cache.

The order of each sum depends on the shapes alone, not on blocks or threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from ..fusion.group import Chunking
from ..fusion.kinds import LoopProduct
from ..loops.index import divided, plus, position, remainder, times
from ..loops.ir import Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Parameter, Statement, Store
from ..nodes.thresholds import (
    FEW_ROW_BLOCKS,
    LONGEST_PANEL,
    MOST_VECTORS,
    PRODUCTS_PER_CYCLE,
    PRODUCTS_UNDER_WAY,
    SHORTEST_PANEL,
)
from ..nodes.view import Dims


class Rows(NamedTuple):
    """The rows of the result that a round computes: `length` of dimension `axis`, with all `inner` ones behind each."""

    axis: int
    length: int
    inner: int

    @property
    def rows(self) -> int:
        return self.length * self.inner

    def rounds(self, dims: Dims) -> int:
        """The number of blocks; the last one of a dimension may overlap the one before."""
        return prod(size for size, _ in dims[: self.axis]) * -(-dims[self.axis][0] // self.length)


def blocks(dims: Dims, most: int) -> Iterator[Rows]:
    """The blocks of at most `most` elements.

    >>> [block.rows for block in blocks([(4, 9), (3, 1)], 8)]
    [1, 2, 3, 3, 6]
    """
    inner = 1
    for axis in reversed(range(len(dims))):
        size = dims[axis][0]
        for length in range(1, min(size, most // inner) + 1):
            yield Rows(axis, length, inner)
        inner *= size


def product_kernel(compute: LoopProduct, names: tuple[str, str], chunking: Chunking) -> Kernel:
    """The kernel of a product; `names` are those of the parameters of both operands."""
    return _Loops(compute, names, chunking).kernel()


class _Loops:
    def __init__(self, compute: LoopProduct, names: tuple[str, str], chunking: Chunking) -> None:
        self.names, self.dtype = names, compute.node.dtype
        self.rows, self.left = [dims or [(1, 0)] for dims in compute.left]
        self.right, self.columns = [dims or [(1, 0)] for dims in compute.right]
        self.stack = compute.stack
        self.offsets = [view.offset for view in compute.reads]
        self.sizes = [view.base.size for view in compute.reads]
        self.width, self.step = self.columns[-1]
        self.lanes = min(chunking.lanes * 4 // self.dtype.itemsize, 1 << self.width.bit_length() - 1)
        length = prod(size for size, _ in self.left)
        self.part = max(d for d in range(1, min(length, LONGEST_PANEL) + 1) if length % d == 0)
        found = self.chosen(chunking.registers, exact=True) if SHORTEST_PANEL <= self.part < length else None
        if found is None:
            self.part, found = length, self.chosen(chunking.registers, exact=False)
        assert found is not None
        self.block, self.vectors = found
        self.parts = length // self.part
        self.across = self.vectors * self.lanes
        self.total = prod(size for size, _ in self.columns)  # columns of the result
        self.packed = self.step != 1

    def chosen(self, registers: int, exact: bool) -> tuple[Rows, int] | None:
        """The block, and its vectors of columns, with the fewest cycles; an `exact` one overlaps no other."""
        best, least = None, float("inf")
        for vectors in range(1, min(MOST_VECTORS, self.width // self.lanes) + 1):
            across = vectors * self.lanes
            for block in blocks(self.rows, (registers - 2 - vectors) // vectors):
                even = self.rows[block.axis][0] % block.length == 0 and self.width % across == 0
                if exact and not even:
                    continue
                products, loads = block.rows * vectors, block.rows + vectors
                cycles = max(products, PRODUCTS_UNDER_WAY) / PRODUCTS_PER_CYCLE + loads / (4 * PRODUCTS_PER_CYCLE) + 1
                cycles *= block.rounds(self.rows) * -(-self.width // across)
                if cycles < least:
                    best, least = (block, vectors), cycles
        return best

    def kernel(self) -> Kernel:
        """The loops: parts of the sums, blocks of columns, blocks of rows."""
        left, right = self.names
        parameters = [Parameter(left, self.dtype, self.sizes[0], "in")]
        if left != right:
            parameters.append(Parameter(right, self.dtype, self.sizes[1], "in"))
        stack = prod(n for n, _ in self.stack[0])
        size = stack * prod(n for n, _ in self.rows) * self.total
        parameters.append(Parameter("out", self.dtype, size, "out"))
        if self.packed:
            parameters.append(Parameter("panel", self.dtype, self.part * self.across, "scratch"))
        units = self.block.rounds(self.rows)
        rounds = prod(n for n, _ in self.columns[:-1]) * -(-self.width // self.across)
        if units < FEW_ROW_BLOCKS and not self.packed and self.parts == 1:  # threads share the columns, too
            block = self.one_block(remainder("p", units), divided("p", units))
            body: list[Statement] = [For("p", "lo", "hi", [block])]
            return Kernel("kernel", parameters, self.stacked(body, stack), units * rounds, "rows")
        column = "q" if rounds > 1 else 0
        each = [*self.packing(column), For("p", "lo", "hi", [self.one_block("p", column)])]
        body = [For("q", 0, rounds, each)] if rounds > 1 else each
        if self.parts > 1:
            zero = Store("out", plus(times(self.row("p")[0], self.total), "z"), self.dtype.type(0).item())
            zeros = For("z", 0, self.block.rows * self.total, [zero])
            body = [For("p", "lo", "hi", [zeros]), For("c", 0, self.parts, body)]
        return Kernel("kernel", parameters, self.stacked(body, stack), units, "rows")

    @staticmethod
    def stacked(body: list[Statement], count: int) -> list[Statement]:
        """The loops for each product of a stack."""
        return [For("e", 0, count, body)] if count > 1 else body

    # Positions --------------------------------------------------------------------------------------------------------

    def row(self, number: Index) -> tuple[Index, Index]:
        """The first row of a block, and its position in the left operand."""
        axis, length, inner = self.block
        size, stride = self.rows[axis]
        outer, start = _cut(number, size, length)
        first = times(plus(times(outer, size), start), inner)
        place = position(self.rows[:axis], outer, self.offsets[0]) if axis else self.offsets[0]
        if self.stack[0]:
            first = plus(first, times("e", prod(n for n, _ in self.rows)))
            place = plus(place, position(self.stack[0], "e"))
        return first, plus(place, times(start, stride))

    def column(self, number: Index) -> tuple[Index, Index]:
        """The first column of a block, and its position in the right operand."""
        outer, start = _cut(number, self.width, self.across)
        outside = self.columns[:-1]
        place = position(outside, outer, self.offsets[1]) if outside else self.offsets[1]
        if self.stack[1]:
            place = plus(place, position(self.stack[1], "e"))
        return plus(times(outer, self.width), start), plus(place, times(start, self.step))

    def summed(self) -> Index:
        """The number of the current element of a sum."""
        return plus(times("c", self.part), "k") if self.parts > 1 else "k"

    # Statements -------------------------------------------------------------------------------------------------------

    def packing(self, column: Index) -> list[Statement]:
        """The loops that copy columns to scratch memory, if they are not neighbours."""
        if not self.packed:
            return []
        place = plus(self.column(column)[1], position(self.right, self.summed()))
        load = Let("packed", "load", (self.names[1], plus(place, times("l", self.step))), self.dtype)
        store = Store("panel", plus(times("k", self.across), "l"), load.name)
        return [For("k", 0, self.part, [For("l", 0, self.across, [load, store])])]

    def one_block(self, row: Index, column: Index) -> Lanes:
        """The loop over the sums of a block, for all lanes at once."""
        first, place = self.row(row)
        place = plus(place, position(self.left, self.summed()))
        if self.packed:
            source, start = "panel", times("k", self.across)
        else:
            source, start = self.names[1], plus(self.column(column)[1], position(self.right, self.summed()))
        lets: list[Statement] = []
        for v in range(self.vectors):
            lets.append(Let(f"w{v}", "load", (source, _lane(plus(start, v * self.lanes))), self.dtype))
        within = [(self.block.length, self.rows[self.block.axis][1]), *self.rows[self.block.axis + 1 :]]
        sums, ends = [], []
        for r in range(self.block.rows):
            lets.append(Let(f"x{r}", "load", (self.names[0], plus(place, position(within, r))), self.dtype))
            for v in range(self.vectors):
                lets.append(Let(f"y{r}v{v}", "mul", (f"x{r}", f"w{v}"), self.dtype))
                sums.append(Accumulator(f"t{r}v{v}", "sum", f"y{r}v{v}", self.dtype))
                at = plus(times(plus(first, r), self.total), plus(self.column(column)[0], v * self.lanes))
                ends.append(self.end(_lane(at), sums[-1].name))
        return Lanes("l", 0, self.lanes, [For("k", 0, self.part, lets, sums), *ends])

    def end(self, index: Index, value: str) -> Statement:
        """The statement that writes an element, or adds a part of a sum to it."""
        return Accumulate("sum", "out", index, value) if self.parts > 1 else Store("out", index, value)


def _cut(number: Index, size: int, length: int) -> tuple[Index, Index]:
    """The outer position of a block, and its start within a dimension."""
    rounds = -(-size // length)
    start = times(remainder(number, rounds), length)
    if size % length:
        start = ("min", start, size - length)
    return divided(number, rounds), start


def _lane(index: Index) -> Any:
    return ("+", index, "l") if index != 0 else "l"
