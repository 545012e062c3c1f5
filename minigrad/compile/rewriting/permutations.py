"""Permutations of dimensions, for the passes that choose layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ...ops.view import inverse
from ..nodes.graph import Graph, Replacing, Source, reapplied, remade

Axes = tuple[int, ...]
STORED = "stored"  # the kind of a source whose dimensions are in the order of memory


def on_stored(graph: Graph, orders: Sequence[Axes | None]) -> Graph:
    """The graph on inputs whose dimensions are given in the order of memory.

    `orders` has the dimensions of each input in this order, from the slowest to the fastest; None is row-major order.
    """
    stored, begins = [], []
    for x, axes in zip(graph.inputs, orders):
        given: Node = x
        if axes is not None:
            given = Source(STORED, None, tuple([x.shape[a] for a in axes]), x.dtype, x.device, x.mode)
        stored.append(given)
        begins.append(given if axes is None else permuted(given, inverse(axes), x))
    now = graph.rebuilt(remade, begins)
    return Graph(stored, now.outputs, now.effects, now.checks)


def is_stored(node: Node) -> bool:
    """Whether a node permutes an input that is given in the order of memory."""
    return node.op is P.permute_dims and getattr(node.inputs[0], "kind", "") == STORED


def permuted(x: Node, axes: Axes, like: Node | None = None) -> Node:
    """A permutation of a value; a permutation of a permutation is one, and one that changes nothing is left out."""
    like = x if like is None else like
    if x.op is P.permute_dims:
        x, axes = x.inputs[0], tuple([x.attrs["axes"][a] for a in axes])
    return x if axes == tuple(range(x.ndim)) else Replacing(like).permute_dims(x, axes=axes)


def in_storage(x: Any, axes: Axes) -> Any:
    """An operand in the order of storage, for a result that is permuted by `axes`; it gets dimensions in front."""
    if not isinstance(x, Node) or x.ndim == 0:
        return x
    shape = (1,) * (len(axes) - x.ndim) + x.shape
    return permuted(x if shape == x.shape else Replacing(x).reshape(x, shape=shape), inverse(axes))


def reduced_before(node: Node, x: Node, axes: Axes) -> tuple[Node, Axes]:
    """A reduction of `x` permuted by `axes`, as a reduction of x and the axes that permute its result."""
    gone = node.attrs["axis"]
    total = reapplied(node, (x,), node.attrs | {"axis": tuple(sorted([axes[a] for a in gone]))})
    if node.attrs["keepdims"]:
        return total, axes
    left = [axis for number, axis in enumerate(axes) if number not in gone]
    return total, tuple([sorted(left).index(axis) for axis in left])
