"""Counts: what it takes to compute a node by itself, as eager mode and libraries do: bytes, operations, launches.

Bytes are those of different elements: what one step reads twice comes from a cache the second time, and what is
broadcast is read once.  A view takes nothing.  An operation is one of the loop language: a sum, a comparison, a choice.
`exp` takes longer than `+`, and counts as one all the same; a cast counts as none.

What a count leaves out: the memory and traffic that a library takes on its way to a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ...devices import as_device
from ..loops.operations import OPERATIONS
from ..loops.scalar import steps_of
from ..nodes.view import View


@dataclass(frozen=True)
class Count:
    """What something takes: bytes that are read and written, operations, and how many kernels are launched for it."""

    bytes_read: int = 0
    bytes_written: int = 0
    flops: int = 0
    launches: int = 0

    @property
    def bytes(self) -> int:
        """All memory traffic."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Operations for each byte of traffic: where it is low, memory decides how long a kernel takes."""
        return self.flops / self.bytes if self.bytes else 0.0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.bytes_read + other.bytes_read, self.bytes_written + other.bytes_written, self.flops + other.flops,
            self.launches + other.launches,
        )


def distinct_bytes(views: Iterable[View]) -> int:
    """The bytes of all different elements that these views read; overlapping views count as often as they are other."""
    read: dict[Node, set[View]] = {}
    for view in views:
        if not isinstance(view.base.dtype, tuple):
            read.setdefault(view.base, set()).add(view)
    return sum(min(sum(v.footprint for v in vs), b.size) * b.dtype.itemsize for b, vs in read.items())


def takes_nothing(node: Node, views: Mapping[Node, View]) -> bool:
    """Whether no element is touched to have a node: a view, a part of several results, what comes from outside."""
    if node.op is None or node.op is P.project:
        return True
    return node.op.kind == "view" and (views[node].base is not node or not node.size)


def eager_count(node: Node, views: Mapping[Node, View]) -> Count:
    """What eager mode takes for a node.  Assignment writes into the memory that is there."""
    if takes_nothing(node, views):
        return Count()
    if node.op is P.put:
        read = distinct_bytes([views[i] for i in node.inputs[1:] if isinstance(i, Node)])
        return Count(read, _places(node) * node.dtype.itemsize, 0, 1)
    return library_count(node, views)


def library_count(node: Node, views: Mapping[Any, View]) -> Count:
    """What a library takes for a node, into new memory.

    >>> from minigrad.compile.nodes.view import views_of
    >>> graph = mg.trace(lambda x, y: x @ y.T, mg.ones((2, 3)), mg.ones((4, 3)))
    >>> library_count(graph.nodes[-1], views_of(graph))
    Count(bytes_read=72, bytes_written=32, flops=48, launches=1)
    """
    if takes_nothing(node, views):
        return Count()
    given = [views[i] for i in node.inputs if isinstance(i, Node)]
    if node.op is P.gather:  # of the array itself only what is picked
        read = min(node.nbytes, distinct_bytes(given[:1])) + distinct_bytes(given[1:])
    else:
        read = distinct_bytes(given)
    return Count(read, node.nbytes, flops_of(node), 1)


# Operations ---------------------------------------------------------------------------------------------------------


def flops_of(node: Node) -> int:
    """How many operations computing a node takes: of factorisations the leading term, of a sort the comparisons.

    >>> x = mg.ones((2, 3))
    >>> [flops_of(node) for node in mg.trace(lambda x: mg.tanh(x @ x.mT) * 2 + 1, x).nodes]
    [0, 24, 4, 4, 4]
    """
    op = node.op
    assert op is not None
    own = FLOPS.get(op.name)
    if own is not None:
        return own(node)
    if op.kind == "elementwise":
        return operations(op) * node.size
    return int(node.inputs[0].size) if op.kind == "reduce" else 0  # the rest moves elements


def operations(op: Any) -> int:
    """The operations for one element of an elementwise primitive."""
    return sum(OPERATIONS[step.op].flops for step in steps_of(op)) if op.expr else 1


def _matmul(node: Node) -> int:
    return int(2 * node.size * node.inputs[0].shape[-1])


def _solve(node: Node) -> int:
    rows, columns = node.shape[-2:]
    return prod(node.shape[:-2]) * (2 * rows**3 // 3 + 2 * rows * rows * columns)


def _slogdet(node: Node) -> int:
    shape = node.inputs[0].shape
    return prod(shape[:-2]) * (2 * shape[-1] ** 3 // 3)


def _argsort(node: Node) -> int:
    return int(node.size) * (node.shape[node.attrs["axis"]] - 1).bit_length() if node.size else 0


def _places(node: Node) -> int:
    """How many elements a `put` or `scatter_add` writes to."""
    shape = node.shape
    if "chain" in node.attrs:
        part = np.broadcast_to(np.empty(()), shape)
        for op, attrs in node.attrs["chain"]:
            part = as_device("cpu").kernels[op.name](part, **attrs)
        shape = part.shape
    indices = node.inputs[2:]
    if not indices:
        return prod(shape)
    return prod(np.broadcast_shapes(*[i.shape for i in indices])) * prod(shape[len(indices) :])


FLOPS: dict[str, Callable[[Node], int]] = {
    "matmul": _matmul,
    "solve": _solve,
    "cholesky": lambda node: prod(node.shape[:-2]) * (node.shape[-1] ** 3 // 3),
    "slogdet": _slogdet,
    "argsort": _argsort,
    "scatter_add": _places,
    "random": lambda node: int(node.size),
}
