"""The statements of one element: what a kernel reads, and what it computes, with a method for each kind of computation.

Values are computed per element, per row or once, in blocks of statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ..fusion.compute import ONCE, PER_ELEMENT, PER_ROW, Compute, Level
from ..fusion.group import Group, Partition, split
from ..fusion.kinds import Copy, Elementwise, Filled, Gather, Place, Reduction, Scan, Scatter, is_counted
from ..loops.index import divided, plus, position, remainder, times
from ..loops.ir import Accumulate, Accumulator, For, Index, Let, Operand, Parameter, Running, Statement, Store
from ..loops.operations import OPERATIONS, REDUCTIONS, SCANS, Done, Given, accumulated_in, computed_in, steps_of, typed
from ..nodes.thresholds import FEW_PARTIALS
from ..nodes.view import View, is_filled, whole


class Argument(NamedTuple):
    """The memory that a parameter points to: the value of a node, its partial results, or scratch memory (no node).

    A number that is the same for the whole kernel is a separate parameter: it points to element `offset` of the node.
    So kernels that differ only in this offset are equal.
    """

    node: Node | None
    kind: str  # value, number, partial or scratch
    offset: int = 0
    reduction: str = ""  # of partial results


@dataclass(eq=False)
class Block:
    """Statements that run equally often, and the names of their values."""

    level: Level
    statements: list[Statement] = field(default_factory=list)
    names: dict[Any, str] = field(default_factory=dict)


class Part(NamedTuple):
    """The columns of a row that one loop computes: `variable` counts them from `low` on."""

    variable: str
    low: int
    high: int


class Elements:
    """Writes the statements that read elements into the blocks of a kernel, each once per block."""

    def __init__(self, partition: Partition, group: Group) -> None:
        assert group.loops is not None
        self.partition, self.group, self.computes, self.loops = partition, group, partition.computes, group.loops
        self.chunks_of, self.gathered = partition.chunks_of, partition.gathered
        self.parameters: dict[Argument, Parameter] = {}
        self.top, self.row, self.inner = Block(ONCE), Block(PER_ROW), Block(PER_ELEMENT)
        self.scratch: dict[Node, Parameter] = {}
        self.totals: dict[Node, Parameter] = {}  # the rows of running totals
        self.reread: set[Node] = set()  # outputs that a later pass loads
        self.variable: Index = "i"  # the position in the row, in the innermost loop
        self.part: Part | None = None
        self.count = 0
        self.level_of: dict[str, Level] = {}  # name -> how often it is computed
        self.making: Node | None = None  # the node whose statements are being written
        self.origins: dict[str, Node] = {}  # name -> the node that it is computed for

    def new_name(self) -> str:
        """A new name."""
        self.count += 1
        name = f"v{self.count}"
        if self.making is not None:
            self.origins[name] = self.making
        return name

    def let(self, block: Block, op: str, args: tuple[Any, ...], dtype: Any) -> str:
        """A new value in a block."""
        name = self.new_name()
        block.statements.append(Let(name, op, args, dtype))
        self.level_of[name] = block.level
        return name

    def running(self, block: Block, op: str, value: Operand, dtype: Any) -> str:
        """A new running total in a block."""
        name = self.new_name()
        block.statements.append(Running(name, op, value, dtype))
        self.level_of[name] = block.level
        return name

    def block(self, level: Level) -> Block:
        """The block of a level."""
        return {PER_ELEMENT: self.inner, PER_ROW: self.row, ONCE: self.top}[level]

    # Nodes ------------------------------------------------------------------------------------------------------------

    def cast(self, value: Operand, source: Any, target: Any, block: Block) -> Operand:
        """A value in a different dtype."""
        if source == target:
            return value
        return self.let(block, "cast", (value,), target) if isinstance(value, str) else typed(value, target)

    def reduced(self, node: Node, name: str, block: Block) -> None:
        """Make the accumulator `name` the value of a reduction."""
        self.making = node
        self.level_of[name] = block.level
        block.names[node] = self.cast(name, accumulated_in(node), node.dtype, block)  # type: ignore[assignment]

    def finished(self, node: Node, block: Block) -> Operand:
        """A reduction across rows, from the partial results of an earlier kernel."""
        self.making = node
        dtype, chunks = accumulated_in(node), self.chunks_of[node]
        reduction = self.computes[node].reduction
        index, _ = self.index(whole(node), node.size)
        if chunks <= FEW_PARTIALS:
            value: Operand = self.let(block, "load", (self.partial(node), index), dtype)
            for number in range(1, chunks):
                place = plus(index, number * node.size)
                part = self.let(block, "load", (self.partial(node), place), dtype)
                value = self.let(block, REDUCTIONS[reduction], (value, part), dtype)
        elif node in self.gathered:
            value = self.let(block, "load", (self.parameter(node, "in").name, index), dtype)
        else:
            chunk = f"k{self.new_name()}"
            place = plus(times(chunk, node.size), index)
            load = Let(self.new_name(), "load", (self.partial(node), place), dtype)
            total = Accumulator(self.new_name(), reduction, load.name, dtype)
            block.statements.append(For(chunk, 0, chunks, [load], [total]))
            self.level_of[total.name] = block.level
            value = total.name
        return self.cast(value, dtype, node.dtype, block)

    def gather_parts(self, node: Node) -> None:
        """Reduce partial results before the loop that reads them, chunk by chunk, in the order of memory."""
        self.making = node
        partial, buffer = self.partial(node), self.parameter(node, "out").name
        number = self.new_name()
        first, chunk, other = f"m{number}", f"k{number}", f"n{number}"
        start = Let(self.new_name(), "load", (partial, first), node.dtype)
        added = Let(self.new_name(), "load", (partial, plus(times(chunk, node.size), other)), node.dtype)
        taken = Accumulate(self.computes[node].reduction, buffer, other, added.name)
        inner = For(other, "lo", "hi", [added, taken])
        self.top.statements += [
            For(first, "lo", "hi", [start, Store(buffer, first, start.name)]),
            For(chunk, 1, self.chunks_of[node], [inner]),
        ]

    # Reads ------------------------------------------------------------------------------------------------------------

    def read(self, read: Any, compute: Compute) -> Operand:
        """The value of an operand at the position of the loops of a computation."""
        if not isinstance(read, View):
            return read  # type: ignore[no-any-return]
        base = read.base
        if is_filled(base):
            return self.of_filled(read, compute.size)
        level = self.group.levels.get(base)
        if level is None:
            return self.loaded(base, *self.index(read, compute.size))
        block = self.block(level)
        if base not in block.names:  # an earlier pass has computed it
            if base in self.reread:
                place = self.parameter(base, "in").name, self.here()
            else:
                place = self.scratch[base].name, self.variable
            block.names[base] = self.let(block, "load", place, base.dtype)
        return block.names[base]

    def loaded(self, base: Node, index: Index, level: Level) -> str:
        """An element of an array in memory."""
        if level == ONCE and isinstance(index, int):
            buffer, index = self.number(base, index)
        else:
            buffer = self.parameter(base, "in").name
        return self.named(buffer, "load", index, level, base.dtype)

    def named(self, buffer: str, op: str, index: Index, level: Level, dtype: Any) -> str:
        """A load from a buffer, or an index as a number, once in the block of its level."""
        block = self.block(level)
        key = (buffer, index)
        if key not in block.names:
            block.names[key] = self.let(block, op, (buffer, index) if buffer else (index,), dtype)
        return block.names[key]

    def of_filled(self, view: View, size: int) -> Operand:
        """An element of a tensor that is filled with a number or with positions."""
        attrs, dtype = view.base.attrs, view.base.dtype
        if view.base.name == "full":
            return typed(np.asarray(attrs["value"]).astype(dtype).item(), dtype)
        return self.counted(view.base, *self.index(view, size))

    def counted(self, base: Node, index: Index, level: Level) -> Operand:
        """The number at a position of an `arange`."""
        attrs, dtype, block = base.attrs, base.dtype, self.block(level)
        key = (base, index)
        if key not in block.names:
            start, step = attrs["start"], attrs["step"]
            whole_numbers = isinstance(start, int) and isinstance(step, int)
            counted = dtypes.int64 if whole_numbers else dtypes.float64
            value: Operand = self.named("", "index", index, level, dtypes.int64)
            value = self.cast(value, dtypes.int64, counted, block)
            if step != 1:
                value = self.let(block, "mul", (value, typed(step, counted)), counted)
            if start != 0:
                value = self.let(block, "add", (value, typed(start, counted)), counted)
            block.names[key] = self.cast(value, counted, dtype, block)  # type: ignore[assignment]
        return block.names[key]

    # Places -----------------------------------------------------------------------------------------------------------

    def position(self, view: View, size: int, compute: Compute) -> tuple[Index, Level]:
        """The current number of a view as a position in a dimension of `size`, and how often it changes."""
        if is_counted(view, size):
            index, level = self.index(view, compute.size)
            return plus(times(index, view.base.attrs["step"]), view.base.attrs["start"]), level
        value = self.read(view, compute)
        level = self.level_of.get(value, ONCE)  # type: ignore[arg-type]
        block, key = self.block(level), ("position", value, size)
        if key not in block.names:
            number = self.cast(value, view.base.dtype, dtypes.int64, block)
            if not isinstance(number, str):
                number = self.let(block, "cast", (number,), dtypes.int64)
            block.names[key] = self.let(block, "position", (number, size), dtypes.int64)
        return block.names[key], level

    def here(self) -> Index:
        """The number of the current element."""
        return self.variable if self.loops.flat else plus(self.variable, times("p", self.loops.columns))

    def index(self, view: View, size: int) -> tuple[Index, Level]:
        """The position in a view of the current element of a loop over `size` elements, and how often it changes."""
        loops, dims = self.loops, view.dims
        if not any(stride for _, stride in dims):
            return view.offset, ONCE
        if loops.flat:
            return position(dims, self.variable, view.offset), PER_ELEMENT
        if size != loops.elements:
            return position(dims, "p", view.offset), PER_ROW
        parts = split(dims, loops.columns)
        if parts is None:
            return position(dims, self.here(), view.offset), PER_ELEMENT
        outer, inner = parts
        within = position(inner, self.variable)
        place = plus(within, position(outer, "p", view.offset))
        return place, PER_ROW if isinstance(within, int) else PER_ELEMENT

    # Memory -----------------------------------------------------------------------------------------------------------

    def parameter(self, node: Node, role: str) -> Parameter:
        """The pointer to a node's value, where the kernel reads (`in`) or writes it (`out`)."""
        node = self.group.inplace.get(node, node)
        found = self.parameters.get(Argument(node, "value"))
        if found is None:
            found = self._parameter(Argument(node, "value"), node.dtype, node.size, role)
        elif node in self.group.inplace.values() and found.role != role:
            found.role = "inout"
        return found

    def totals_of(self, node: Node) -> str:
        """The name of the row of running totals."""
        if node not in self.totals:
            name = f"t{len(self.totals)}_row"
            self.totals[node] = Parameter(name, accumulated_in(node), self.loops.columns, "scratch")
        return self.totals[node].name

    def number(self, node: Node, offset: int) -> tuple[str, int]:
        """The buffer and the position of a single element of a node, the same for the whole kernel."""
        if node.size == 1 or node in self.group.inplace.values():
            return self.parameter(node, "in").name, offset
        argument = Argument(node, "number", offset)
        return (self.parameters.get(argument) or self._parameter(argument, node.dtype, 1, "in")).name, 0

    def _parameter(self, argument: Argument, dtype: Any, size: int, role: str) -> Parameter:
        made = self.parameters[argument] = Parameter(f"b{len(self.parameters)}", dtype, size, role)
        return made

    def partial(self, node: Node) -> str:
        """The name of the pointer to a node's partial results; the result of a single chunk is already final."""
        if node in self.group.stores and node in self.group.partials:
            return self.parameter(node, "out").name
        argument = Argument(node, "partial", reduction=self.computes[node].reduction)
        found = self.parameters.get(argument)
        if found is None:
            role = "partial" if node in self.group.partials else "in"
            size = node.size * self.chunks_of[node]
            found = self._parameter(argument, accumulated_in(node), size, role)
        return found.name


