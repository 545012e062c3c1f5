"""Checkpoints: a part of the forward pass saves only its inputs, and the backward pass computes the rest again.

The nodes of the part are kept, because a node is a recipe.  Random numbers are the same again, because a random node
stores the key and the block of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..core.clock import written_since
from ..core.emit import Eager
from ..core.mode import current_mode, switch
from ..core.node import Node
from ..core.primitive import P, Primitive
from ..core.replay import recompute
from ..core.tensor import Tensor
from ..support.errors import MutationError
from ..support.source import show


class Segment(Eager):
    """Eager mode that keeps all nodes, and only the values that came from outside."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inside: set[Node] = set()
        self.incoming: dict[Node, Any] = {}

    def manifest(
        self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]
    ) -> Any:
        out = super().manifest(op, inputs, attrs)
        made = out if isinstance(out, tuple) else (out,)
        for tensor in made:
            self._keep_recipe(tensor.node)
        for x in inputs:
            node = x.node if isinstance(x, Tensor) else None
            if node is not None and node not in self.inside:
                self.incoming.setdefault(node, x._data)
        return out

    def _keep_recipe(self, node: Node) -> None:
        whole = node.inputs[:1] if node.op is P.project else ()
        for part in (*whole, node):
            if part not in self.inside:
                self.inside.add(part)
                self.nodes.append(part)
                if part.saved is not None:
                    part.saved = self

    def restore(self) -> None:
        """Compute the values again and store them in the nodes that saved them."""
        for node, value in self.incoming.items():
            changed = written_since(value, self.nodes[0].serial)
            if changed is not None:
                raise _changed(node, changed)
        for node, inputs, value in recompute(self.nodes, dict(self.incoming)):
            if node.saved is self and node.plan.keep is not None:
                values = zip((*inputs, value), node.plan.keep)
                node.saved = tuple([v if kept else None for v, kept in values])


def _changed(node: Node, where: Any) -> MutationError:
    """The error for an input of a checkpoint that is not what it was."""
    return MutationError(
        f"checkpoint: {node.name} {node.shape}, an input of a part to compute again, was changed in place\n"
        f"  changed: {show(where)}",
        hint="x = x + 1 instead of x += 1, or x.copy() before the checkpoint",
    )


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which saves only its inputs and computes the rest again.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.checkpoint(lambda x: x.tanh().exp())(w).sum().backward()
    >>> [round(g, 4) for g in w.grad.tolist()]
    [0.8995, 0.1853]
    """

    @wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        mode = current_mode()
        if mode.interpreter is not None or not mode.grad:
            return function(*args, **kwargs)
        with switch(interpreter=Segment(), record_all=True):
            return function(*args, **kwargs)

    return checkpointed
