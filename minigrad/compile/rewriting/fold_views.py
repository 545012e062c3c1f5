"""The pass `fold_views`: merges views of views, drops views of everything, moves broadcasts behind arithmetic.

A transfer between devices does not compute either, and is dropped where it undoes another one.
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ..nodes.graph import Replacing, reapplied
from ..nodes.view import picks_of
from .equation import shaped
from .rules import Rules

rule = Rules()


def same_shape(node: Node, x: Node) -> bool:
    """where the shape is the same"""
    return bool(x.shape == node.shape)


rule("reshape(x) -> x", "broadcast_to(x) -> x", when=same_shape)
rule("reshape(reshape(x), shape=s) -> reshape(x, shape=s)")
rule("broadcast_to(broadcast_to(x), shape=s) -> broadcast_to(x, shape=s)")


@rule("to_device")
def transfer_there_and_back(node: Node) -> Node | None:
    """A value is not moved to where it comes from: views of it, and sums with it, are computed there."""
    return _on(node.device, node.inputs[0], {}, MOST_FOLLOWED)


MOST_FOLLOWED = 200  # operations in a row between two transfers


def _on(device: Any, x: Node, known: dict[Node, Node | None], most: int) -> Node | None:
    """A node on this device with the value of `x`; None if nothing that `x` is computed from comes from there."""
    if x.op is P.to_device and x.inputs[0].device is device:
        return x.inputs[0]  # type: ignore[no-any-return]
    if x in known or not most or x.op is None or not (x.op.kind in ("view", "creation") or x.op in (P.add, P.place)):
        return known.get(x)
    known[x] = None
    inputs = [_on(device, i, known, most - 1) if isinstance(i, Node) else i for i in x.inputs]
    if x.op.kind == "creation" or any(isinstance(i, Node) for i in inputs):
        moved = tuple([_moved(old, device) if new is None else new for old, new in zip(x.inputs, inputs)])
        attrs = {**x.attrs, "device": device} if "device" in x.attrs else x.attrs
        known[x] = reapplied(x, moved, attrs)
        known[x].device = device  # type: ignore[union-attr]
    return known[x]


def _moved(x: Node, device: Any) -> Node:
    node = Replacing(x).to_device(x, source=x.device, device=device)
    node.device = device
    return node


@rule("permute_dims")
def permutation_of_nothing(node: Node) -> Node | None:
    """A permutation that only moves dimensions of size 1 is a reshape."""
    (x,) = node.inputs
    order = [a for a in node.attrs["axes"] if x.shape[a] != 1]
    return Replacing(node).reshape(x, shape=node.shape) if order == sorted(order) else None


@rule("permute_dims", reads="permute_dims")
def permutation_twice(node: Node) -> Node | None:
    """A permutation of a permutation is one permutation."""
    (x,) = node.inputs
    return Replacing(node).permute_dims(x.inputs[0], axes=tuple([x.attrs["axes"][a] for a in node.attrs["axes"]]))


# Slices -------------------------------------------------------------------------------------------------------------


@rule("slice")
def slice_of_everything(node: Node) -> Node | None:
    """A slice that takes everything is the tensor itself, or a reshape of it."""
    (x,) = node.inputs
    picks = [p for p in picks_of(node.attrs["index"], x.shape) if p is not None]
    if not all(p.is_all_of(size) for p, size in zip(picks, x.shape)):
        return None
    return x if x.shape == node.shape else Replacing(node).reshape(x, shape=node.shape)


# Arithmetic ---------------------------------------------------------------------------------------------------------


@rule(kind="elementwise", reads="broadcast_to")
def broadcast_later(node: Node) -> Node | None:
    """Arithmetic comes before a broadcast, where it has fewer elements to compute; operands broadcast anyway."""
    inputs = tuple([x.inputs[0] if isinstance(x, Node) and x.op is P.broadcast_to else x for x in node.inputs])
    return shaped(reapplied(node, inputs), node)
