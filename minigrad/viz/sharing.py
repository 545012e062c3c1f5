"""Which tensors share memory: a bar for each buffer, and in it a bar for each tensor.

Of a small buffer, the cells are drawn: which element of each tensor lies in which of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.clock import buffer_of
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted
from .drawing import Chart, Marks
from .flipbook import Flipbook, Page
from .numbers import shape_text

WIDTH, LEFT, LANE, GAP, ROOM = 860.0, 150.0, 24.0, 14.0, 620.0
CELLS, CELL = 24, 44.0  # the most cells that are drawn of a buffer, and the width of a cell, at most


class Span(NamedTuple):
    """The part of a buffer that a tensor uses: its first and last byte."""

    name: str
    tensor: Tensor
    array: Any
    first: int
    last: int

    def shares(self, other: Span) -> bool:
        """Whether an element lies in the memory of one of another tensor; on a GPU, whether their bytes overlap."""
        if isinstance(self.array, np.ndarray):
            return np.shares_memory(self.array, other.array)
        return max(self.first, other.first) < min(self.last, other.last)

    @property
    def form(self) -> str:
        """Shape, dtype and strides."""
        strides = ", ".join([str(stride // self.array.itemsize) for stride in self.array.strides])
        return f"{shape_text(self.array)} {self.tensor.dtype}" + (f", steps of {strides}" if strides else "")


def shared_memory(
    what: Mapping[str, Any] | Module | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Flipbook:
    """A map of the memory of tensors: of a model, in a dictionary (such as `locals()`), or by name."""
    named = dict(what.named_tensors()) if isinstance(what, Module) else dict(what or {})
    tensors = {name: t for name, t in {**named, **kwargs}.items() if isinstance(t, Tensor)}
    gradients = {f"{name}.grad": t.grad for name, t in tensors.items() if t.requires_grad and t.grad is not None}
    if not tensors or args:
        raise MinigradError(
            "mg.viz.memory needs something to show",
            expect="a function and its arguments, or named tensors, or a model",
            hint="mg.viz.memory(f, x), memory(x=x, y=y) or memory(locals())",
        )
    return _drawn(buffers_of(tensors | gradients))


def buffers_of(tensors: Mapping[str, Tensor]) -> list[list[Span]]:
    """The tensors in each buffer, in the given order, with bytes counted from the first used byte of the buffer.

    >>> x = mg.zeros((4, 4))
    >>> [[(s.name, s.first, s.last) for s in spans] for spans in buffers_of({"x": x, "row": x[1], "y": mg.ones(2)})]
    [[('x', 0, 64), ('row', 16, 32)], [('y', 0, 8)]]
    """
    found: dict[int, list[Span]] = {}
    for name, tensor in tensors.items():
        array = tensor.detach()._data
        ends = [(max(size, 1) - 1) * stride for size, stride in zip(array.shape, array.strides)]
        known = array.__array_interface__ if isinstance(array, np.ndarray) else array.__cuda_array_interface__
        first = known["data"][0] + sum(min(end, 0) for end in ends)
        last = first + (sum(map(abs, ends)) + array.itemsize) * bool(array.size)
        found.setdefault(id(buffer_of(array)), []).append(Span(name, tensor, array, first, last))
    return [[Span(*span[:3], span.first - zero, span.last - zero) for span in spans]
            for spans in found.values() for zero in [min(span.first for span in spans)]]


def _drawn(buffers: list[list[Span]]) -> Flipbook:
    count = sum(map(len, buffers))
    chart = Chart(WIDTH, 14.0 + LANE * count + GAP * len(buffers))
    most = max(span.last for spans in buffers for span in spans) or 1
    marks: Marks = {}
    rows = []
    y = 8.0
    for number, spans in enumerate(buffers):
        whole, cell = max(span.last for span in spans), _cell_of(spans)
        scale = min(CELL / cell, ROOM / whole) if cell else ROOM / most  # pixels for a byte
        chart.rect(LEFT - 3, y, max(4.0, whole * scale) + 6, LANE * len(spans) + 4, "tint", "line", round=2.0)
        chart.text(LEFT + whole * scale + 14.0, y + LANE / 2 + 5.0, bytes_text(whole), fill="quiet")
        for at, span in enumerate(spans):
            key = f"s{number}.{at}"
            chart.text(LEFT - 10.0, y + LANE / 2 + 5.0, span.name, anchor="end", bold=True, room=LEFT - 14.0)
            for first, size, label, about in _parts(span, cell):
                wide = max(4.0, size * scale - 2.0)
                chart.bar(LEFT + first * scale, y + 3.0, wide, LANE - 2.0, "kernel", key, label, about)
            near = [each.name for each in spans if each is not span and each.shares(span)]
            facts = {"lies in": f"buffer {number}", "as": span.form, "bytes": f"{span.first:,}–{span.last:,}"}
            marks[key] = span.name, [*facts.items(), ("shares memory with", ", ".join(near) or "nothing")]
            rows.append((span.name, *facts.values()))
            y += LANE
        y += GAP
    about = f"memory of {counted(count, 'tensor')} in {counted(len(buffers), 'buffer')}"
    say = about + ". A cell has the index of its element, or their number" * any(map(_cell_of, buffers))
    return Flipbook(about, [[Page(chart, say)]], marks=marks, words=as_table(("name", *facts), rows, left=3))


def _parts(span: Span, size: int) -> Iterator[tuple[int, int, str, str]]:
    """What is drawn of a tensor: the first byte, how many, a label, and what it is.

    If the buffer has cells of a `size`, it is each cell with the index of the element in it; else, the whole.
    """
    if not size:
        yield span.first, span.last - span.first, span.form, f"{span.name}: {span.form}"
        return
    elements, values = dict[int, list[tuple[int, ...]]](), span.tensor.detach().numpy()
    for index in np.ndindex(*span.array.shape):
        elements.setdefault(sum(i * stride for i, stride in zip(index, span.array.strides)), []).append(index)
    for at, indices in elements.items():
        cell = (span.first + at - min(elements)) // size
        named = [",".join(map(str, index)) or "()" for index in indices]
        label = f"{len(named)}×" if len(named) > 1 else named[0]
        places = " and ".join([f"[{name}]" for name in named])
        yield cell * size, size, label, f"{span.name}{places} is {values[indices[0]]}, in cell {cell}"


def _cell_of(spans: Sequence[Span]) -> int:
    """The bytes of a cell of a buffer; 0 if cells would be too many, or are not of one size."""
    sizes, whole = {span.array.itemsize for span in spans}, max(span.last for span in spans)
    few = all(span.array.size <= CELLS * CELLS for span in spans)
    return min(sizes) if len(sizes) == 1 and few and 0 < whole <= CELLS * min(sizes) else 0
