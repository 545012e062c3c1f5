"""The loops of a kernel: cuts its elements into rows and columns, and its rows into chunks."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, isqrt

from ...core.node import Node
from ..loops.operations import accumulated_in
from ..nodes.thresholds import (
    ADDITIONS_IN_A_ROW,
    ELEMENTS_OF_A_PARTIAL,
    ENOUGH_CHUNKS,
    FEWEST_ROUNDS,
    FEWEST_TO_REDUCE,
    MOST_CHUNKS,
    SHORTEST_CHUNK,
    SHORTEST_ROW,
)
from ..nodes.view import Dims
from .compute import Compute, Looped
from .kinds import Place


@dataclass(frozen=True)
class Chunking:
    """How a reduction across rows is divided into chunks.

    The result of a floating-point sum depends on its grouping.  So the chunks depend on the shape alone, not on the
    number of threads.
    """

    most: int = MOST_CHUNKS  # the most chunks
    least: int = SHORTEST_CHUNK  # the fewest elements in a chunk
    spread: int = ELEMENTS_OF_A_PARTIAL  # the fewest elements for each partial result
    additions: int = ADDITIONS_IN_A_ROW  # of floats to one place, from which on there are more chunks
    rounds: bool = True  # whether a round of a loop may take several elements
    parts: bool = True  # whether a row of several parts may have a loop for each part
    scans: bool = True  # whether the rounds of a row may follow one another, as running totals need
    apart: int = ENOUGH_CHUNKS  # so many chunks whose results are apart are enough for all threads; 0: there are none
    lanes: int = 8  # float32 in a vector of a product by loops; 0 if libraries compute all products
    registers: int = 16  # vectors
    products: bool = False  # whether loops compute all products of matrices: libraries are slower


@dataclass(frozen=True)
class Loops:
    """The loops of a kernel: `rows` × `columns`, or one over all elements (`flat`).

    A round takes `steps` elements of a row: the number for which all views are evenly spaced, if that is too few for a
    row.  A kernel that reduces across rows has `chunks` of `chunk` rows (or elements), each with partial results.  If
    the chunks are `apart`, no two of them reduce to the same place, and their results are final.  A kernel with running
    totals of rows has chunks too: a chunk is a run.  With a `triangle`, the rows are those of matrices of so many rows,
    and end at the column of the last row of a range.
    """

    elements: int
    columns: int
    flat: bool
    steps: int = 1
    chunks: int = 0
    chunk: int = 0
    apart: bool = False
    triangle: int = 0

    @property
    def rows(self) -> int:
        return 1 if self.flat else self.elements // self.columns

    @property
    def parts(self) -> int:
        """The number of partial results for each place."""
        return 1 if self.apart else self.chunks

    @property
    def units(self) -> int:
        """The number of chunks, rows or elements that threads can share."""
        return self.chunks or (self.elements if self.flat else self.rows)

    def __str__(self) -> str:
        columns = f"{self.columns // self.steps} × {self.steps}" if self.steps > 1 else str(self.columns)
        what = f"{self.elements} element{'s' * (self.elements != 1)}" if self.flat else f"{self.rows} rows of {columns}"
        return f"{what} in {self.chunks} chunks{', each with its own results' * self.apart}" if self.chunks else what


def loops_of(group: Looped, computes: dict[Node, Compute], chunking: Chunking) -> Loops:
    """The loops of a group: rows as reductions need them, or so long that every view is evenly spaced in a row."""
    elements, flat = group.elements, False
    columns, steps = (group.row, 1) if group.row is not None else _row(_runs(group, computes), chunking)
    to_steps = steps > 1 and any(computes[node].target.dims[-1:] == [(steps, 1)] for node in group.partials)
    if to_steps and columns < FEWEST_TO_REDUCE * steps:
        columns, steps = steps, 1
    if not columns:
        columns, flat = elements, not _is_cut(group, computes)
    if group.run > 1:
        return Loops(elements, columns, flat, steps, elements // (columns * group.run), group.run)
    if not group.partials:
        return Loops(elements, columns, flat, steps)
    units = elements if flat else elements // columns
    widest = max(node.size for node in group.partials)
    enough = _chunks_for_sums(group, computes, 1 if flat else columns, units, chunking.additions)
    enough = max(enough, min(chunking.most, elements // chunking.least))
    chunks = max(1, min(enough, elements // (chunking.spread * widest), units))
    outer, *others = {computes[node].outer for node in group.partials}
    apart = chunking.apart and outer > 1 and not others and units % outer == 0
    if apart and outer >= min(chunks, chunking.apart):
        return Loops(elements, columns, flat, steps, outer, units // outer, apart=True)
    length = -(-units // chunks)
    return Loops(elements, columns, flat, steps, -(-units // length), length)


def _is_cut(group: Looped, computes: dict[Node, Compute]) -> bool:
    """Whether all elements are one row, because a row is cut where a placed part ends: no loop has choices then.

    Threads cannot share a single row.
    """
    if group.partials or group.run > 1:
        return False
    return any(c.edges(group.elements) for n in group.levels if isinstance(c := computes[n], Place))


def _chunks_for_sums(group: Looped, computes: dict[Node, Compute], columns: int, units: int, most: int) -> int:
    """In how many chunks at most about `most` floats are added to one place: rounding errors grow with their number.

    A sum of everything stays: its loops add up in blocks (`loops.bands`).  The partial results are added up, too, so
    there are never more of them than additions in a chunk.
    """
    additions = 0
    for node in group.partials:
        compute = computes[node]
        if node.size > 1 and compute.reduction == "sum" and accumulated_in(node).kind == "f":
            parts = split(compute.target.dims, columns)
            totals = parts is not None and not any(stride for _, stride in parts[1])  # a row's sum is in a register
            additions = max(additions, units * (1 if totals else columns) // node.size)
    return -(-additions // max(most, isqrt(additions)))


def _row(runs: list[tuple[int, int]], chunking: Chunking) -> tuple[int, int]:
    """The length of a row, and the elements of a round; (0, 1) if rows would be too short."""
    if not runs:
        return 0, 1
    steps = gcd(*[last for last, _ in runs])
    if steps >= SHORTEST_ROW:
        return steps, 1
    rounds = gcd(*[before if last == steps else last // steps for last, before in runs])
    if chunking.rounds and steps > 1 and rounds >= FEWEST_ROUNDS:
        return steps * rounds, steps
    return 0, 1


def _runs(group: Looped, computes: dict[Node, Compute]) -> list[tuple[int, int]]:
    """The sizes of the last two dimensions of all arrays that the nodes loop over, last one first."""
    runs = []
    for node in (*group.levels, *group.partials):
        compute = computes[node]
        if compute.size == group.elements and node not in group.finishes:
            runs += [(dims[-1][0], dims[-2][0]) for dims in compute.walks(group) if len(dims) > 1]
    return runs


def split(dims: Dims, columns: int) -> tuple[Dims, Dims] | None:
    """Dimensions cut into those of rows and those of columns; None if there is no such cut.

    >>> split([(6, 1)], 3), split([(2, 1), (3, 2)], 3)
    (([(2, 3)], [(3, 1)]), ([(2, 1)], [(3, 2)]))
    """
    outer: Dims = list(dims)
    inner: Dims = []
    left = columns
    while left > 1:
        if not outer:
            return None
        size, stride = outer.pop()
        if left % size == 0:
            inner.insert(0, (size, stride))
            left //= size
        elif size % left == 0:
            inner.insert(0, (left, stride))
            outer.append((size // left, stride * left))
            left = 1
        else:
            return None
    return outer, inner
