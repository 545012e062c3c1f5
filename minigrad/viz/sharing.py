"""Which tensors share memory: a bar for each buffer, and in it a bar for each tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted
from .charts import Chart, Marks, mark
from .flipbook import Flipbook, Page

WIDTH, LEFT, LANE, GAP = 860.0, 150.0, 24.0, 14.0
MOST = 200  # names in one picture


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
        chart.bar(LEFT - 3, y, wide + 6, LANE * len(spans) + 4, "quiet", f"b{number}", "", bytes_text(whole))
        chart.text(LEFT + wide + 10.0, y + LANE / 2 + 5.0, bytes_text(whole), fill="quiet")
        marks[f"b{number}"] = mark(f"buffer {number}", [("bytes", bytes_text(whole)), ("names", str(len(spans)))], keys)
        for key, span in zip(keys, spans):
            form = _form(span)
            chart.lane(LEFT, y + 2.0, LANE, span.name, room=LEFT - 14.0)
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


def _form(span: Span) -> str:
    """Shape, dtype and strides."""
    tensor = span.tensor
    shape = " × ".join(map(str, tensor.shape)) or "scalar"
    strides = ", ".join(str(s // max(1, tensor.dtype.itemsize)) for s in tensor.detach()._data.strides)
    return f"{shape} {tensor.dtype}" + (f", steps of {strides}" if strides else "")
