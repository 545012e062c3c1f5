"""Finds the numbers in a graph that depend on the size of the batch.

A graph has fixed shapes, but a file should take batches of any size.  So a function is traced with three batch sizes.
The three graphs may differ only in numbers of the form `factor × batch + offset`: two graphs determine the factor and
the offset, and the third one checks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ...compile.nodes.graph import Graph
from ...core.node import Node
from ...support.errors import FileError
from ...support.source import show
from .decompositions import decomposed


class Size(int):
    """A number that depends on the batch: `factor × batch + offset`.  As an integer, its value in the first graph.

    >>> Size.through((6, 8, 14), (2, 3, 6))
    2 × batch + 2
    """

    factor: int
    offset: int

    def __new__(cls, value: int, factor: int, offset: int) -> Size:
        size = super().__new__(cls, value)
        size.factor, size.offset = factor, offset
        return size

    @classmethod
    def through(cls, values: Sequence[int], batches: Sequence[int]) -> Size | None:
        """The number with these values for these batch sizes; None if there is none."""
        factor, rest = divmod(values[1] - values[0], batches[1] - batches[0])
        offset = values[0] - factor * batches[0]
        if rest or any(factor * b + offset != v for v, b in zip(values, batches)):
            return None
        return cls(values[0], factor, offset)

    def __repr__(self) -> str:
        return f"{self.factor} × batch" + (f" + {self.offset}" if self.offset else "")


class Share(float):
    """A number that is 1 / size: the factor of a mean."""

    size: Size


class Part(NamedTuple):
    """A branch or the body of a loop, for any batch size."""

    graph: Graph


def difference(a: int, b: int) -> int:
    """a - b, where both may depend on the batch."""
    if not isinstance(a, Size) and not isinstance(b, Size):
        return a - b
    factor = getattr(a, "factor", 0) - getattr(b, "factor", 0)
    offset = getattr(a, "offset", a) - getattr(b, "offset", b)
    return Size(int(a) - int(b), factor, offset) if factor else offset


class Merged:
    """Several graphs of one function as a single graph."""

    def __init__(self, graphs: Sequence[Graph], batches: Sequence[int]) -> None:
        self.batches = batches
        self.of: dict[Any, Any] = {}
        first = graphs[0]
        if any(len(g) != len(first) or len(g.inputs) != len(first.inputs) for g in graphs):
            raise FileError("the function computes something else for another batch size", hint=WAY_OUT)
        for nodes in zip(*[(*g.inputs, *g.nodes) for g in graphs]):
            self.of[nodes[0]] = self._node(nodes)
        ends = [self.of[node] for node in first.outputs]
        self.graph = Graph([self.of[node] for node in first.inputs], ends, [self.of[node] for node in first.effects])

    def _node(self, nodes: Sequence[Any]) -> Node:
        """An operation, or an input of the graph, for any batch size; a constant may not depend on it."""
        first = nodes[0]
        if any(n.op is not first.op or len(n.inputs) != len(first.inputs) for n in nodes):
            raise self._differs(first, "is another operation")
        if first.name in ("constant", "array"):
            if any(not np.array_equal(first.array(), n.array(), first.dtype.kind == "f") for n in nodes[1:]):
                raise self._differs(first, "is a constant with other values")
            return first  # type: ignore[no-any-return]
        new = copy(first)
        new.inputs = tuple([self._input(first, given) for given in zip(*[n.inputs for n in nodes])])
        new.attrs = {k: self._same(first, k, [n.attrs[k] for n in nodes]) for k in first.attrs}
        new.shape = self._same(first, "its shape", [n.shape for n in nodes])
        return new  # type: ignore[no-any-return]

    def _input(self, node: Node, given: Sequence[Any]) -> Any:
        return self.of[given[0]] if isinstance(given[0], Node) else self._same(node, "a number in it", given)

    def _same(self, node: Node, what: str, values: Sequence[Any]) -> Any:
        """These values as one value for any batch size."""
        first = values[0]
        if any(type(v) is not type(first) for v in values):
            raise self._differs(node, f"has a different type of {what}")
        if isinstance(first, tuple):
            if any(len(v) != len(first) for v in values):
                raise self._differs(node, f"{what} has a different length")
            parts = [self._same(node, what, row) for row in zip(*values)]
            return first._make(parts) if hasattr(first, "_make") else tuple(parts)
        if isinstance(first, slice):
            return slice(*[self._same(node, what, [getattr(v, f) for v in values]) for f in ("start", "stop", "step")])
        if isinstance(getattr(first, "graph", None), Graph):
            return Part(Merged([decomposed(v.graph, {}) for v in values], self.batches).graph)
        if all(v is first or v == first for v in values) or (first != first and all(v != v for v in values)):
            return first
        number: Size | Share | None = None
        if first.__class__ is int:
            number = Size.through(values, self.batches)
        elif first.__class__ is float and all(float(v).is_integer() for v in values):
            number = Size.through([int(v) for v in values], self.batches)
        elif first.__class__ is float and all(0 < abs(v) <= 1 and 1 / round(1 / v) == v for v in values):
            number = _share(first, Size.through([round(1 / v) for v in values], self.batches))
        if number is None:
            raise self._differs(node, f"{what} is {', '.join(map(repr, values))}")
        return number

    def _differs(self, node: Node, how: str) -> FileError:
        batches = ", ".join(map(str, self.batches))
        return FileError(
            f"{node.name}, made at {show(node.where)}, depends on the batch in a way that a file cannot express",
            actual=f"for batches of {batches}: {how}", hint=WAY_OUT,
        )


WAY_OUT = "batch_axes=None for a model with exactly these shapes, or batch_axes=[...] for the axis of each input"


def _share(value: float, size: Size | None) -> Share | None:
    if size is None:
        return None
    share = Share(value)
    share.size = size
    return share
