"""Programs that run node by node, by the devices' kernels: for devices without targets, and to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from ...core.mode import current_mode
from ...core.node import Node
from ..fusion.count import eager_count
from ..nodes.graph import Graph, Starts, Titled
from ..nodes.interpret import hunted, run_nodes
from ..nodes.view import views_of
from .profiler import note
from .steps import is_profiled


class PlainProgram(Titled):
    """A program that runs node by node, by the devices' kernels: for devices without targets, and to compare with."""

    stored_in: Mapping[int, int] = {}

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def listing(self) -> str:
        """The nodes, each of which is a step."""
        return str(self.graph)

    def __call__(self, arrays: Sequence[Any], starts: Starts | None = None) -> list[Any]:
        """The outputs for these inputs."""
        hunter = current_mode().interpreter
        if hunter is not None and hunter.runs_programs:
            return hunted(self.graph, arrays, starts or {}, hunter, lambda: self(arrays, starts))
        values = dict(zip(self.graph.inputs, arrays))
        wanted, look = {*self.graph.inputs, *self.graph.outputs}, self._noting() if is_profiled() else None
        run_nodes(self.graph.nodes, values, starts or {}, wanted, look)
        seen = {id(a) for a in arrays}
        return [self._owned(node, values[node], seen) for node in self.graph.outputs]

    def _noting(self) -> Callable[[Node, list[Any], Any], None]:
        """A function that records each operation when it has run: it began when the one before it ended."""
        names, views, begin = self.graph.names(), views_of(self.graph), perf_counter()

        def look(node: Node, given: list[Any], value: Any) -> None:
            nonlocal begin
            end, cost = perf_counter(), eager_count(node, views)
            if cost.launches:
                note(names[node], begin, cost, end)
            begin = perf_counter()

        return look

    def _owned(self, node: Node, array: Any, seen: set[int]) -> Any:
        """A result that shares memory with no input, constant or other result."""
        shared = node.op is None or node.op.kind == "view" or id(array) in seen
        seen.add(id(array))
        return array.copy() if shared else array