# A method per kind: it writes one round of the loops for a node, its value or the operand of its reduction ------------


class PerKind(Elements):
    """Writes the statements of nodes."""

    def compute(self, node: Node, block: Block) -> None:
        """Write the statements of a node into a block."""
        value = self.finished(node, block) if node in self.group.finishes else self.value(node, block)
        block.names[node] = value  # type: ignore[assignment]

    def value(self, node: Node, block: Block) -> Operand:
        """Write one round of a node: its value, or the operand of its reduction."""
        self.making = node
        compute = self.computes[node]
        return self.WRITERS[compute.__class__](self, compute, block)

    def reduction(self, compute: Compute, block: Block) -> Operand:
        """The element that is read, in the dtype of the accumulator."""
        value = self.read(compute.reads[0], compute)
        return self.cast(value, compute.node.inputs[0].dtype, accumulated_in(compute.node), block)

    def scan(self, compute: Compute, block: Block) -> Operand:
        """The running total with the element that is read, in the dtype of the result."""
        node, value = compute.node, self.reduction(compute, block)
        op, dtype = SCANS[node.name], accumulated_in(node)
        if compute.run == 1:
            total = self.running(block, op, value, dtype)
        else:
            place = self.totals_of(node), self.variable
            before = self.let(block, "load", place, dtype)
            total = self.let(block, REDUCTIONS[op], (before, value), dtype)
            block.statements.append(Store(*place, total))
        return self.cast(total, dtype, node.dtype, block)

    def copy(self, compute: Compute, block: Block) -> Operand:
        """The element that is read, in the dtype of the result."""
        value = self.read(compute.reads[0], compute)
        return self.cast(value, compute.node.inputs[0].dtype, compute.node.dtype, block)

    def gather(self, compute: Gather, block: Block) -> Operand:
        """The element at positions from memory."""
        x = compute.reads[0]
        if x.base.size == 1 or (is_filled(x.base) and x.base.name == "full"):
            return self.read(compute.within(x), compute)
        index, level = self.positioned(compute, x)
        return self.counted(x.base, index, level) if is_filled(x.base) else self.loaded(x.base, index, level)

    def scatter(self, compute: Scatter, block: Block) -> Operand:
        """The value that is added, in the dtype of the sum."""
        value, dtype = compute.reads[1], accumulated_in(compute.node)
        if not isinstance(value, View):
            return typed(value, dtype)  # type: ignore[no-any-return]
        return self.cast(self.read(value, compute), value.base.dtype, dtype, block)

    def positioned(self, compute: Gather, whole: View) -> tuple[Index, Level]:
        """The index of the current element in an array that is read or written at positions, and how often it changes.
        """
        index, level = self.index(compute.within(whole), compute.size)
        for (view, size), stride in zip(compute.positions, whole.strides):
            place, changes = self.position(view, size, compute)
            index, level = plus(index, times(place, stride)), min(level, changes)
        return index, level

    def filled(self, compute: Compute, block: Block) -> Operand:
        """The number, or the position."""
        return self.of_filled(whole(compute.node), compute.size)

    # Elementwise ------------------------------------------------------------------------------------------------------

    def elementwise(self, compute: Compute, block: Block) -> Operand:
        """The steps of the primitive's expression."""
        node = compute.node
        assert node.op is not None
        dtype = computed_in(node)
        given: list[Operand] = []
        for i, read in enumerate(compute.reads):
            if isinstance(read, View):
                given.append(self.read(read, compute))
            else:
                condition = node.op.promotes is not None and node.op.name_of(i) not in node.op.promotes
                given.append(typed(read, dtypes.bool if condition else dtype))
        done: list[Operand] = []
        for op, operands in steps_of(node.op):
            args = []
            for operand in operands:
                if isinstance(operand, Given):
                    args.append(given[operand.input])
                else:
                    args.append(done[operand.step] if isinstance(operand, Done) else typed(operand, dtype))
            done.append(self._step(node, op, args, dtype, block))
        return done[-1]

    def _step(self, node: Node, op: str, args: list[Operand], dtype: Any, block: Block) -> Operand:
        if op == "cast":
            return self.cast(args[0], node.inputs[0].dtype, node.dtype, block)
        if op == "bitcast":
            return self.let(block, op, tuple(args), node.dtype)
        if op in ("floor", "rint") and dtype.kind != "f":
            return args[0]
        if op == "select":
            condition = node.inputs[0]
            if isinstance(condition, Node):
                args[0] = self.cast(args[0], condition.dtype, dtypes.bool, block)
        if OPERATIONS[op].gives == "bool":
            if not any(isinstance(arg, str) for arg in args):
                args[0] = self.let(block, "cast", (args[0],), dtype)
            if dtype.kind == "b" and op != "eq":  # False is less than True
                args[0] = self.let(block, "invert", (args[0],), dtype)
                op = {"lt": "and", "le": "or"}[op]
            return self.let(block, op, tuple(args), dtypes.bool)
        return self.let(block, op, tuple(args), dtype)

    # Places -----------------------------------------------------------------------------------------------------------

    def place(self, compute: Place, block: Block) -> Operand:
        """The current element of the whole: an element of the part if the part covers the position, else 0.

        The gradient of a slice is a `place`.  Outside the part, the loop still loads some element of it, because a
        choice takes less time than a branch.  Often the choice is the same for a whole row.  A loop over columns of one
        part does not choose.
        """
        (part,) = compute.reads
        index, level = part.offset, ONCE
        inside: Operand | None = None
        zero = typed(0, compute.node.dtype)
        inner = 1  # elements between neighbours of this dimension
        for span in reversed(compute.spans()):
            where, changes = self._coordinate(compute.size, span.size, inner)
            columns = self.part
            if not span.covered and columns is not None and span.size * inner == self.loops.columns:
                begin, end = span.start * inner, (span.start + span.length) * inner
                if columns.high <= begin or columns.low >= end:
                    return zero
                where = divided(plus(columns.variable, columns.low - begin), inner)
            elif not span.covered:
                shifted = remainder(plus(where, span.size - span.start), span.size) if span.start else where
                number = self.named("", "index", shifted, changes, dtypes.int64)
                hit = self.let(self.block(changes), "lt", (number, span.length), dtypes.bool)
                inside = hit if inside is None else self.let(block, "and", (inside, hit), dtypes.bool)
                where = ("min", shifted, span.length - 1) if span.length > 1 else 0
            inner *= span.size
            if span.stride and where != 0:
                index = plus(index, times(where, span.stride))
                level = min(level, changes)
        if part.base.name == "full" and not part.base.inputs:
            value = self.read(part, compute)
        else:
            value = self.loaded(part.base, index, level)
        if inside is None:
            return value
        return self.let(block, "select", (inside, value, zero), compute.node.dtype)

    def _coordinate(self, total: int, size: int, inner: int) -> tuple[Index, Level]:
        """The position in a dimension of the current element of a loop over `total` elements, and how often it
        changes.
        """
        loops = self.loops
        if loops.flat or total != loops.elements:
            variable, level = (self.variable, PER_ELEMENT) if loops.flat else ("p", PER_ROW)
            return _digit(variable, inner, size, total), level
        columns = loops.columns
        if inner % columns == 0:
            return _digit("p", inner // columns, size, loops.rows), PER_ROW
        if columns % (inner * size) == 0:
            return _digit(self.variable, inner, size, columns), PER_ELEMENT
        if columns % inner == 0 and inner * size % columns == 0:  # several rows make up the dimension
            row = _digit("p", 1, inner * size // columns, loops.rows)
            return plus(divided(self.variable, inner), times(row, columns // inner)), PER_ELEMENT
        return _digit(self.here(), inner, size, total), PER_ELEMENT

    def target(self, compute: Compute) -> tuple[Index, Level]:
        """The place of the current element's result in the results of its chunk, and how often it changes."""
        if isinstance(compute, Scatter):
            return self.positioned(compute, whole(compute.node))
        view, step = compute.target, compute.node.size // self.loops.chunks if self.loops.apart else 0
        strides = [0 if step and stride >= step else stride for stride in view.strides]
        return self.index(view._replace(strides=tuple(strides)), compute.size)

    WRITERS: ClassVar[dict[type[Compute], Callable[..., Operand]]] = {
        Elementwise: elementwise, Reduction: reduction, Scan: scan, Copy: copy, Place: place, Filled: filled,
        Gather: gather, Scatter: scatter,
    }



def _digit(count: Index, inner: int, size: int, total: int) -> Index:
    count = divided(count, inner)
    return remainder(count, size) if inner * size < total else count
