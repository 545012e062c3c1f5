"""Lowering: turns a group of nodes into a kernel in the loop language.

A kernel with reductions goes over each row several times.  The *pass* of a value is the first one in which it can be
computed: a reduction of a row is complete one pass later than its input.  Softmax has three passes: the maximum, the
sum of the exponentials, the quotients.  A later pass may need a value of an earlier pass again.  It loads the value if
it is stored anyway, reads it from a row of scratch memory if it was expensive, and computes it again if it was cheap.

The statements go into three blocks, by how often they run: once before all loops, once per row, and in the innermost
loop.  A load goes into the outermost block in which its index is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ...core.node import Node
from ..fusion.compute import ONCE, PER_ELEMENT, PER_ROW, Compute, Level
from ..fusion.count import Count, distinct_bytes
from ..fusion.group import Group, Partition
from ..fusion.kinds import LoopProduct, Place, Scan, Scatter
from ..loops.index import plus, position, remainder, round_of, times
from ..loops.ir import (
    BOOL,
    LONG,
    Accumulate,
    Accumulator,
    For,
    Index,
    Kernel,
    Let,
    Operand,
    Parameter,
    Statement,
    Store,
)
from ..loops.operations import SCANS, accumulated_in, identity
from ..nodes.thresholds import DEAR_BYTES, SHORTEST_PART
from .elements import Argument, Block, Part, PerKind


@dataclass(eq=False)
class Lowered:
    """A kernel, the memory that its parameters point to, and the cost of a run."""

    group: Group
    kernel: Kernel
    arguments: list[Argument]
    count: Count
    origins: dict[str, Node] = field(default_factory=dict)  # name in the kernel -> the node that it belongs to

    def by_nodes(self) -> Callable[[int], object]:
        """What runs the kernel without machine code."""
        from .by_nodes import ByNodes

        return ByNodes(self)


def lower(partition: Partition, group: Group) -> Lowered:
    """The kernel of a group without a library call."""
    if isinstance(group.library, LoopProduct):
        return _product(partition, group, group.library)
    return _Lowering(partition, group).lowered()


def _product(partition: Partition, group: Group, compute: LoopProduct) -> Lowered:
    """The kernel of a product by loops."""
    from .product import product_kernel

    names = {base: f"b{number}" for number, base in enumerate(compute.bases)}
    left, right = [names[view.base] for view in compute.views]
    kernel = product_kernel(compute, (left, right), partition.chunking)
    nodes = {name: base for base, name in names.items()} | {"out": compute.node}
    arguments = [Argument(nodes.get(p.name), "value" if p.name in nodes else "scratch") for p in kernel.parameters]
    return Lowered(group, kernel, arguments, compute.count)


class _Lowering(PerKind):
    def __init__(self, partition: Partition, group: Group) -> None:
        super().__init__(partition, group)
        self.tail: list[Statement] = []  # of a row, after all of its loops
        self.order = sorted({*group.levels, *group.partials}, key=lambda n: self.computes[n].position)
        self.passes = self._passes()
        self.wanted = self._wanted()
        self.last_pass = max((k for k, nodes in self.wanted.items() if nodes), default=-1)

    # The passes -------------------------------------------------------------------------------------------------------

    def _passes(self) -> dict[Node, int]:
        passes: dict[Node, int] = {}
        for node in self.order:
            compute = self.computes[node]
            if node in self.group.finishes:
                passes[node] = 0
                continue
            inputs = [passes[base] for base in compute.bases if base in self.group.levels]
            passes[node] = max(inputs, default=0) + (self.reduces_row(node) or self._follows(node))
        return passes

    def _follows(self, node: Node) -> bool:
        """Whether a node needs a pass after its inputs: processors compute costly operations on many elements at once,
        but running totals one after the other."""
        if self.group.run > 1:
            return False
        compute = self.computes[node]
        inputs = [self.computes[base] for base in self._inputs(node)]
        if isinstance(compute, Scan):
            return any(each.cost >= DEAR_BYTES for each in inputs)
        return compute.cost >= DEAR_BYTES and any(isinstance(each, Scan) for each in inputs)

    def reduces_row(self, node: Node) -> bool:
        """Whether a node is a reduction that is complete at the end of its row."""
        return self._is_reduced(node) and node in self.group.levels

    def _wanted(self) -> dict[int, list[Node]]:
        """For each pass, the nodes that are reduced or stored in it."""
        wanted: dict[int, list[Node]] = {k: [] for k in range(max(self.passes.values(), default=0) + 1)}
        for node in self.order:
            if self.reduces_row(node):
                wanted[self.passes[node] - 1].append(node)
            elif node in self.group.partials:
                if self.computes[node].size == self.loops.elements:
                    wanted[self.passes[node]].append(node)
            elif node in self.group.stores and self.group.levels[node] == PER_ELEMENT and node not in self.gathered:
                wanted[self.passes[node]].append(node)
        return wanted

    def _computed(self) -> dict[int, list[Node]]:
        """For each pass, the nodes that its loop computes; also finds the values that are kept between passes."""
        computed: dict[int, list[Node]] = {}
        costs = self._costs()
        keep: dict[int, list[Node]] = {k: [] for k in self.wanted}
        for k in reversed(self.wanted):
            found: set[Node] = set()
            stack = [*keep[k]]
            for node in self.wanted[k]:
                stack += self._inputs(node) if self._is_reduced(node) else [node]
            while stack:
                node = stack.pop()
                if node in found:
                    continue
                if self.passes[node] < k:
                    if node in self.group.stores:
                        self.reread.add(node)
                        continue
                    if costs[node] >= DEAR_BYTES:
                        if node not in self.scratch:
                            size = self.loops.columns
                            self.scratch[node] = Parameter(f"s{len(self.scratch)}", node.dtype, size, "scratch")
                            keep[self.passes[node]].append(node)
                        continue
                found.add(node)
                stack += self._inputs(node)
            computed[k] = sorted(found, key=lambda n: self.computes[n].position)
        return computed

    def _is_reduced(self, node: Node) -> bool:
        return self.computes[node].reduces and node not in self.group.finishes

    def _inputs(self, node: Node) -> list[Node]:
        """The inputs of a node that the innermost loop computes."""
        if node in self.group.finishes:
            return []
        return [base for base in self.computes[node].bases if self.group.levels.get(base) == PER_ELEMENT]

    def _costs(self) -> dict[Node, float]:
        costs: dict[Node, float] = {}
        for node in self.order:
            costs[node] = self.computes[node].cost + sum(costs[i] for i in self._inputs(node))
        return costs

    # The kernel -------------------------------------------------------------------------------------------------------

    def lowered(self) -> Lowered:
        """The kernel, its arguments and its cost."""
        computed = self._computed()
        for node in self.group.finishes:
            if node in self.gathered:
                self.gather_parts(node)
        for node in self.order:
            if self.group.levels.get(node) == ONCE:
                self.compute(node, self.top)
        for k in range(self.last_pass + 1):
            self._row_values(k)
            self._loops(k, computed[k])
        self._row_values(*range(self.last_pass + 1, len(self.wanted) + 1))
        self._store_row_values()
        body = self._body()
        own = [*self.scratch.values(), *self.totals.values()]
        parameters = [*self.parameters.items(), *[(Argument(None, "scratch"), p) for p in own]]
        loops = self.loops
        parallel = "chunks" if loops.chunks else "elements" if loops.flat else "rows"
        kernel = Kernel("kernel", [p for _, p in parameters], body, loops.units, parallel)
        arguments = [argument for argument, _ in parameters]
        count = Count(self._bytes_read(), self._bytes_written(), self._flops(), 1)
        return Lowered(self.group, kernel, arguments, count, self.origins)

    def _row_values(self, *passes: int) -> None:
        for node in self.order:
            if self.group.levels.get(node) == PER_ROW and self.passes[node] in passes and not self.reduces_row(node):
                self.compute(node, self.row)

    def _loops(self, k: int, nodes: list[Node]) -> None:
        """The loop of pass k over a row, or over all elements.  A row of several parts has a loop for each part."""
        columns, computes = self.loops.columns, [self.computes[node] for node in (*nodes, *self.wanted[k])]
        edges = {0, columns}.union(*[each.edges(columns) for each in computes if isinstance(each, Place)])
        parts = [Part(f"r{k}p{n}", *ends) for n, ends in enumerate(pairwise(sorted(edges)))]
        apart = self.partition.chunking.long and not (self.loops.flat or self.loops.steps > 1 or self.loops.triangle)
        divides = apart and all(map(self._is_apart, computes)) and 1 < len(parts) <= columns // SHORTEST_PART
        for self.part in parts if divides else [None]:
            self._loop(k, nodes)
        self.part = None

    def _loop(self, k: int, nodes: list[Node]) -> None:
        """A loop of pass k."""
        part = self.part
        variable = part.variable if part else "i" if self.loops.flat else f"r{k}"
        body: list[Statement] = []
        accumulators: list[Accumulator] = []
        complete: list[tuple[Node, str]] = []
        after: list[Statement] = []
        stores: list[Statement] = []  # after all loads, because they may share memory
        known: dict[Any, str] = {}
        for step in range(self.loops.steps):
            self.inner = Block(PER_ELEMENT, body, known)
            at = round_of(variable, self.loops.steps, step)
            self.variable = plus(at, part.low if part else 0)
            for node in nodes:
                self.compute(node, self.inner)
            for node in self.wanted[k]:
                if self._is_reduced(node):
                    self._reduce(node, accumulators, complete, after)
                else:
                    name = self.parameter(node, "out").name
                    value = self.inner.names[node]
                    stores.append(Store(name, self.here(), value))
            for node, scratch in self.scratch.items():
                if self.passes[node] == k:
                    value = self.inner.names[node]
                    stores.append(Store(scratch.name, self.variable, value))
            names = self.inner.names.items()
            known = {key: name for key, name in names if isinstance(key, tuple)}  # loads
        body += stores
        if not body and not accumulators:
            return
        low, high = (0, part.high - part.low) if part else self._range()
        loop = For(variable, low, high, body, accumulators, self.loops.steps)
        self.row.statements.append(loop)
        for node, name in complete:
            self.reduced(node, name, self.row)
        self.row.statements += after

    def _range(self) -> tuple[Index, Index]:
        loops = self.loops
        if loops.triangle:
            last = remainder(plus("hi", loops.triangle - 1), loops.triangle)
            return 0, ("min", plus(last, 1), loops.columns)
        if not loops.flat:
            return 0, loops.columns // loops.steps
        return self._chunk_range(loops.elements) if loops.chunks else ("lo", "hi")

    def _chunk_range(self, units: int) -> tuple[Index, Index]:
        start = times("c", self.loops.chunk)
        end = plus(start, self.loops.chunk)
        return start, end if self.loops.apart else ("min", end, units)

    def _reduce(
        self, node: Node, accumulators: list[Accumulator], complete: list[tuple[Node, str]], after: list[Statement]
    ) -> None:
        """Write a reduction of the values of a loop: into a register, or into memory if each element has its place."""
        compute, dtype = self.computes[node], accumulated_in(node)
        value = self.value(node, self.inner)
        if node not in self.group.partials:
            name = self.new_name()
            accumulators.append(Accumulator(name, compute.reduction, value, dtype))
            complete.append((node, name))
            return
        buffer = self.partial(node)
        index, level = self._place(compute)
        if level == PER_ELEMENT:
            self.inner.statements.append(Accumulate(compute.reduction, buffer, index, value))
            return
        name = self.new_name()
        accumulators.append(Accumulator(name, compute.reduction, value, dtype))
        after.append(Accumulate(compute.reduction, buffer, index, name))

    def _store_row_values(self) -> None:
        """Write the stores and reductions that run once per row, after its loops, and once per kernel."""
        for node in self.group.stores:
            level = self.group.levels.get(node)
            if level == PER_ROW:
                self.tail.append(Store(self.parameter(node, "out").name, "p", self.row.names[node]))
            elif level == ONCE:
                self.top.statements.append(Store(self.parameter(node, "out").name, 0, self.top.names[node]))
        for node in self.group.partials:
            compute = self.computes[node]
            if compute.size != self.loops.elements:
                value = self.value(node, self.row)
                self.tail.append(Accumulate(compute.reduction, self.partial(node), self._place(compute)[0], value))

    def _is_apart(self, compute: Compute) -> bool:
        """Whether nothing goes from one column of a row to the next: a reduction has a place for each column."""
        if isinstance(compute, (Scan, Scatter)):
            return False
        sums = compute.node in self.group.partials and self._place(compute)[1] == PER_ELEMENT
        return sums or not compute.reduces

    def _place(self, compute: Compute) -> tuple[Index, Level]:
        """The place of the current element's result among the results of all chunks, and how often it changes."""
        index, level = self.target(compute)
        return plus(times("c", self._places(compute)), index), level

    def _places(self, compute: Compute) -> int:
        """The number of places that a chunk reduces to."""
        size = compute.node.size
        return size // self.loops.chunks if self.loops.apart else size

    def _body(self) -> list[Statement]:
        loops, row = self.loops, [*self.row.statements, *self.tail]
        if loops.flat and not loops.chunks:
            return [*self.top.statements, *row]
        if not loops.chunks:
            return [*self.top.statements, For("p", "lo", "hi", row)]
        work: list[Statement] = []
        for number, node in enumerate(self.group.partials):
            places = self._places(self.computes[node])
            place = plus(times("c", places), f"z{number}")
            lets, start = self._start(node, f"z{number}")
            work.append(For(f"z{number}", 0, places, [*lets, Store(self.partial(node), place, start)]))
        for number, (node, totals) in enumerate(self.totals.items()):
            first = identity(SCANS[node.name], totals.dtype)
            work.append(For(f"t{number}", 0, totals.size, [Store(totals.name, f"t{number}", first)]))
        work += row if loops.flat else [For("p", *self._chunk_range(loops.rows), row)]
        return [*self.top.statements, For("c", "lo", "hi", work)]

    def _start(self, node: Node, variable: str) -> tuple[list[Let], Operand]:
        """The number that element `variable` of a reduction across rows starts with in a chunk, and how to compute it.

        Only the first chunk starts with the elements of an array.
        """
        compute, dtype = self.computes[node], accumulated_in(node)
        none, base = identity(compute.reduction, dtype), compute.start
        if base is None:
            return [], none
        name = self.parameter(base.base, "in").name
        load = Let(f"{variable}_x", "load", (name, position(base.dims, variable, base.offset)), dtype)
        if self.loops.chunks == 1:
            return [load], load.name
        number = Let(f"{variable}_c", "index", ("c",), LONG)
        first = Let(f"{variable}_first", "eq", (number.name, 0), BOOL)
        start = Let(f"{variable}_start", "select", (first.name, load.name, none), dtype)
        return [load, number, first, start], start.name

    # The cost ---------------------------------------------------------------------------------------------------------

    def _bytes_read(self) -> int:
        read = [self.computes[node] for node in self.order if node not in self.group.finishes]
        views = [v for r in read for v in r.touched if v.base in r.bases and v.base not in self.group.levels]
        return distinct_bytes(views) + sum(map(self.partition.partial_bytes, self.group.finishes))

    def _bytes_written(self) -> int:
        partials = [node for node in self.group.partials if node not in self.group.stores]
        return sum(n.nbytes for n in self.group.stores) + sum(map(self.partition.partial_bytes, partials))

    def _flops(self) -> int:
        computed = [self.computes[node] for node in self.order if node not in self.group.finishes]
        finished = [node.size * (self.chunks_of[node] - 1) for node in self.group.finishes]
        return sum(compute.operations * compute.size for compute in computed) + sum(finished)
