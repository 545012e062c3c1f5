"""Writes the statements of each kind of computation: one method per kind.

A method writes one round of the loops for a node: its value at the current element, or the operand of its reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core import dtypes
from ...core.node import Node
from ..fusion.compute import ONCE, PER_ELEMENT, PER_ROW, Compute, Level
from ..fusion.kinds import Copy, Elementwise, Filled, Gather, Place, Reduction, Scan, Scatter
from ..loops.index import divided, plus, remainder, times
from ..loops.ir import Index, Operand, Store
from ..loops.operations import OPERATIONS, REDUCTIONS, SCANS, Done, Given, accumulated_in, computed_in, steps_of, typed
from ..nodes.view import View, is_filled, spans, whole
from .elements import Block, Elements


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

    def place(self, compute: Compute, block: Block) -> Operand:
        """The current element of the whole: an element of the part if the part covers the position, else 0.

        The gradient of a slice is a `place`.  Outside of the part the loop still loads some element of it, because a
        choice takes less time than a branch, and often it is the same for a whole row.  A loop over columns of one part
        does not choose.
        """
        (part,) = compute.reads
        index, level = part.offset, ONCE
        inside: Operand | None = None
        zero = typed(0, compute.node.dtype)
        inner = 1  # elements between neighbours of this dimension
        for span in reversed(spans(compute.node, part) or []):
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
