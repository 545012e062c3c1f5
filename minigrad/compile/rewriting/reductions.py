"""Rules that need loops or shapes, not algebra: overlapping windows, and joins."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.dtypes import int64
from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Replacing, reapplied
from ..nodes.thresholds import MOST_JOINED, MOST_PARTS, SHORTEST_VECTOR
from ..nodes.view import picks_of
from .rules import Rules

rule = Rules()


@rule("overlap_add", reads="permute_dims")
def windows_as_product(node: Node) -> Node | None:
    """The gradient of the image of a convolution is a convolution too: with turned weights, over a wider image."""
    (x,) = node.inputs
    (parts,) = x.inputs
    count = node.ndim - 2
    image, within = tuple(range(2, node.ndim)), tuple(range(node.ndim, node.ndim + count))
    back = (1 + count, 0, *[a + count for a in image], *range(1, 1 + count))
    product = parts.inputs[0] if parts.op is P.reshape else parts
    if product.op is not P.matmul or product.ndim != 2 or x.attrs["axes"] != back:
        return None
    weights, grads = product.inputs
    channels, kernel, sizes = node.shape[1], x.shape[node.ndim :], x.shape[2 : node.ndim]
    fits = node.attrs["axis"] == image and set(node.attrs["stride"]) == {1}
    many = channels >= SHORTEST_VECTOR or (sizes[-1] >= SHORTEST_VECTOR > grads.shape[0])  # of channels, or of pixels
    if not fits or not many or weights.shape[0] != channels * prod(kernel):
        return None
    made = Replacing(node)
    outputs, gaps = grads.shape[0], node.attrs["dilation"]
    edges = [(size - 1) * gap for size, gap in zip(kernel, gaps)]
    shape = (node.shape[0], outputs, *[size + 2 * edge for size, edge in zip(sizes, edges)])
    inside = (slice(None), slice(None), *[slice(edge, edge + size) for edge, size in zip(edges, sizes)], ...)
    grads = made.permute_dims(made.reshape(grads, shape=(outputs, node.shape[0], *sizes)), axes=(1, 0, *image))
    columns = made.place(grads, shape=shape, index=inside)
    columns = made.windows(columns, axis=image, size=kernel, stride=(1,) * count, dilation=gaps)
    weights = made.reshape(weights, shape=(channels, *kernel, outputs))
    weights = made.slice(weights, index=(slice(None), *[slice(None, None, -1)] * count, ...))
    weights = made.permute_dims(weights, axes=(0, 1 + count, *range(1, 1 + count)))
    weights = made.reshape(weights, shape=(channels, outputs * prod(kernel)))
    return _convolved(weights, made.permute_dims(columns, axes=(1, *within, 0, *image)), node)


def _convolved(weights: Node, windows: Node, like: Node) -> Node:
    """The images of a product of weights (outputs, sums) and windows (channels, *kernel, examples, *places)."""
    places, made = windows.shape[windows.ndim - like.ndim + 1 :], Replacing(like)
    out = made.matmul(weights, made.reshape(windows, shape=(weights.shape[1], prod(places))))
    out = made.reshape(out, shape=(weights.shape[0], *places))
    return made.permute_dims(out, axes=(1, 0, *range(2, like.ndim)))


@rule("slice", reads="permute_dims", alone=True)
def slice_of_a_convolution(node: Node) -> Node | None:
    """A part of the result of a convolution needs only a part of the windows."""
    (x,) = node.inputs
    out = x.inputs[0]
    product = out.inputs[0] if out.op is P.reshape else out
    if product.op is not P.matmul or product.ndim != 2 or x.attrs["axes"] != (1, 0, *range(2, x.ndim)):
        return None
    weights, columns = product.inputs
    windows = columns.inputs[0] if columns.op is P.reshape else columns
    picks = [p for p in picks_of(node.attrs["index"], x.shape) if p is not None and p.kept]
    if not len(picks) == x.ndim == node.ndim > 2 or windows.shape[1 - x.ndim :] != out.shape[1:]:
        return None
    first, channels, *places = [p.part(size) for p, size in zip(picks, x.shape)]
    if channels != slice(None):
        return None
    return _convolved(weights, Replacing(node).slice(windows, index=(..., first, *places)), node)


@rule("overlap_add")
def windows_as_parts(node: Node) -> Node | None:
    """Overlapping windows of stride 1 are a sum with one term per position in the window, which loops can fuse."""
    (x,) = node.inputs
    size = x.shape[node.ndim :]
    if not node.size or prod(size) > MOST_PARTS or any(step != 1 for step in node.attrs["stride"]):
        return None
    made = Replacing(node)
    total: Any = 0.0 if node.dtype.kind == "f" else 0
    for offset in np.ndindex(size):
        index = [slice(None)] * node.ndim
        for axis, place, gap in zip(node.attrs["axis"], offset, node.attrs["dilation"]):
            index[axis] = slice(place * gap, place * gap + x.shape[axis])
        part = made.slice(x, index=(..., *offset))
        total = made.add(total, made.place(part, shape=node.shape, index=(*index, ...)))
    return total  # type: ignore[no-any-return]


@rule("concat")
def concat_of_one(node: Node) -> Node | None:
    """A join drops empty tensors, and a join of a single tensor is that tensor."""
    axis = node.attrs["axis"]
    parts = tuple([x for x in node.inputs if x.shape[axis]]) or node.inputs[:1]
    if len(parts) == len(node.inputs) > 1:
        return None
    return parts[0] if len(parts) == 1 else reapplied(node, parts)


@rule("concat")
def join_by_position(node: Node) -> Node | None:
    """A join of a few tensors takes each element from the tensor at its position, which loops can fuse."""
    axis, end, made = node.attrs["axis"], node.shape[node.attrs["axis"]], Replacing(node)
    if not 1 < len(node.inputs) <= MOST_JOINED or not node.size:
        return None
    counted = made.arange(start=0, step=1, count=end, dtype=int64, device=node.device)
    position = made.reshape(counted, shape=tuple([end if a == axis else 1 for a in range(node.ndim)]))
    joined: Node | None = None
    for x in reversed(node.inputs):
        start = end - x.shape[axis]
        index = tuple([slice(start, end) if a == axis else slice(None) for a in range(node.ndim)])
        part = made.place(x, shape=node.shape, index=index)
        joined = part if joined is None else made.where(made.less(position, end), part, joined)
        end = start
    return joined
