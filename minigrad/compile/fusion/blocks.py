"""Blocks: runs a kernel over rows together with the matrix products around it, a few rows at a time.

The scores of attention are a matrix product with a row for each query and a column for each key.  A kernel takes the
softmax of each row, and the next product multiplies the weights with the values.  In memory, scores and weights would
take queries × keys numbers.  But each row of them depends on one query only.  So one step goes over blocks of queries:
it computes the scores of a block in scratch memory, runs the kernel on these rows, and multiplies the result.

The gradient needs the weights again.  Its kernel computes them from the scores and from the numbers that the first
kernel stored for each row, the maximum and the sum.  The scores themselves are multiplied again, block by block.

Where a mask hides all keys after the query, a block ends at the key of its last query (see `masks`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

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
from .compute import IN_ORDER, PER_ELEMENT, Compute
from .group import Block, Factor, Group, Partition
from .kinds import Elementwise, Library, stacked
from .masks import hides_later_columns


def with_blocks(partition: Partition) -> Partition:
    """The partition with blocks where they fit."""
    return _Finder(partition).found()


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
        self.partition, self.computes = partition, partition.computes
        self.at = {group: number for number, group in enumerate(partition.groups)}
        self.maker = {node: group for group in partition.groups for node in group.stores}
        self.readers: dict[Node, dict[Group, None]] = {}
        for group in partition.groups:
            for node in group.loads:
                self.readers.setdefault(node, {})[group] = None
        others = [*partition.graph.effects, *[check.node for check in partition.checks]]
        self.kept = {view.base for view in (*partition.outputs, *[partition.views[node] for node in others])}
        self.groups = [group for group in partition.groups if _takes_rows(group)]

    def found(self) -> Partition:
        """The partition with the blocks."""
        before = -1
        while before != len(self.groups):  # a product joins a block only if all its readers are in blocks
            before = len(self.groups)
            self.groups = [g for g in self.groups if self._into(g) and any(self._ready(g, node) for node in g.levels)]
        for group in self.groups:
            self._recompute(group)
        taken = set[Library]()
        out: dict[Group, dict[Library, Factor]] = {}
        for group in self.groups:
            ready = [each for node in group.levels for each in self._ready(group, node).items()]
            out[group] = {product: how for product, how in ready if product not in taken}
            taken.update(out[group])
        blocks = {group: self._block(group, out[group], taken) for group in self.groups}
        return replace(self.partition, blocks=blocks) if blocks else self.partition

    # Products ---------------------------------------------------------------------------------------------------------

    def _into(self, group: Group) -> list[Library]:
        """The products whose results only kernels of blocks read, each element where they compute with it."""
        return [self.computes[node] for node in group.loads if self._is_into(node, group)]  # type: ignore[misc]

    def _is_into(self, node: Node, group: Group) -> bool:
        if not _is_product(self.computes.get(node)) or node in self.kept or node.size != group.elements:
            return False
        fits = node.shape[-1] == group.row and _is_short(node)
        return fits and all(self._in_order(node, each) for each in self.readers[node])

    def _in_order(self, node: Node, group: Group) -> bool:
        """Whether a kernel of a block reads a node only at the position of its loops."""
        if group not in self.groups or group.elements != node.size:
            return False
        readers = [self.computes[each] for each in group.levels]
        return all(c.access(view) is IN_ORDER for c in readers for view in c.views if view.base is node)

    def _ready(self, group: Group, node: Node) -> dict[Library, Factor]:
        """The products of a node's value that can be computed with a group, because the other operand is complete."""
        if node.size != group.elements or node.shape[-1] != group.row:
            return {}
        libraries = [reader.library for reader in self.readers.get(node, ())]
        products = [each for each in libraries if each is not None and _is_product(each)]
        ways = [(product, multiplied(product, node)) for product in products]
        return {product: how for product, how in ways if how is not None and self._is_before(how.right.base, group)}

    def _is_before(self, node: Node, group: Group) -> bool:
        maker = self.maker.get(node)
        return maker is None or self.at[maker] < self.at[group]

    # Values that are computed again -----------------------------------------------------------------------------------

    def _recompute(self, group: Group) -> None:
        """Compute values of other blocks again that a kernel would load, and those that its products multiply."""
        makers: dict[Group, None] = {}
        for node in [*group.loads]:
            maker = self.maker.get(node)
            if maker is not None and maker is not group and self._pull(node, maker, group):
                makers[maker] = None
        for maker in makers:
            for node in [*maker.levels]:
                early = self._ready(maker, node)
                if node not in group.levels and any(p not in early for p in self._ready(group, node)):
                    self._pull(node, maker, group)

    def _pull(self, node: Node, maker: Group, group: Group) -> bool:
        """Compute a node, and the values per element that it is computed from, in another group, if that is faster."""
        if (maker.elements, maker.row, maker.levels.get(node)) != (group.elements, group.row, PER_ELEMENT):
            return False
        cone, loads = [node], dict[Node, None]()
        for member in cone:
            if not isinstance(self.computes[member], Elementwise):
                return False
            for base in self.computes[member].bases:
                if base in group.levels or base in cone:
                    continue
                if maker.levels.get(base) == PER_ELEMENT:
                    cone.append(base)
                elif base.size == group.elements and not self._is_into(base, maker):
                    return False
                else:
                    loads[base] = None
        if group.size + len(cone) > MOST_NODES:
            return False
        for base in loads:
            if base in maker.levels and base not in maker.stores:
                maker.stores.append(base)
                self.maker[base] = maker
            self.readers.setdefault(base, {})[group] = None
        group.loads |= loads
        for member in cone:
            group.loads.pop(member, None)
            self.readers.get(member, {}).pop(group, None)
        levels = group.levels | dict.fromkeys(cone, PER_ELEMENT)
        group.levels = {n: levels[n] for n in sorted(levels, key=lambda n: self.computes[n].position)}
        return True

    # The result -------------------------------------------------------------------------------------------------------

    def _block(self, group: Group, out: dict[Library, Factor], taken: Collection[Library]) -> Block:
        """The block of a group, whose stores and loops are changed."""
        into = {
            p: Factor(stacked(p.reads[0], p.node), stacked(p.reads[1], p.node), p.node) for p in self._into(group)
        }
        factors = {how.left for how in out.values()}
        needed = {node for node in group.levels if self.maker.get(node) is group and self._is_needed(node, taken)}
        inside = [*[product.node for product in into], *[n for n in group.levels if n in factors - needed]]
        out = {p: how if how.left in inside else how._replace(left=whole(how.left)) for p, how in out.items()}
        group.stores = [node for node in group.levels if node in needed or node in factors]
        shape = inside[0].shape
        alone = all(node in inside for node in group.stores if group.levels[node] == PER_ELEMENT)
        triangular = alone and hides_later_columns(group, self.computes, shape)
        if triangular and group.loops is not None:
            group.loops = replace(group.loops, triangle=shape[-2])
        return Block(into, out, tuple(inside), shape, _rows(shape[-1], triangular), triangular)

    def _is_needed(self, node: Node, taken: Collection[Library]) -> bool:
        """Whether a value must be in memory, because a kernel or a product outside blocks reads it."""
        readers = [reader.library for reader in self.readers.get(node, ())]
        return node in self.kept or any(library is None or library not in taken for library in readers)


