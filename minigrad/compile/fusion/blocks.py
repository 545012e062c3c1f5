"""Blocks: runs a kernel over rows together with the matrix products around it, a few rows at a time.

The scores of attention are a matrix product with a row for each query and a column for each key.  A kernel takes the
softmax of each row, and the next product multiplies the weights with the values.  In memory, scores and weights would
take queries × keys numbers.  But each row of them depends on one query only.  So one step goes over blocks of queries:
it computes the scores of a block in scratch memory, runs the kernel on these rows, and multiplies the result.
The gradient needs the weights again.  Its kernel computes them from the scores and from the numbers that the first
kernel stored for each row, the maximum and the sum.  The scores themselves are multiplied again, block by block.

A causal mask adds a very negative number to the scores of later keys, so that their weights are exactly 0.  If a kernel
stores zeros there, and no reduction depends on them, a block ends at the key of its last query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from typing import Any

from ...core.dtypes import float32, float64
from ...core.node import Node
from ...core.primitive import P
from ..nodes.thresholds import (
    BLOCK_ELEMENTS,
    FEWEST_BLOCK_ROWS,
    LARGE_MATRIX,
    LONGEST_SUMS,
    MOST_BLOCK_ROWS,
    MOST_NODES,
    MOST_TRIANGLE_ROWS,
    TIMES_LONGER,
)
from ..nodes.view import View, whole
from ..rewriting.equation import value_of
from .compute import IN_ORDER, PER_ELEMENT, Compute
from .group import Block, Factor, Group, Partition
from .kinds import Elementwise, Library, stacked


def with_blocks(partition: Partition) -> Partition:
    """The partition with blocks where they fit.  They are the first of their level: others may read their products."""
    blocks = _Finder(partition).blocks()
    groups = sorted(partition.groups, key=lambda group: (group.depth, group not in blocks))
    return replace(partition, groups=tuple(groups), blocks=blocks) if blocks else partition


def multiplied(product: Library, node: Node) -> Factor | None:
    """How a product multiplies the matrices of a node; None if it reads them otherwise.

    A product with the matrices on its right side is the transpose of one with them on its left: (A X)ᵀ = Xᵀ Aᵀ.
    """
    left, right = product.reads
    out, own = whole(product.node), whole(node)
    if right.base is node:
        left, right, out = transposed(right), transposed(left), transposed(out)
    if left.base is not node or right.base is node or product.node.shape[:-2] != node.shape[:-2]:
        return None
    return Factor(node, stacked(right, node), out, left != own) if left in (own, transposed(own)) else None


def transposed(view: View) -> View:
    """The transposed matrices of a view."""
    shape, strides = [(*each[:-2], each[-1], each[-2]) for each in (view.shape, view.strides)]
    return View(view.base, view.offset, shape, strides)


class _Finder:
    """Finds the kernels that can run in blocks, and changes what they compute, load and store."""

    def __init__(self, partition: Partition) -> None:
        self.groups, self.computes, graph = partition.groups, partition.computes, partition.graph
        self.kept = partition.kept | {partition.views[node].base for node in graph.effects}
        self.overwritten = {source for group in partition.groups for source in group.inplace.values()}
        self.maker: dict[Node, Group] = {}
        self.readers: dict[Node, list[Group]] = {}
        self.product: dict[Group, Library] = {}  # those that may join a block
        for group in partition.groups:
            if group.library is not None and _is_product(group.library) and self.overwritten.isdisjoint(group.loads):
                self.product[group] = group.library
            self.maker |= dict.fromkeys((*group.levels, *group.stores), group)
            for node in group.loads:
                self.readers.setdefault(node, []).append(group)
        self.out: dict[Library, tuple[Group, Factor]] = {}  # the block that a product joins
        self.into = {group: self._into(group) for group in partition.groups if _takes_rows(group)}
        joins = {group: any(self._after(group, node) for node in group.levels) for group in self.into}
        self.into = {group: nodes for group, nodes in self.into.items() if nodes and joins[group]}

    def blocks(self) -> dict[Group, Block]:
        """The kernels that run in blocks, which are changed."""
        for group in self.into:
            self._compute_again(group)
            for node in group.levels:
                self.out |= {product: (group, how) for product, how in self._after(group, node).items()}
        read = [node for group in self.groups if group.library not in self.out for node in group.loads]
        return {group: self._block(group, self.kept.union(read)) for group in self.into}

    def _into(self, group: Group) -> list[Node]:
        """The products that only this kernel reads, each element where it computes with it."""
        reads = [(each, view) for each in map(self.computes.__getitem__, group.levels) for view in each.views]
        moved = {view.base for each, view in reads if each.access(view) is not IN_ORDER}
        found = [node for node in group.loads if node not in self.kept | moved and self.readers[node] == [group]]
        return [n for n in found if self.maker.get(n) in self.product and _is_row(n, group) and _is_short(n)]

    def _after(self, group: Group, node: Node) -> dict[Library, Factor]:
        """The products of a value of a kernel that can be computed with it."""
        readers = [reader for reader in self.readers.get(node, ()) if reader in self.product and _is_row(node, group)]
        ways = [(self.product[reader], multiplied(self.product[reader], node)) for reader in readers]
        return {product: how for product, how in ways if how is not None and self._is_in_time(product, how, group)}

    def _is_in_time(self, product: Library, how: Factor, group: Group) -> bool:
        """Whether no block has the product, the other operand is complete before a group, and all readers run later."""
        maker, readers = self.maker.get(how.right.base), self.readers.get(product.node, ())
        if maker is not None and maker.library in self.out:
            maker, _ = self.out[maker.library]
        late = all((r.depth, False) >= (group.depth, r in self.into) and r.library not in self.out for r in readers)
        return late and product not in self.out and (maker is None or maker.depth < group.depth)

    def _compute_again(self, group: Group) -> None:
        """Compute again the values of other blocks that a kernel would load, or that products with it multiply."""
        products = {node for nodes in self.into.values() for node in nodes}
        for maker in dict.fromkeys([self.maker.get(node) for node in group.loads]):
            if maker in self.into and (maker.elements, maker.row) == (group.elements, group.row):
                for node in maker.levels:
                    if node in group.loads or self._after(group, node):
                        self._pull(node, maker, group, products)
        group.levels = dict(sorted(group.levels.items(), key=lambda each: self.computes[each[0]].position))
        reads = [base for node in group.levels for base in self.computes[node].bases]
        group.loads = {base: None for base in reads if base not in group.levels}
        self.into[group] = [node for node in group.loads if node in products]

    def _pull(self, node: Node, maker: Group, group: Group, products: set[Node]) -> None:
        """Compute a value of another block in a group, if that needs only products of blocks and values per row."""
        cone = [node]
        for member in cone:
            if maker.levels[member] != PER_ELEMENT or not isinstance(self.computes[member], Elementwise):
                return
            for base in self.computes[member].bases:
                large = base.size == group.elements
                if large and base in maker.levels:
                    cone += [base] * (base not in group.levels and base not in cone)
                elif base in self.overwritten or (large and base not in products):
                    return
        if group.size + len(cone) <= MOST_NODES:
            group.levels |= dict.fromkeys(cone, PER_ELEMENT)

    def _block(self, group: Group, read: set[Node]) -> Block:
        """The block of a group, whose stores and loops are changed: others read these values."""
        before = [self.product[self.maker[node]] for node in self.into[group]]
        into = {p: Factor(stacked(p.reads[0], p.node), stacked(p.reads[1], p.node), p.node) for p in before}
        out = {product: how for product, (home, how) in self.out.items() if home is group}
        needed = {node for node in group.levels if self.maker[node] is group and node in read}
        factors = [node for node in group.levels if node in {how.left for how in out.values()}]
        inside = (*self.into[group], *[node for node in factors if node not in needed])
        out = {p: how if how.left in inside else how._replace(left=whole(how.left)) for p, how in out.items()}
        group.stores = [node for node in group.levels if node in needed or node in factors]
        shape = inside[0].shape
        alone = all(node in inside for node in group.stores if group.levels[node] == PER_ELEMENT)
        most, triangular = MOST_BLOCK_ROWS, alone and hides_later_columns(group, self.computes, shape)
        if triangular and group.loops is not None:
            most, group.loops = MOST_TRIANGLE_ROWS, replace(group.loops, triangle=shape[-2])
        rows = max(FEWEST_BLOCK_ROWS, min(most, BLOCK_ELEMENTS // shape[-1]))
        return Block(into, out, inside, shape, rows, triangular)


def _takes_rows(group: Group) -> bool:
    """Whether a group is a kernel that reduces rows, and whose rows do not depend on each other."""
    loops = group.loops
    if loops is None or group.row is None or loops.flat or loops.chunks or loops.steps > 1:
        return False
    return not (group.finishes or group.inplace) and loops.columns == group.row > 1


def _is_row(node: Node, group: Group) -> bool:
    """Whether the rows of a node are those of a kernel."""
    return node.size == group.elements and node.shape[-1] == group.row


def _is_product(library: Library) -> bool:
    """Whether a library multiplies matrices, and can write the result into existing memory."""
    node = library.node
    if library.launched or node.op is not P.matmul or node.dtype not in (float32, float64) or node.ndim < 2:
        return False
    return all(isinstance(read, View) and read.base.dtype == node.dtype for read in library.reads)


def _is_short(product: Node) -> bool:
    """Whether computing the matrices of a product takes less time than to store and load them."""
    height, width, depth = (*product.shape[-2:], product.inputs[0].shape[-1])
    return height * width >= LARGE_MATRIX and depth <= LONGEST_SUMS and min(height, width) >= TIMES_LONGER * depth


# Masks ----------------------------------------------------------------------------------------------------------------

LOWEST = -1e30  # a number below is as good as -∞, also after sums with scores
NEUTRAL = {"sum": 0.0, "max": -inf}  # the values that do not change a reduction


def hides_later_columns(group: Group, computes: dict[Node, Compute], shape: tuple[int, ...]) -> bool:
    """Whether every value that a kernel stores or reduces is 0 (or -∞, for a maximum) where column > row."""
    if shape[-2] < shape[-1]:
        return False
    known: dict[Node, float] = {}
    for node, level in group.levels.items():
        reads = computes[node].reads
        values = [_at(read, known) for read in reads]
        if computes[node].reduces and values != [NEUTRAL.get(node.name)]:
            return False
        if level == PER_ELEMENT:
            named = " ".join([node.name.removesuffix("_equal"), *[_counted(read, shape) for read in reads]])
            value = RULES.get(named.strip(), lambda *_: nan)(*values)
            known[node] = -inf if value <= LOWEST else value
    return all(known.get(node, 0) == 0 for node in group.stores)


def _at(read: Any, known: dict[Node, float]) -> float:
    """A value that a computation reads, at positions after the diagonal."""
    number = value_of(read.base) if isinstance(read, View) else read
    return known.get(read.base, nan) if number is None else float(number)


def _counted(read: Any, shape: tuple[int, ...]) -> str:
    """Whether a view counts the rows or the columns of each matrix."""
    if not isinstance(read, View) or read.base.name != "arange" or read.offset or read.shape[-2:] != shape[-2:]:
        return ""
    if (read.base.attrs["start"], read.base.attrs["step"]) != (0, 1) or any(read.strides[:-2]):
        return ""
    return "row" if read.strides[-2:] == (1, 0) else "column" if read.strides[-2:] == (0, 1) else ""


RULES: dict[str, Callable[..., float]] = {
    "add": lambda x, y: -inf if -inf in (x, y) else x + y,
    "subtract": lambda x, y: x if x == -inf else x - y,
    "multiply": lambda x, y: 0.0 if 0 in (x, y) else x * y,
    "divide": lambda x, y: 0.0 if x == 0 else nan,
    "exp": lambda x: 0.0 if x == -inf else nan,
    "where": lambda condition, x, y: x if condition == 1 or x == y else y if condition == 0 else nan,
    "astype": lambda x: x,
    "less row column": lambda x, y: 1.0,
    "less column row": lambda x, y: 0.0,
    "bitwise_or": lambda x, y: 1.0 if 1 in (x, y) else x + y,
    "bitwise_and": lambda x, y: 0.0 if 0 in (x, y) else x * y,
}
