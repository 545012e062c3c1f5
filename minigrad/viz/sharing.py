"""Which tensors share memory: a bar for each buffer, and in it a bar for each tensor.

Of a small buffer, the cells are drawn: which element of each tensor lies in which of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted
from .charts import Chart, Marks, mark
from .flipbook import Flipbook, Page

WIDTH, LEFT, LANE, GAP = 860.0, 150.0, 24.0, 14.0
KINDS_OF_TENSORS = ("kernel", "other", "result", "library")  # the colours of the tensors in a buffer
MOST = 200  # names in one picture
CELLS, CELL = 24, 44.0  # the most cells that are drawn of a buffer, and the width of a cell, at most


class Span(NamedTuple):
    """The part of a buffer that a tensor uses: its first and last byte, and whether it uses all bytes between."""

    name: str
    tensor: Tensor
    first: int
    last: int
    packed: bool


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
            expect="a function and its arguments, or tensors: by name, in a dictionary, or a model",
            hint="mg.viz.memory(f, x), mg.viz.memory(x=x, y=y) or mg.viz.memory(locals())",
        )
    return _drawn(buffers_of(tensors | gradients))


def buffers_of(tensors: Mapping[str, Tensor]) -> list[list[Span]]:
    """The tensors in each buffer, in the given order, with bytes counted from the first used byte of the buffer.

    >>> x = mg.zeros((4, 4))
    >>> [[(s.name, s.first, s.last) for s in spans] for spans in buffers_of({"x": x, "row": x[1], "y": mg.ones(2)})]
    [[('x', 0, 64), ('row', 16, 32)], [('y', 0, 8)]]
    """
    spans = [_span(name, tensor) for name, tensor in tensors.items()]
    found: list[list[Span]] = []
    owners: list[Any] = []
    for owner, span in spans:
        for known, buffer in zip(owners, found):
            if known is owner:
                buffer.append(span)
                break
        else:
            owners.append(owner)
            found.append([span])
    return [_from_zero(buffer) for buffer in found]


def _span(name: str, tensor: Tensor) -> tuple[Any, Span]:
    array = tensor.detach()._data
    owner = array
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    start = address(array)
    low = start + sum((size - 1) * stride for size, stride in zip(array.shape, array.strides) if stride < 0)
    high = start + sum((size - 1) * stride for size, stride in zip(array.shape, array.strides) if stride > 0)
    last = high + array.itemsize if array.size else low
    return owner, Span(name, tensor, low, last, array.size * array.itemsize == last - low)


def address(array: Any) -> int:
    """Where the first element of an array is."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.__cuda_array_interface__["data"][0])


def _from_zero(buffer: list[Span]) -> list[Span]:
    zero = min(span.first for span in buffer)
    return [span._replace(first=span.first - zero, last=span.last - zero) for span in buffer]


def _drawn(buffers: list[list[Span]]) -> Flipbook:
    count = sum(map(len, buffers))
    if count > MOST:
        raise MinigradError(f"a map of {count:,} names would be unreadable", expect=f"at most {MOST}")
    chart = Chart(WIDTH, 14.0 + LANE * count + GAP * len(buffers))
    scale = (WIDTH - LEFT - 90.0) / (max(span.last for spans in buffers for span in spans) or 1)
    marks: Marks = {}
    rows = []
    y = 8.0
    for number, spans in enumerate(buffers):
        keys = [f"s{number}.{i}" for i in range(len(spans))]
        whole = max(span.last for span in spans)
        wide = max(4.0, whole * scale)
        cells = _cells_of(spans)
        if cells:
            wide = cells.count * min(CELL, (WIDTH - LEFT - 90.0) / cells.count)
        chart.bar(LEFT - 3, y, wide + 6, LANE * len(spans) + 4, "quiet", f"b{number}", "", bytes_text(whole))
        chart.text(LEFT + wide + 10.0, y + LANE / 2 + 5.0, bytes_text(whole), fill="quiet")
        marks[f"b{number}"] = mark(f"buffer {number}", [("bytes", bytes_text(whole)), ("names", str(len(spans)))], keys)
        for at, (key, span) in enumerate(zip(keys, spans)):
            form = _form(span)
            chart.lane(LEFT, y + 2.0, LANE, span.name, room=LEFT - 14.0)
            if cells:
                _draw_cells(chart, cells, at, span, y + 3.0, key)
            else:
                x, w = LEFT + span.first * scale, max(4.0, (span.last - span.first) * scale)
                kind = "kernel" if span.packed else "other"
                chart.bar(x, y + 3.0, w, LANE - 2.0, kind, key, form, f"{span.name}: {form}")
            packed = "all of these" if span.packed else "not all of these: other elements are between"
            facts = [("form", form), ("bytes", f"{span.first:,} to {span.last:,}"), ("uses", packed)]
            others = [other.name for other in spans if other is not span]
            facts += [("shares memory with", ", ".join(others))] if others else []
            marks[key] = mark(span.name, facts, [k for k in keys if k != key])
            rows.append((span.name, f"buffer {number}", form, f"{span.first:,}–{span.last:,}"))
            y += LANE
        y += GAP
    about = f"memory of {counted(count, 'tensor')} in {counted(len(buffers), 'buffer')}"
    words = as_table(("name", "lies in", "as", "bytes"), rows, left=3)
    return Flipbook(about, [[Page(chart, about)]], marks=marks, words=words)


