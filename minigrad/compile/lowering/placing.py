"""Placing: an array as a part of a larger one that is 0 elsewhere, as a loop over the larger one reads it.

The gradient of a slice is a `place`.  A loop over the whole finds for each element where it is in each dimension.
Where that is outside the part, it takes 0, and loads some element of the part nevertheless: a choice takes less time
than a branch, and often it is the same for a whole row.  The gradients of several slices of one array add up in a
single kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import dtypes
from ..fusion.levels import ONCE, PER_ELEMENT, PER_ROW, Level
from ..fusion.spans import spans
from ..loops.index import divided, plus, remainder, times
from ..loops.ir import Index, Operand
from ..loops.scalar import typed

if TYPE_CHECKING:
    from ..fusion.compute import Recipe
    from .lower import Block
    from .values import ValueWriter


def place(writer: ValueWriter, recipe: Recipe, block: Block) -> Operand:
    """The current element of the whole."""
    (part,) = recipe.reads
    index, level = part.offset, ONCE
    inside: Operand | None = None
    inner = 1  # elements between neighbours of this dimension
    for span in reversed(spans(recipe.node, part) or []):
        where, changes = _coordinate(writer, recipe.size, span.size, inner)
        inner *= span.size
        if not span.covered:
            shifted = remainder(plus(where, span.size - span.start), span.size) if span.start else where
            number = writer.named("", "index", shifted, changes, dtypes.int64)
            hit = writer.let_at(changes, "lt", (number, span.length), dtypes.bool)
            inside = hit if inside is None else writer.let(block, "and", (inside, hit), dtypes.bool)
            where = ("min", shifted, span.length - 1) if span.length > 1 else 0
        if span.stride and where != 0:
            index = plus(index, times(where, span.stride))
            level = min(level, changes)
    zero = typed(0, recipe.node.dtype)
    if part.base.name == "full" and not part.base.inputs:
        value = writer.read(part, recipe)
    else:
        value = writer.loaded(part.base, index, level)
    if inside is None:
        return value
    return writer.let(block, "select", (inside, value, zero), recipe.node.dtype)


def _coordinate(writer: ValueWriter, total: int, size: int, inner: int) -> tuple[Index, Level]:
    """Where the current element is in a dimension, of a loop over `total` elements, and how often that changes."""
    loops = writer.loops
    if loops.flat or total != loops.elements:
        variable, level = (writer.variable, PER_ELEMENT) if loops.flat else ("p", PER_ROW)
        return _digit(variable, inner, size, total), level
    columns = loops.columns
    if inner % columns == 0:
        return _digit("p", inner // columns, size, loops.rows), PER_ROW
    if columns % (inner * size) == 0:
        return _digit(writer.variable, inner, size, columns), PER_ELEMENT
    return _digit(writer.here(), inner, size, total), PER_ELEMENT


def _digit(count: Index, inner: int, size: int, total: int) -> Index:
    count = divided(count, inner)
    return remainder(count, size) if inner * size < total else count
