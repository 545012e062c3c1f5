"""Nans in programs: a program is run node by node first, which tells what made one, and on which line."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import NanError
from ..core.mode import switch
from ..core.node import Node
from ..core.source import show
from ..devices.effects import held_back
from .execution import Starts
from .graph import Graph
from .inspection import compute, in_order

Run = Callable[[], list[Any]]


def hunted(graph: Graph, arrays: Sequence[Any], starts: Starts, hunter: Any, run: Run) -> list[Any]:
    """What `run()` gives, the graph's outputs for these inputs, unless a node makes what is hunted."""
    with held_back() as printed:
        try:
            expected = _one_by_one(graph, arrays, starts, hunter)
        except NanError:
            for text in printed:  # up to here: it may tell how it came to this
                builtins.print(text)
            raise
    with switch(interpreter=None):
        results = run()
    for node, result, right in zip(graph.outputs, results, expected):
        what = None if result is None else hunter.found(result)
        if what is not None and hunter.found(right) != what:
            raise NanError(
                f"the program made {what} of {node.name}, made at {show(node.where)}; its nodes one by one do not",
                hint="mg.jit(f, check=True) says which pass or kernel it is",
            )
    return results


def _one_by_one(graph: Graph, arrays: Sequence[Any], starts: Starts, hunter: Any) -> list[Any]:
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays))
    for node, given in in_order(graph.nodes, values, set(graph.outputs)):
        data = values[node] = compute(node, given, starts)
        if node.op is not None:
            hunter.look(node.op, given, node.attrs, data, node.origin, node.where)
    return [values[node] for node in graph.outputs]