def elements_at(shape: Sequence[int], strides: Sequence[int], start: int = 0) -> dict[int, list[tuple[int, ...]]]:
    """The elements of an array by the cells in which they lie; strides are counted in cells.

    >>> elements_at((2, 2), (1, 2))
    {0: [(0, 0)], 1: [(1, 0)], 2: [(0, 1)], 3: [(1, 1)]}
    >>> elements_at((3,), (0,), 5)
    {5: [(0,), (1,), (2,)]}
    """
    found: dict[int, list[tuple[int, ...]]] = {}
    for index in np.ndindex(*shape):
        found.setdefault(start + sum(i * stride for i, stride in zip(index, strides)), []).append(index)
    return dict(sorted(found.items()))


class _Cells(NamedTuple):
    """A small buffer: how many cells it has, and for each tensor which of its elements are in which of them."""

    count: int
    held: list[dict[int, list[tuple[int, ...]]]]


def _cells_of(spans: Sequence[Span]) -> _Cells | None:
    """The cells of a buffer; None if they are too many, or not of one size."""
    sizes = {span.tensor.dtype.itemsize for span in spans}
    size, whole = min(sizes), max(span.last for span in spans)
    if len(sizes) > 1 or not 0 < whole <= CELLS * size or any(span.tensor.size > CELLS * CELLS for span in spans):
        return None
    held = []
    for span in spans:
        shape, strides = span.tensor.shape, _strides(span)
        back = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride < 0)  # to the lowest element
        held.append(elements_at(shape, strides, span.first // size - back))
    return _Cells(whole // size, held)


def _draw_cells(chart: Chart, cells: _Cells, number: int, span: Span, y: float, key: str) -> None:
    """The cells of a buffer in a row; those that the tensor uses are filled, and show the index of the element."""
    wide = min(CELL, (WIDTH - LEFT - 90.0) / cells.count)
    values = span.tensor.detach().numpy()
    for at in range(cells.count):
        indices, x = cells.held[number].get(at), LEFT + at * wide
        if indices is None:
            chart.rect(x, y, wide - 2.0, LANE - 2.0, "paper", "line", dashes="2 3", round=2.0)
            continue
        named = [",".join(map(str, index)) for index in indices]
        label = f"{len(named)}×" if len(named) > 1 else named[0] or str(values)
        places = " and ".join([f"[{name}]" for name in named if name])
        about = f"{span.name}{places} is {values[indices[0]]}, in cell {at}"
        chart.bar(x, y, wide - 2.0, LANE - 2.0, KINDS_OF_TENSORS[number % len(KINDS_OF_TENSORS)], key, label, about)


def _strides(span: Span) -> tuple[int, ...]:
    """The strides of a tensor, in elements."""
    size = max(1, span.tensor.dtype.itemsize)
    return tuple([stride // size for stride in span.tensor.detach()._data.strides])


def _form(span: Span) -> str:
    """Shape, dtype and strides."""
    tensor = span.tensor
    shape = " × ".join(map(str, tensor.shape)) or "scalar"
    strides = ", ".join(map(str, _strides(span)))
    return f"{shape} {tensor.dtype}" + (f", steps of {strides}" if strides else "")
