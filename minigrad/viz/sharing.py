"""Which tensors lie in the same memory: a bar for each buffer, and under it one for each name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text
from .charts import Chart
from .exhibit import Charted, Frame, mark

WIDTH, LEFT, LANE, GAP = 860.0, 150.0, 24.0, 14.0
MOST = 200  # names in one picture


class Span(NamedTuple):
    """What a name has of a buffer: from which byte to which, and whether that is all of the elements between."""

    name: str
    tensor: Tensor
    first: int
    last: int
    packed: bool


def shared_memory(what: Mapping[str, Any] | Module | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Charted:
    """The map of the memory of some tensors: of a model, a dictionary (such as `locals()`), or given by name."""
    named = dict(what.named_tensors()) if isinstance(what, Module) else dict(what or {})
    tensors = {name: t for name, t in {**named, **kwargs}.items() if isinstance(t, Tensor)}
    gradients = {f"{name}.grad": t.grad for name, t in tensors.items() if t.requires_grad and t.grad is not None}
    if not tensors or args:
        raise MinigradError(
            "mg.viz.memory needs to know what to look at",
            expect="a function and its arguments, or tensors: by name, in a dictionary, or a model",
            hint="mg.viz.memory(f, x), mg.viz.memory(x=x, y=y) or mg.viz.memory(locals())",
        )
    buffers = buffers_of(tensors | gradients)
    return _drawn(buffers)


def buffers_of(tensors: Mapping[str, Tensor]) -> list[list[Span]]:
    """The names in each buffer, in the order in which they are given; places are counted from its beginning.

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
    start = _address(array)
    low = start + sum((size - 1) * stride for size, stride in zip(array.shape, array.strides) if stride < 0)
    high = start + sum((size - 1) * stride for size, stride in zip(array.shape, array.strides) if stride > 0)
    last = high + array.itemsize if array.size else low
    return owner, Span(name, tensor, low, last, array.size * array.itemsize == last - low)


def _address(array: Any) -> int:
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.__cuda_array_interface__["data"][0])


def _from_zero(buffer: list[Span]) -> list[Span]:
    zero = min(span.first for span in buffer)
    return [span._replace(first=span.first - zero, last=span.last - zero) for span in buffer]


def _drawn(buffers: list[list[Span]]) -> Charted:
    count = sum(map(len, buffers))
    if count > MOST:
        raise MinigradError(f"a map of {count:,} names would show nothing", expect=f"at most {MOST}")
    chart = Chart(WIDTH, 30.0 + LANE * count + GAP * len(buffers))
    longest = max(span.last for spans in buffers for span in spans) or 1
    scale = (WIDTH - LEFT - 90.0) / longest
    marks: dict[str, dict[str, Any]] = {}
    rows = []
    y = 8.0
    for number, spans in enumerate(buffers):
        keys = [f"s{number}.{i}" for i in range(len(spans))]
        whole = max(span.last for span in spans)
        wide = max(4.0, whole * scale)
        chart.bar(LEFT - 3, y, wide + 6, LANE * len(spans) + 4, "quiet", f"b{number}", "", bytes_text(whole))
        chart.text(LEFT + wide + 10.0, y + LANE / 2 + 5.0, bytes_text(whole), fill="quiet")
        shared = len(spans) > 1
        marks[f"b{number}"] = mark(f"buffer {number}", [("bytes", bytes_text(whole)), ("names", str(len(spans)))], keys)
        for key, span in zip(keys, spans):
            chart.text(LEFT - 10.0, y + LANE / 2 + 5.0, span.name, anchor="end", bold=True, room=LEFT - 14.0)
            x, w = LEFT + span.first * scale, max(4.0, (span.last - span.first) * scale)
            told = _told(span)
            kind = "kernel" if span.packed else "other"
            chart.bar(x, y + 3.0, w, LANE - 2.0, kind, key, told, f"{span.name}: {told}")
            apart = "all of them" if span.packed else "not all: others lie between"
            known = [("what it is", told), ("bytes", f"{span.first:,} to {span.last:,}"), ("of these", apart)]
            others = [k for k in keys if k != key]
            known += [("shares memory with", ", ".join(s.name for s in spans if s is not span))] if shared else []
            marks[key] = mark(span.name, known, others)
            rows.append((span.name, f"buffer {number}", told, f"{span.first:,}–{span.last:,}"))
            y += LANE
        y += GAP
    chart.height = y + 6.0
    buffered = f"{len(buffers)} buffer{'s' * (len(buffers) != 1)}"
    about = f"memory of {count} tensor{'s' * (count != 1)} in {buffered}"
    words = as_table(("name", "lies in", "as", "bytes"), rows, left=3)
    return Charted(about, [Frame("memory", chart, about)], marks, words)


def _told(span: Span) -> str:
    tensor = span.tensor
    shape = " × ".join(map(str, tensor.shape)) or "scalar"
    strides = ", ".join(str(s // max(1, tensor.dtype.itemsize)) for s in tensor.detach()._data.strides)
    return f"{shape} {tensor.dtype}" + (f", steps of {strides}" if strides else "")
