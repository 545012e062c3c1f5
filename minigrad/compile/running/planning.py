"""Planning: makes the plan of a partition and its kernels.  The plan does not refer to nodes and groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ...core.node import Node
from ..fusion.count import Count
from ..fusion.group import Block, Factor, Group, Partition
from ..fusion.kinds import Library
from ..loops.ir import Parameter
from ..lowering.lower import Lowered
from ..nodes.view import View
from .plan import (
    CHECK,
    IN_PLACE,
    INPUT,
    Blocked,
    Buffer,
    Call,
    Check,
    Launch,
    Plan,
    Read,
    Step,
    Turns,
    is_product,
    laid_out,
    one_by_one,
)


def planned(
    partition: Partition, lowered: Mapping[Group, Lowered], turns: Turns = one_by_one, any_layout: bool = False
) -> Plan:
    """The plan of a partition; `turns` decides which steps run at the same time, `any_layout` permits permuted results.

    >>> from minigrad.compile.fusion.fuse import fuse
    >>> from minigrad.compile.lowering.lower import lower
    >>> partition = fuse(mg.trace(lambda x: mg.tanh(x @ x), mg.ones((2, 2))))
    >>> plan = planned(partition, {group: lower(partition, group) for group in partition.kernels})
    >>> [(buffer.name, buffer.kind) for buffer in plan.buffers]
    [('tensor_1', 'input'), ('matmul_1', 'slot'), ('tanh_1', 'result')]
    """
    planning = _Planning(partition, lowered)
    return laid_out(planning.buffers, planning.steps, planning.outputs, turns, any_layout)


class _Planning:
    def __init__(self, partition: Partition, lowered: Mapping[Group, Lowered]) -> None:
        self.partition, self.lowered = partition, lowered
        self.names = partition.graph.names()
        self.buffers: list[Buffer] = []
        self.numbers: dict[Any, int] = {}  # the buffers of nodes and of their partial results
        self.steps: list[Step] = []
        for number, node in enumerate(partition.graph.inputs):
            lasting = getattr(node, "lasting", False) and node.device.is_standard
            self._add(node, replace(self._made(node, INPUT, number), lasting=lasting))
        self._check(None)
        in_blocks = {product for block in partition.blocks.values() for product in block.products}
        for group in partition.groups:
            if group.library not in in_blocks:
                self.steps.append(self._step(group))
            self._check(group)
        self.outputs = [self._read(view) for view in partition.outputs]

    # buffers --------------------------------------------------------------------------------------------------------

    def _buffer(self, node: Node, kind: str = "", number: int = -1) -> int:
        """The number of a node's buffer, which is added if it is new."""
        if node not in self.numbers:
            self._add(node, self._made(node, kind, number))
        return self.numbers[node]

    def _in_place(self, node: Node, source: Node) -> int:
        """The number of a node's buffer, which is stored in an input, or where a value stands that is stored there."""
        number = self.numbers[source]
        there = self.buffers[number]
        return self._buffer(node, IN_PLACE, there.number if there.kind == IN_PLACE else number)

    def _made(self, node: Node, kind: str, number: int) -> Buffer:
        return Buffer(self.names[node], node.shape, node.dtype, node.device, node.where, kind, number)

    def _partial(self, node: Node, parameter: Parameter) -> int:
        """The number of the buffer for the partial results of a reduction across rows."""
        if (node, "partial") not in self.numbers:
            name = f"partial {self.names[node]}"
            made = Buffer(name, (parameter.size,), parameter.dtype, node.device, node.where)
            self._add((node, "partial"), made)
        return self.numbers[node, "partial"]

    def _add(self, key: Any, buffer: Buffer) -> None:
        self.numbers[key] = len(self.buffers)
        self.buffers.append(buffer)

    def _read(self, view: View) -> Read:
        return Read(self._buffer(view.base), view.offset, view.shape, view.strides)

    # steps ----------------------------------------------------------------------------------------------------------

    def _step(self, group: Group) -> Step:
        if group in self.partition.blocks:
            return self._blocked(group, self.partition.blocks[group])
        library = None if group in self.lowered else group.library
        return self._launch(group) if library is None else self._call(group, library)

    def _blocked(self, group: Group, block: Block) -> Blocked:
        """A kernel with the products around it."""
        launch = self._launch(group, block.inside)
        numbers = {node: number for number, node in enumerate(block.inside)}
        arguments = enumerate(self.lowered[group].arguments)
        given = tuple([(i, numbers[argument.node]) for i, argument in arguments if argument.node in numbers])

        def placed(factor: Factor) -> Factor:
            left, right, out = [self._read(p) if isinstance(p, View) else numbers[p] for p in factor[:3]]
            return Factor(left, right, out, factor.turned)

        into, out = [tuple(map(placed, some.values())) for some in (block.into, block.out)]
        count = sum([product.count for product in block.products], launch.count)
        written = sum([node.nbytes for node in block.inside])
        read = [p.node for p in block.into] + [how.left for how in block.out.values() if how.left in numbers]
        saved = Count(-sum([node.nbytes for node in read]), -written, 0, -count.launches)
        before, after = [[self.names[p.node] for p in some] for some in (block.into, block.out)]
        dtypes = tuple([node.dtype for node in block.inside])
        size = block.shape, block.rows, block.triangular
        made = Blocked(launch, into, out, dtypes, given, *size, count + saved, (*before, *launch.computes, *after))
        return replace(made, count=made.count + Count(launches=made.calls()))

    def _launch(self, group: Group, inside: Collection[Node] = ()) -> Launch:
        lowered, stored = self.lowered[group], {source: out for out, source in group.inplace.items()}
        numbers: list[int | None] = []
        for argument, parameter in zip(lowered.arguments, lowered.kernel.parameters):
            node = argument.node
            if node is None or node in inside:
                numbers.append(None)
            elif argument.kind == "partial":
                numbers.append(self._partial(node, parameter))
            elif node in stored:
                numbers.append(self._in_place(stored[node], node))
            else:
                numbers.append(self._buffer(node))
        made = [group.library.node] if group.library is not None else [*group.levels, *group.partials]
        computed = [node for node in made if self._is_computed_in(node, group)]
        computed.sort(key=lambda node: self.partition.computes[node].position)
        offsets = tuple([argument.offset for argument in lowered.arguments])
        names = tuple(dict.fromkeys(self.names[node] for node in computed))
        where = computed[0].where if computed else None
        return Launch(
            group.name, lowered.kernel, tuple(numbers), offsets, lowered.count, names, where, lowered.by_nodes)

    @staticmethod
    def _is_computed_in(node: Node, group: Group) -> bool:
        """Whether a kernel computes a node, instead of only combining its partial results."""
        return node not in group.finishes or node in group.partials

    def _call(self, group: Group, compute: Library) -> Call:
        node = compute.node
        assert node.op is not None
        reads = tuple([self._read(read) if isinstance(read, View) else read for read in compute.reads])
        fills = is_product(node.op, node.shape, node.dtype)
        takes = compute.count, node.effect, node.where
        source = group.inplace.get(node)
        out = self._buffer(node) if source is None else self._in_place(node, source)
        return Call(self.names[node], node.op, reads, node.attrs, out, fills, *takes, in_place=source is not None)

    def _check(self, group: Group | None) -> None:
        """Add the checks of a group's results (None: of the inputs)."""
        for (node, size, reader), view in self.partition.checked.get(group, ()):
            number = sum(isinstance(step, Check) for step in self.steps) + 1
            count = Count(view.footprint * node.dtype.itemsize)
            self.steps.append(Check(
                f"{CHECK}{number}", self._read(view), size, reader.name, count,
                (reader.origin or reader).where))  # of a gradient, the code says what is differentiated
