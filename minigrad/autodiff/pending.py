"""The gradients that a walk has collected so far, and the nodes that it is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..core.node import Node
from ..core.tensor import Tensor
from ..ops.creation import zeros
from ..ops.elementwise import add


def add_to(pending: dict[Node, Any], node: Node, value: Tensor) -> None:
    """Add a contribution to what came to a node before."""
    pending[node] = add(pending[node], value) if node in pending else value


def targets_of(
    order: Sequence[Node], wanted: Iterable[Node] | None, besides: Collection[Node]
) -> set[Node]:
    """The nodes whose gradients a walk returns."""
    if wanted is not None:
        return set(wanted)
    return {node for node in order if node.op is None or node in besides}


def leading_to(targets: set[Node], order: list[Node]) -> set[Any]:
    """The nodes on a path from a target to a root."""
    useful: set[Any] = set(targets)
    for node in order:
        if node not in useful and any(node.inputs[rule.index] in useful for rule in node.plan.rules):
            useful.add(node)
    return useful


def gather_results(node: Node, g: Tensor, pending: dict[Node, Any]) -> None:
    """The gradient of one of several results: the node that has them all is given a list, zeros where nothing came."""
    whole, index = node.inputs[0], node.attrs["index"]
    parts = pending.get(whole)
    if parts is None:
        parts = pending[whole] = [zeros(s, d, node.device) for s, d in zip(whole.shape, whole.dtype)]
    parts[index] = parts[index] + g
