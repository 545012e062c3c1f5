"""A program: a graph made ready to run, again and again, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.emit import EAGER
from ..core.errors import MinigradError
from ..core.node import Node
from ..core.primitive import P
from ..core.source import show
from .graph import Graph


class Program:
    """Runs the nodes of a graph in order, each by its device's kernel, and lets go of values after their last use.

    Results are arrays of their own: they share no memory with what came in, nor with each other.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        slots = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
        last = {i: node for node in graph.nodes for i in node.inputs if isinstance(i, Node)}
        kept = {*graph.outputs, *graph.inputs}
        self.size = len(slots)
        self.outputs = [slots[node] for node in graph.outputs]
        self.steps = []
        for node in graph.nodes:
            reads = [(slots[i], None) if isinstance(i, Node) else (-1, i) for i in node.inputs]
            done = {slots[i] for i in node.inputs if isinstance(i, Node) and last[i] is node and i not in kept}
            self.steps.append((node, reads, slots[node], tuple(done)))

    def __call__(self, arrays: Sequence[Any], starts: dict[Any, tuple[Any, int]]) -> list[Any]:
        """The outputs for these inputs; `starts` says where each generator of random numbers begins in this run."""
        values: list[Any] = [*arrays, *[None] * (self.size - len(arrays))]
        for node, reads, slot, done in self.steps:
            given = [number if place < 0 else values[place] for place, number in reads]
            try:
                values[slot] = run(node, given, starts)
            except MinigradError as error:
                raise located(error, node) from None
            for place in done:
                values[place] = None
        seen = {id(a) for a in arrays}
        return [self._owned(node, values[i], seen) for node, i in zip(self.graph.outputs, self.outputs)]

    def _owned(self, node: Node, array: Any, seen: set[int]) -> Any:
        """A result that shares no memory with anything that somebody else holds."""
        shared = node.op is None or node.op.kind == "view" or id(array) in seen
        seen.add(id(array))
        return array.copy() if shared else array


def run(node: Node, given: list[Any], starts: dict[Any, tuple[Any, int]]) -> Any:
    """The value of one node, computed by its device's kernel."""
    attrs = node.attrs
    if node.op is None:
        return node.array()  # type: ignore[attr-defined]
    if node.op is P.random and attrs["key"] in starts:
        key, first = starts[attrs["key"]]
        attrs = attrs | {"key": key, "block": first + attrs["block"]}
    return EAGER.compute(node.op, given, attrs, node.device)  # type: ignore[arg-type]


def located(error: MinigradError, node: Node) -> MinigradError:
    """An error of a running program, with the line that made the node: the line that called it is known already."""
    if node.where is not None:
        error.add_note(f"while computing {node.name}, made at {show(node.where)}")
    return error

