"""Writes the statements that compute one node of a kernel, per element, per row, or once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ..fusion.compute import ONCE, PER_ELEMENT, PER_ROW, Compute, Level
from ..fusion.group import FEW_CHUNKS
from ..fusion.kinds import Scatter, is_counted
from ..fusion.loop_shape import split
from ..loops.index import plus, position, times
from ..loops.ir import Accumulate, Accumulator, For, Index, Let, Operand, Running, Store
from ..loops.operations import REDUCTIONS
from ..loops.scalar import accumulated_in, typed
from ..nodes.view import View, is_filled, whole
from .write import WRITERS, positioned

if TYPE_CHECKING:
    from .lower import Block, _Lowering


class Part(NamedTuple):
    """The columns of a row that one loop computes: `variable` counts them from `low` on."""

    variable: str
    low: int
    high: int


class ValueWriter:
    """Writes the statements of values into the blocks of a kernel, each value once per block."""

    def __init__(self, lowering: _Lowering) -> None:
        self.lowering, self.group, self.loops = lowering, lowering.group, lowering.loops
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
        lowering = self.lowering
        return {PER_ELEMENT: lowering.inner, PER_ROW: lowering.row, ONCE: lowering.top}[level]

    # Nodes ------------------------------------------------------------------------------------------------------------

    def compute(self, node: Node, block: Block) -> None:
        """Write the statements of a node into a block."""
        value = self._finished(node, block) if node in self.group.finishes else self.value(node, block)
        block.names[node] = value  # type: ignore[assignment]

    def value(self, node: Node, block: Block) -> Operand:
        """Write one round of a node: its value, or the operand of its reduction."""
        self.making = node
        compute = self.lowering.computes[node]
        return WRITERS[compute.__class__](self, compute, block)

    def cast(self, value: Operand, source: Any, target: Any, block: Block) -> Operand:
        """A value in another dtype."""
        if source == target:
            return value
        return self.let(block, "cast", (value,), target) if isinstance(value, str) else typed(value, target)

    def reduced(self, node: Node, name: str, block: Block) -> None:
        """Make the accumulator `name` the value of a reduction."""
        self.making = node
        self.level_of[name] = block.level
        block.names[node] = self.cast(name, accumulated_in(node), node.dtype, block)  # type: ignore[assignment]

    def _finished(self, node: Node, block: Block) -> Operand:
        """A reduction across rows, from the partial results of an earlier kernel."""
        self.making, lowering = node, self.lowering
        dtype, chunks = accumulated_in(node), lowering.chunks_of[node]
        reduction = lowering.computes[node].reduction
        index, _ = self.index(whole(node), node.size)
        if chunks <= FEW_CHUNKS:
            value: Operand = self.let(block, "load", (lowering.partial(node), index), dtype)
            for number in range(1, chunks):
                place = plus(index, number * node.size)
                part = self.let(block, "load", (lowering.partial(node), place), dtype)
                value = self.let(block, REDUCTIONS[reduction], (value, part), dtype)
        elif node in lowering.gathered:
            value = self.let(block, "load", (lowering.parameter(node, "in").name, index), dtype)
        else:
            chunk = f"k{self.new_name()}"
            place = plus(times(chunk, node.size), index)
            load = Let(self.new_name(), "load", (lowering.partial(node), place), dtype)
            total = Accumulator(self.new_name(), reduction, load.name, dtype)
            block.statements.append(For(chunk, 0, chunks, [load], [total]))
            self.level_of[total.name] = block.level
            value = total.name
        return self.cast(value, dtype, node.dtype, block)

    def gather(self, node: Node) -> None:
        """Reduce partial results before the loop that reads them, chunk by chunk, in the order of memory."""
        self.making, lowering = node, self.lowering
        partial, buffer = lowering.partial(node), lowering.parameter(node, "out").name
        number = self.new_name()
        first, chunk, other = f"m{number}", f"k{number}", f"n{number}"
        start = Let(self.new_name(), "load", (partial, first), node.dtype)
        added = Let(self.new_name(), "load", (partial, plus(times(chunk, node.size), other)), node.dtype)
        taken = Accumulate(lowering.computes[node].reduction, buffer, other, added.name)
        inner = For(other, "lo", "hi", [added, taken])
        lowering.top.statements += [
            For(first, "lo", "hi", [start, Store(buffer, first, start.name)]),
            For(chunk, 1, lowering.chunks_of[node], [inner]),
        ]

    # Reads ------------------------------------------------------------------------------------------------------------

    def read(self, read: Any, compute: Compute) -> Operand:
        """The value of an operand at the position of the loops of a computation."""
        if not isinstance(read, View):
            return read  # type: ignore[no-any-return]
        base, lowering = read.base, self.lowering
        if is_filled(base):
            return self.filled(read, compute.size)
        level = self.group.levels.get(base)
        if level is None:
            return self.loaded(base, *self.index(read, compute.size))
        block = self.block(level)
        if base not in block.names:  # an earlier pass has computed it
            if base in lowering.reread:
                place = lowering.parameter(base, "in").name, self.here()
            else:
                place = lowering.scratch[base].name, self.variable
            block.names[base] = self.let(block, "load", place, base.dtype)
        return block.names[base]

    def loaded(self, base: Node, index: Index, level: Level) -> str:
        """An element of an array in memory."""
        if level == ONCE and isinstance(index, int):
            buffer, index = self.lowering.number(base, index)
        else:
            buffer = self.lowering.parameter(base, "in").name
        return self.named(buffer, "load", index, level, base.dtype)

    def named(self, buffer: str, op: str, index: Index, level: Level, dtype: Any) -> str:
        """A load from a buffer, or an index as a number, once in the block of its level."""
        block = self.block(level)
        key = (buffer, index)
        if key not in block.names:
            block.names[key] = self.let(block, op, (buffer, index) if buffer else (index,), dtype)
        return block.names[key]

    def filled(self, view: View, size: int) -> Operand:
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

    def target(self, compute: Compute) -> tuple[Index, Level]:
        """The place of the current element's result in the results of its chunk, and how often it changes."""
        if isinstance(compute, Scatter):
            return positioned(self, compute, whole(compute.node))
        view, step = compute.target, compute.node.size // self.loops.chunks if self.loops.apart else 0
        strides = [0 if step and stride >= step else stride for stride in view.strides]
        return self.index(view._replace(strides=tuple(strides)), compute.size)

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
