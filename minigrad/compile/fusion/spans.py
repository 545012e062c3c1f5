"""Spans: the position of an array in a larger array that is 0 elsewhere, dimension by dimension."""

from __future__ import annotations

from typing import NamedTuple

from ...core.node import Node
from ..nodes.view import View, picks_of


class Span(NamedTuple):
    """Dimensions of the whole that form one loop: `length` positions from `start` on are in the part."""

    size: int
    stride: int  # in the part
    start: int
    length: int

    @property
    def covered(self) -> bool:
        """Whether every position is in the part."""
        return self.length == self.size


def spans(node: Node, part: View) -> list[Span] | None:
    """The dimensions of a `place`, outermost first, merged as far as possible; None if the part is not contiguous."""
    found: list[Span] = []
    sizes, strides = iter(node.shape), iter(part.strides)
    for pick in picks_of(node.attrs["index"], node.shape):
        stride = next(strides) if pick is None or pick.kept else 0
        if pick is None:
            continue
        if pick.step != 1:
            return None
        span, last = Span(next(sizes), stride, pick.start, pick.count), found[-1] if found else None
        if last is not None and last.covered and span.covered and last.stride == span.stride * span.size:
            size = last.size * span.size
            found[-1] = Span(size, span.stride, 0, size)
        elif span.size != 1:
            found.append(span)
    return found