def _takes_rows(group: Group) -> bool:
    """Whether a group is a kernel that reduces rows, and whose rows do not depend on each other."""
    loops = group.loops
    if loops is None or group.row is None or loops.flat or loops.chunks or loops.steps > 1:
        return False
    return not (group.finishes or group.inplace) and loops.columns == group.row > 1


def _is_product(compute: Compute | None) -> bool:
    """Whether a library multiplies matrices, and can write the result into existing memory."""
    if not isinstance(compute, Library) or compute.launched or compute.node.op is not P.matmul:
        return False
    node = compute.node
    operands = all(isinstance(read, View) and read.base.dtype == node.dtype for read in compute.reads)
    return operands and node.dtype in (float32, float64) and node.ndim >= 2


def _is_short(product: Node) -> bool:
    """Whether computing the matrices of a product takes less time than to store and load them."""
    height, width = product.shape[-2:]
    depth = product.inputs[0].shape[-1]
    return height * width >= LARGE_MATRIX and depth <= LONGEST_SUMS and min(height, width) >= TIMES_LONGER * depth


def _rows(width: int, triangular: bool) -> int:
    """The rows of a block."""
    return max(FEWEST_BLOCK_ROWS, min(MOST_TRIANGLE_ROWS if triangular else MOST_BLOCK_ROWS, BLOCK_ELEMENTS // width))
