"""Computes values again from their nodes: for displays and checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from ..support.errors import ConversionError, Gone
from ..support.source import show
from ..support.words import shown, with_article
from .clock import written_since
from .emit import EAGER
from .node import Constant, Leaf, Node
from .programs import opened_order
from .tensor import AbstractData, Tensor, wrap


def evaluate_nodes(
    nodes: Sequence[Node],
    values: dict[Any, Any],
    compute: Callable[[Node, list[Any]], Any],
    wanted: Container[Node] = (),
) -> Iterator[tuple[Node, list[Any], Any]]:
    """Run nodes one by one, and yield each with the values of its inputs and its own value.

    `values` has the known values; computed values are added.  A value is deleted after its last use, unless it is
    `wanted`, so that this needs no more memory than the forward pass.
    """
    uses = Counter(i for node in nodes for i in node.inputs if isinstance(i, Node))
    for node in nodes:
        inputs = [values[i] if isinstance(i, Node) else i for i in node.inputs]
        value = compute(node, inputs)
        yield node, inputs, value
        if uses[node] or node in wanted:
            values[node] = value
        for i in node.inputs:
            if isinstance(i, Node):
                uses[i] -= 1
                if not uses[i] and i not in wanted:
                    values.pop(i, None)


def recompute(nodes: Sequence[Node], values: dict[Node, Any]) -> Iterator[tuple[Node, list[Any], Any]]:
    """Run nodes in order with eager kernels, from given values.

    Effects are skipped, because they have happened; only collectives run again, because other nodes read their results.
    """
    runnable = [node for node in nodes if node.op is not None and node.op.effect in (None, "collective")]
    return evaluate_nodes(runnable, values, _computed)


def _computed(node: Node, inputs: list[Any]) -> Any:
    assert node.op is not None
    return EAGER.compute(node.op, inputs, node.attrs, node.device)


def replay(made: Tensor | Node) -> Tensor:
    """The original value of a node (or of a tensor's node), computed again from the leaves.

    Raises `Gone`, with the line, if a value that it depends on was overwritten or deleted since.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> node = (w * 2 + 1).node
    >>> mg.replay(node).tolist()
    [3.0, 5.0]
    >>> with mg.no_grad():
    ...     w -= 1
    >>> mg.replay(node)
    Traceback (most recent call last):
    minigrad.support.errors.Gone: leaf (2,) was changed since, at ...
    """
    node: Node = made.node if isinstance(made, Tensor) else made
    if node is not None and not isinstance(node, Node):
        raise ConversionError(f"replay: made is a tensor or a node, not {shown(made)}")
    if node is None:
        raise Gone("nothing was recorded for this tensor; use `with mg.record():`")
    order = opened_order([node])
    values = sources(order)
    results = [value for made, _, value in recompute(order, values) if made is node]
    return wrap(results[0] if results else values[node], node.device)


def sources(order: Sequence[Node]) -> dict[Node, Any]:
    """The values of the leaves and constants among nodes, if they did not change since their users were recorded."""
    values = {n: _source_value(n) for n in order if n.op is None}
    for user in order:
        for source in user.inputs:
            if source in values:
                changed = written_since(values[source], user.serial)
                if changed is not None:
                    raise Gone(f"{source.name} {source.shape} was changed since, at {show(changed)}")
    return values


def _source_value(node: Node) -> Any:
    tensor = node.tensor() if isinstance(node, Leaf) else None
    if isinstance(node, Leaf | Constant):
        value = node.array() if tensor is None else tensor._data
        value = value.evaluated() if isinstance(value, AbstractData) else value
    if value.__class__ is not node.device.ndarray:
        raise Gone(f"{with_article(node.name)} {node.shape} that it depends on was deleted")
    return value
