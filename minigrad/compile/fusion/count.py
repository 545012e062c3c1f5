"""Counts launches, bytes and operations.  Whatever states such a number gets it from here.

A launch is one call of machine code or of a library.  Checks of positions do not count.  Bytes are those of memory: a
kernel reads each element once, because a second read comes from a cache.  A view costs nothing, and neither does the
temporary memory of a library.  An operation is one operation of the loop language: a sum, a comparison, a choice.
`exp` counts as one although it takes longer than `+`; a cast counts as none.

A loop counts what its rounds do, and a branch what the function does that runs: those of the last run.  Before the
first run, a while_loop counts one round, and a branch the function that moves more bytes.
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
from ..loops.operations import OPERATIONS, steps_of
from ..nodes.view import View, views_of


@dataclass(frozen=True)
class Count:
    """The cost of a computation: bytes read and written, operations, and launches of kernels."""

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
        """Operations per byte of traffic: if this is low, the speed of memory decides how long a kernel takes."""
        return self.flops / self.bytes if self.bytes else 0.0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.bytes_read + other.bytes_read, self.bytes_written + other.bytes_written, self.flops + other.flops,
            self.launches + other.launches,
        )

    def __mul__(self, times: int) -> Count:
        return Count(*[times * each for each in (self.bytes_read, self.bytes_written, self.flops, self.launches)])


def distinct_bytes(views: Iterable[View]) -> int:
    """The bytes that these views read, each view once, and at most the size of the array."""
    read: dict[Node, set[View]] = {}
    for view in views:
        if not isinstance(view.base.dtype, tuple):
            read.setdefault(view.base, set()).add(view)
    return sum(min(sum(v.footprint for v in vs), b.size) * b.dtype.itemsize for b, vs in read.items())


def takes_nothing(node: Node, views: Mapping[Node, View]) -> bool:
    """Whether a node needs no work on elements: a view, one of several results, an input."""
    if node.op is None or node.op is P.project:
        return True
    return node.op.kind == "view" and (views[node].base is not node or not node.size)


def eager_count(node: Node, views: Mapping[Node, View]) -> Count:
    """The cost of a node in eager mode, where assignment writes into existing memory."""
    if functions_of(node.attrs):
        return count_inside(node.attrs, eager_parts)
    if takes_nothing(node, views):
        return Count()
    if node.op is P.put:
        read = distinct_bytes([views[i] for i in node.inputs[1:] if isinstance(i, Node)])
        return Count(read, _places(node) * node.dtype.itemsize, 0, 1)
    return library_count(node, views)


def library_count(node: Node, views: Mapping[Any, View]) -> Count:
    """The cost of a node in a library, which writes to new memory.

    >>> from minigrad.compile.nodes.view import views_of
    >>> graph = mg.trace(lambda x, y: x @ y.T, mg.ones((2, 3)), mg.ones((4, 3)))
    >>> library_count(graph.nodes[-1], views_of(graph))
    Count(bytes_read=72, bytes_written=32, flops=48, launches=1)
    """
    if takes_nothing(node, views):
        return Count()
    given = [views[i] for i in node.inputs if isinstance(i, Node)]
    read = distinct_bytes(given)
    if node.op is P.gather:  # it reads only the picked elements of the array
        read = min(node.nbytes, distinct_bytes(given[:1])) + distinct_bytes(given[1:])
    return Count(read, node.nbytes, flops_of(node), 1)


# Loops and branches -------------------------------------------------------------------------------------------------

Part = tuple[Count, Mapping[str, Any]]  # of a function: the cost of one run, and the functions that it calls


def count_inside(attrs: Mapping[str, Any], parts: Callable[[Any], Iterable[Part]], times: int = 1) -> Count:
    """The cost of the functions of a loop or branch that runs `times` times; `parts` returns those of a function."""
    total = Count()
    for function, runs in runs_of(attrs, parts, times):
        total += kept_by(attrs, runs) if function is attrs.get("body") else Count()
        for count, inner in parts(function) if runs else ():
            total += count_inside(inner, parts, runs) if functions_of(inner) else count * runs
    return total


def kept_by(attrs: Mapping[str, Any], rounds: int) -> Count:
    """The cost of the carries that a loop of `rounds` rounds keeps for its gradient: it copies them in each round."""
    kept = attrs["body"].results[: attrs.get("carries")] if attrs.get("keep") else ()
    size = sum([prod(shape) * dtype.itemsize for shape, dtype in kept])
    return Count(size, size) * rounds


def runs_of(attrs: Mapping[str, Any], parts: Callable[[Any], Iterable[Part]], times: int = 1) -> list[tuple[Any, int]]:
    """The functions of a loop or branch that runs `times` times, and how often each one runs then."""
    functions = functions_of(attrs)
    if all(function.tally.last is not None for function in functions):
        return [(function, function.tally.last) for function in functions]
    if "then" in attrs:
        return [(max(functions, key=lambda each: count_inside({"body": each}, parts).bytes), times)]
    rounds = times * attrs.get("length", 1)
    return [(function, rounds + times * (function is attrs.get("condition"))) for function in functions]


def eager_parts(function: Any) -> list[Part]:
    """The cost of each node of a function in eager mode."""
    views = views_of(function.graph)
    return [(Count() if functions_of(n.attrs) else eager_count(n, views), n.attrs) for n in function.graph.nodes]


# Operations ---------------------------------------------------------------------------------------------------------


def flops_of(node: Node) -> int:
    """The number of operations of a node: for factorisations the leading term, for a sort the comparisons.

    >>> x = mg.ones((2, 3))
    >>> [flops_of(node) for node in mg.trace(lambda x: mg.tanh(x @ x.mT) * 2 + 1, x).nodes]
    [0, 24, 4, 4, 4]
    """
    op = getattr(node.attrs.get("kernel"), "op", node.op)  # of a kernel that is registered for an operation
    assert op is not None
    own = FLOPS.get(op.name)
    if own is not None:
        return own(node)
    if op.kind == "elementwise":
        return operations(op) * node.size
    return int(node.inputs[0].size) if op.kind == "reduce" else 0  # other primitives only move elements


def operations(op: Any) -> int:
    """The number of operations per element of an elementwise primitive."""
    return sum(OPERATIONS[step.op].flops for step in steps_of(op)) if op.expr else 1


def _solve(node: Node) -> int:
    rows, columns = node.shape[-2:]
    return prod(node.shape[:-2]) * (2 * rows**3 // 3 + 2 * rows * rows * columns)


def _slogdet(node: Node) -> int:
    shape = node.inputs[0].shape
    return prod(shape[:-2]) * (2 * shape[-1] ** 3 // 3)


def _factors(node: Node, tall: float, square: float) -> int:
    """The operations for a matrix with n columns and m rows, at least n: `tall` m n² + `square` n³."""
    shape = node.inputs[0].shape
    n, m = sorted(shape[-2:])
    return int(prod(shape[:-2]) * (tall * m * n * n + square * n**3))


def _argsort(node: Node) -> int:
    return int(node.size) * (node.shape[node.attrs["axis"]] - 1).bit_length() if node.size else 0


def _places(node: Node) -> int:
    """The number of elements that a `put`, `scatter_add` or `scatter_max` writes."""
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
    "matmul": lambda node: int(2 * node.size * node.inputs[0].shape[-1]),
    "solve": _solve,
    "cholesky": lambda node: prod(node.shape[:-2]) * (node.shape[-1] ** 3 // 3),
    "slogdet": _slogdet,
    "eigh": lambda node: prod(node.shape[:-2]) * 9 * node.shape[-1] ** 3,
    "svd": lambda node: _factors(node, 6, 20),
    "qr": lambda node: _factors(node, 4, -4 / 3),  # R, and Q from its reflections
    "pinv": lambda node: _factors(node, 8, 20),
    "argsort": _argsort,
    "sort": _argsort,
    "scatter_add": _places,
    "scatter_max": _places,
    "overlap_add": lambda node: int(node.inputs[0].size),
    "random": lambda node: int(node.size),
}


def functions_of(attrs: Mapping[str, Any]) -> list[Any]:
    """The functions among the attributes of a node: those of a loop or branch."""
    return [value for value in attrs.values() if hasattr(value, "tally")]


