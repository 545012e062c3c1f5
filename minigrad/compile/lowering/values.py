"""The writer of values: the statements that compute one node of a kernel, for an element, for a row, or once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ..fusion.compute import Recipe
from ..fusion.levels import FULL, ONCE, ROW
from ..fusion.loop_shape import split
from ..loops.index import plus, position, times
from ..loops.ir import Accumulate, Accumulator, For, Index, Let, Operand, Store
from ..loops.operations import OPERATIONS
from ..loops.scalar import Done, Given, accumulated_in, computed_in, steps_of, typed
from ..nodes.view import View, is_made, whole
from .placing import place

if TYPE_CHECKING:
    from .lower import Block, _Lowering


class ValueWriter:
    """Writes the statements that compute values into the blocks of a kernel, each value once in a block."""

    def __init__(self, lowering: _Lowering) -> None:
        self.lowering, self.group, self.loops = lowering, lowering.group, lowering.loops
        self.variable: Index = "i"  # of the innermost loop: which element of the row a round is at
        self.count = 0
        self.level_of: dict[str, str] = {}  # name -> how often it is computed
        self.reciprocals: dict[str, str] = {}
        self.making: Node | None = None  # what is being computed
        self.origins: dict[str, Node] = {}  # name -> the node that it is computed for

    def new_name(self) -> str:
        """A name that nothing has yet."""
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

    def let_at(self, level: str, op: str, args: tuple[Any, ...], dtype: Any) -> str:
        """A new value in the block that runs as often as that."""
        return self.let(self.block(level), op, args, dtype)

    def block(self, level: str) -> Block:
        """The block that runs so often."""
        lowering = self.lowering
        return {FULL: lowering.inner, ROW: lowering.row, ONCE: lowering.top}[level]

    # Nodes ------------------------------------------------------------------------------------------------------------

    def compute(self, node: Node, block: Block) -> None:
        """Compute a node in a block."""
        self.making = node
        recipe = self.lowering.recipes[node]
        if node in self.group.finishes:
            value: Operand = self._finished(node, block)
        elif recipe.kind == "place":
            value = place(self, recipe, block)
        elif recipe.kind == "made":
            value = self._made(whole(node), recipe.size)
        elif recipe.kind == "copy":
            value = self.cast(self.read(recipe.reads[0], recipe), node.inputs[0].dtype, node.dtype, block)
        else:
            value = self._elementwise(node, recipe, block)
        block.names[node] = value  # type: ignore[assignment]

    def _elementwise(self, node: Node, recipe: Recipe, block: Block) -> Operand:
        assert node.op is not None
        dtype = computed_in(node)
        given: list[Operand] = []
        for i, read in enumerate(recipe.reads):
            if isinstance(read, View):
                given.append(self.read(read, recipe))
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
        if op == "div" and block.level == FULL and self._is_row_value(args[1]) and dtype.itemsize >= 4:
            return self.let(block, "mul", (args[0], self._reciprocal(str(args[1]), dtype)), dtype)
        return self.let(block, op, tuple(args), dtype)

    def _is_row_value(self, operand: Operand) -> bool:
        return isinstance(operand, str) and self.level_of.get(operand) in (ROW, ONCE)

    def _reciprocal(self, name: str, dtype: Any) -> str:
        """One division for a row, and a product for each of its elements."""
        if name not in self.reciprocals:
            block = self.lowering.row if self.level_of[name] == ROW else self.lowering.top
            self.reciprocals[name] = self.let(block, "div", (1.0, name), dtype)
        return self.reciprocals[name]

    def cast(self, value: Operand, source: Any, target: Any, block: Block) -> Operand:
        """A value in another dtype."""
        if source == target:
            return value
        return self.let(block, "cast", (value,), target) if isinstance(value, str) else typed(value, target)

    def reduced(self, node: Node, name: str, block: Block) -> None:
        """Let the accumulator `name` be the value of a reduction."""
        self.making = node
        self.level_of[name] = block.level
        block.names[node] = self.cast(name, accumulated_in(node), node.dtype, block)  # type: ignore[assignment]

    def _finished(self, node: Node, block: Block) -> Operand:
        """A reduction across rows, put together from what the chunks of an earlier kernel have left."""
        lowering = self.lowering
        dtype, chunks = accumulated_in(node), lowering.chunks_of[node]
        index, _ = self.index(whole(node), node.size)
        if chunks == 1:
            value: Operand = self.let(block, "load", (lowering.partial(node), index), dtype)
        elif node in lowering.gathered:
            value = self.let(block, "load", (lowering.parameter(node, "in").name, index), dtype)
        else:
            chunk = f"k{self.new_name()}"
            place = plus(times(chunk, node.size), index)
            load = Let(self.new_name(), "load", (lowering.partial(node), place), dtype)
            total = Accumulator(self.new_name(), node.name, load.name, dtype)
            block.statements.append(For(chunk, 0, chunks, [load], [total]))
            self.level_of[total.name] = block.level
            value = total.name
        return self.cast(value, dtype, node.dtype, block)

    def gather(self, node: Node) -> None:
        """Put together many results before the loop that reads them, chunk by chunk, in the order of memory."""
        self.making, lowering = node, self.lowering
        partial, buffer = lowering.partial(node), lowering.parameter(node, "out").name
        number = self.new_name()
        first, chunk, other = f"m{number}", f"k{number}", f"n{number}"
        start = Let(self.new_name(), "load", (partial, first), node.dtype)
        added = Let(self.new_name(), "load", (partial, plus(times(chunk, node.size), other)), node.dtype)
        inner = For(other, "lo", "hi", [added, Accumulate(node.name, buffer, other, added.name)])
        lowering.top.statements += [
            For(first, "lo", "hi", [start, Store(buffer, first, start.name)]),
            For(chunk, 1, lowering.chunks_of[node], [inner]),
        ]

    # Reads ------------------------------------------------------------------------------------------------------------

    def read(self, read: Any, recipe: Recipe) -> Operand:
        """The value of an operand, where a loop of the recipe's shape reads it."""
        if not isinstance(read, View):
            return read  # type: ignore[no-any-return]
        base, lowering = read.base, self.lowering
        if is_made(base):
            return self._made(read, recipe.size)
        level = self.group.levels.get(base)
        if level is None:
            return self.loaded(base, *self.index(read, recipe.size))
        block = self.block(level)
        if base not in block.names:  # of an earlier pass
            if base in lowering.reread:
                place = lowering.parameter(base, "in").name, self.here()
            else:
                place = lowering.scratch[base].name, self.variable
            block.names[base] = self.let(block, "load", place, base.dtype)
        return block.names[base]

    def loaded(self, base: Node, index: Index, level: str) -> str:
        """An element of an array in memory."""
        if level == ONCE and isinstance(index, int):
            buffer, index = self.lowering.number(base, index)
        else:
            buffer = self.lowering.parameter(base, "in").name
        return self.named(buffer, "load", index, level, base.dtype)

    def named(self, buffer: str, op: str, index: Index, level: str, dtype: Any) -> str:
        """What is loaded from a buffer, or an index as a number, once in the block where it changes."""
        block = self.block(level)
        key = (buffer, index)
        if key not in block.names:
            block.names[key] = self.let(block, op, (buffer, index) if buffer else (index,), dtype)
        return block.names[key]

    def _made(self, view: View, size: int) -> Operand:
        """An element of what is filled or counted."""
        attrs, dtype = view.base.attrs, view.base.dtype
        if view.base.name == "full":
            return typed(np.asarray(attrs["value"]).astype(dtype).item(), dtype)
        index, level = self.index(view, size)
        block = self.block(level)
        key = (view.base, index)
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

    def here(self) -> Index:
        """The number of the current element."""
        return self.variable if self.loops.flat else plus(self.variable, times("p", self.loops.columns))

    def index(self, view: View, size: int) -> tuple[Index, str]:
        """Where the current element of a loop over `size` elements lies in a view, and how often that changes."""
        loops, dims = self.loops, view.dims
        if not any(stride for _, stride in dims):
            return view.offset, ONCE
        if loops.flat:
            return position(dims, self.variable, view.offset), FULL
        if size != loops.elements:
            return position(dims, "p", view.offset), ROW
        parts = split(dims, loops.columns)
        if parts is None:
            return position(dims, self.here(), view.offset), FULL
        outer, inner = parts
        place = plus(position(inner, self.variable), position(outer, "p", view.offset))
        return place, FULL if any(stride for _, stride in inner) else ROW
