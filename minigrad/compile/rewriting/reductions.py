"""Rules that need loops or shapes, not algebra: overlapping windows, reductions and joins of a single element."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import node_like
from ..nodes.view import picks_of
from .rules import Rules

rule = Rules()
FEWEST_CHANNELS = 8  # for a convolution: fewer do not fill a vector
MOST_PARTS = 25  # the most elements of a window: each becomes a term of the sum


@rule("overlap_add", reads="permute_dims")
def windows_as_product(node: Node) -> Node | None:
    """The gradient of an image that a convolution of stride 1 reads is a convolution too, with turned weights."""
    (x,) = node.inputs
    parts = x.inputs[0]
    count = node.ndim - 2
    axes = tuple(range(2, node.ndim))
    expected = (1 + count, 0, *range(2 + count, 2 + 2 * count), *range(1, 1 + count))
    made = parts.op is P.reshape and parts.inputs[0].op is P.matmul and parts.inputs[0].ndim == 2
    if not made or node.attrs["axis"] != axes or x.attrs["axes"] != expected or set(node.attrs["stride"]) != {1}:
        return None
    weights, grads = parts.inputs[0].inputs
    channels, kernel, examples, image = node.shape[1], x.shape[node.ndim :], node.shape[0], x.shape[2 : node.ndim]
    outputs = grads.shape[0]
    if min(channels, outputs) < FEWEST_CHANNELS or weights.shape[0] != channels * prod(kernel):
        return None
    like = {"like": node}
    grads = node_like(P.reshape, (grads,), {"shape": (outputs, examples, *image)}, **like)
    grads = node_like(P.permute_dims, (grads,), {"axes": (1, 0, *axes)}, **like)
    edges = [(size - 1) * gap for size, gap in zip(kernel, node.attrs["dilation"])]
    inside = tuple([slice(edge, edge + size) for edge, size in zip(edges, image)])
    shape = (examples, outputs, *[size + 2 * edge for edge, size in zip(edges, image)])
    grads = node_like(P.place, (grads,), {"shape": shape, "index": (slice(None), slice(None), *inside, ...)}, **like)
    attrs = {"size": kernel, **{name: node.attrs[name] for name in ("axis", "stride", "dilation")}}
    columns = node_like(P.windows, (grads,), attrs, **like)
    columns = node_like(P.permute_dims, (columns,), {"axes": (0, *axes, 1, *range(node.ndim, node.ndim + count))}, **like)
    weights = node_like(P.reshape, (weights,), {"shape": (channels, *kernel, outputs)}, **like)
    turned = (slice(None), *[slice(None, None, -1)] * count, ...)
    weights = node_like(P.slice, (weights,), {"index": turned}, **like)
    weights = node_like(P.permute_dims, (weights,), {"axes": (1 + count, *range(1, 1 + count), 0)}, **like)
    sums = outputs * prod(kernel)
    return product_of(columns, node_like(P.reshape, (weights,), {"shape": (sums, channels)}, **like), node)


def product_of(columns: Node, weights: Node, like: Node) -> Node:
    """The images (examples, channels, ...) of windows (examples, ..., inputs, ...) and weights (sums, channels)."""
    shape = (*columns.shape[: like.ndim - 1], weights.shape[1])
    flat = node_like(P.reshape, (columns,), {"shape": (prod(shape[:-1]), weights.shape[0])}, like=like)
    out = node_like(P.reshape, (node_like(P.matmul, (flat, weights), {}, like=like),), {"shape": shape}, like=like)
    return node_like(P.permute_dims, (out,), {"axes": (0, like.ndim - 1, *range(1, like.ndim - 1))}, like=like)


@rule("slice", reads="permute_dims")
def slice_of_a_product(node: Node) -> Node | None:
    """A slice of images that are a product of windows needs the product of fewer windows."""
    (x,) = node.inputs
    out = x.inputs[0]
    product = out.inputs[0] if out.op is P.reshape else out
    if product.op is not P.matmul or product.ndim != 2 or x.ndim < 3 or x.attrs["axes"][1] != x.ndim - 1:
        return None
    flat, weights = product.inputs
    columns = flat.inputs[0] if isinstance(flat, Node) and flat.op is P.reshape else flat
    picks = picks_of(node.attrs["index"], x.shape)
    same = node.ndim == x.ndim == len(picks) and all(p is not None and p.kept for p in picks)
    if not same or columns.ndim != 2 * x.ndim - 2 or columns.shape[: x.ndim - 1] != out.shape[:-1]:
        return None
    if node.shape[1] != x.shape[1] or x.attrs["axes"] != (0, x.ndim - 1, *range(1, x.ndim - 1)):
        return None
    first, _, *image = [p.part(size) for p, size in zip(picks, x.shape) if p is not None]
    part = node_like(P.slice, (columns,), {"index": (first, *image, ...)}, like=node)
    return product_of(part, weights, node)


@rule("overlap_add")
def windows_as_parts(node: Node) -> Node | None:
    """Overlapping windows of stride 1 are a sum with one term per position in the window, which loops can fuse."""
    (x,) = node.inputs
    size = x.shape[node.ndim :]
    if not node.size or prod(size) > MOST_PARTS or any(step != 1 for step in node.attrs["stride"]):
        return None
    total: Any = 0.0 if node.dtype.kind == "f" else 0
    for offset in np.ndindex(size):
        index = [slice(None)] * node.ndim
        for axis, place, gap in zip(node.attrs["axis"], offset, node.attrs["dilation"]):
            index[axis] = slice(place * gap, place * gap + x.shape[axis])
        part = node_like(P.slice, (x,), {"index": (..., *offset)}, like=node)
        placed = node_like(P.place, (part,), {"shape": node.shape, "index": (*index, ...)}, like=node)
        total = node_like(P.add, (total, placed), {}, like=node)
    return total  # type: ignore[no-any-return]


@rule("sum", "prod", "max", "min", "cumulative_sum", "cumulative_prod")
def reduction_of_one(node: Node) -> Node | None:
    """A reduction over dimensions of size 1 is its only element; a sum starts with 0.0, so it is x + 0.0."""
    (x,) = node.inputs
    axes = node.attrs["axis"]
    if any(x.shape[a] != 1 for a in (axes if isinstance(axes, tuple) else (axes,))):
        return None
    if x.dtype != node.dtype:
        x = node_like(P.astype, (x,), {"dtype": node.dtype}, like=node)
    if x.shape != node.shape:
        x = node_like(P.reshape, (x,), {"shape": node.shape}, like=node)
    return node_like(P.add, (x, 0.0), {}, like=node) if node.name == "sum" and node.dtype.kind == "f" else x


@rule("concat")
def concat_of_one(node: Node) -> Node | None:
    """A join drops empty tensors, and a join of a single tensor is that tensor."""
    assert node.op is not None
    axis = node.attrs["axis"]
    parts = tuple([x for x in node.inputs if x.shape[axis]]) or node.inputs[:1]
    if len(parts) == len(node.inputs) > 1:
        return None
    return parts[0] if len(parts) == 1 else node_like(node.op, parts, node.attrs, like=node)
