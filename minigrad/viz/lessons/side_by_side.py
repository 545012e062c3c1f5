"""`mg.viz.beside`: eager mode and graph mode with the same lines of code, step by step, side by side.

Eager mode computes a value at each operation.  Graph mode records the operations, simplifies them, fuses them into
kernels, and only then computes.  In a second call, eager mode runs every line again, and graph mode only the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compile.look.values import starts_of
from ...compile.nodes.graph import Graph
from ...compile.nodes.interpret import run_nodes
from ...core.mode import switch
from ...core.node import Node
from ...devices.effects import held_back
from ...support.errors import MinigradError
from ...support.table import counted
from ..compiled import Shown, programs_of, view_of
from ..exhibit import Exhibit
from ..naming import names_in_code, operation_name
from ..numbers import Summary
from ..scene import excerpt, scene_of, type_of
from ..steps import on_host
from ..svg import draw

MOST = 600  # operations


def beside(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Beside:
    """Step through a function in eager mode and in graph mode at the same time.

    >>> mg.viz.beside(lambda x: mg.tanh(x * 2.0 + 1.0), mg.ones(3))
    <3 operations one by one, beside 1 kernel>
    """
    return view_of(programs_of(function, args, kwargs, "beside"), Beside)


class Beside(Exhibit):
    """A function in eager mode beside the same function in graph mode."""

    script = "beside"

    def __init__(self, shown: Shown) -> None:
        program = shown.program
        self.graph: Any = program.graph
        self.optimised, self.log, self.partition = program.optimised, program.log, program.partition
        if len(self.graph.nodes) > MOST:
            raise MinigradError(
                f"{len(self.graph.nodes):,} operations are too many to step through",
                expect=f"at most {MOST}", hint="a part of the function, or fewer rounds of its loops",
            )
        self.names = names_in_code(self.graph.nodes)
        given = [*shown.arrays(), *[node.array() for node in program.constants]]
        self.values = _values_of(self.graph, given)
        later = _values_of(self.optimised, given)
        self.later = {node: value for node, value in later.items() if node.op is not None}

    def said(self) -> str:
        """The numbers of operations and of kernels."""
        operations, kernels = counted(len(self.graph.nodes), "operation"), counted(len(self.partition.groups), "kernel")
        return f"{operations} one by one, beside {kernels}"

    def data(self) -> dict[str, Any]:
        """Both lists and the steps, as plain data."""
        kernels = [self._kernel(number, group) for number, group in enumerate(self.partition.groups)]
        return {
            "about": f"<{self.said()}>",
            "eager": [self._row(node, self.values) | {"line": excerpt(node)} for node in self.graph.nodes],
            "left": [self._row(node, {}) for node in self.optimised.nodes],
            "kernels": kernels,
            "steps": self._steps(kernels),
        }

    def _row(self, node: Node, values: dict[Node, Summary]) -> dict[str, Any]:
        name = self.names.get(node)
        value = values[node].short() if node in values else ""
        return {"name": operation_name(node) + (f" → {name}" if name else ""), "type": type_of(node), "value": value}

    def _kernel(self, number: int, group: Any) -> dict[str, Any]:
        place = {node: i for i, node in enumerate(self.optimised.nodes)}
        inside = [group.library.node] if group.library is not None else [*group.levels, *group.partials]
        return {
            "name": f"kernel {number + 1}", "library": group.library is not None,
            "nodes": sorted({place[node] for node in inside if node in place}),
            "writes": [self._row(node, self.later) for node in group.stores],
        }

    def _steps(self, kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for i, node in enumerate(self.graph.nodes):
            value = self.values[node].short() if node in self.values else type_of(node)
            moves = " shares memory, as a view" if node.op.kind == "view" else f" is computed: {value}"
            steps.append({
                "kind": "line", "row": i, "eager": f"{operation_name(node)}{moves}",
                "graph": f"{operation_name(node)} is recorded with its shape, and nothing is computed.",
            })
        before, after = len(self.graph.nodes), len(self.optimised.nodes)
        fired = ", ".join(f"{rule} × {n}" if n > 1 else rule for rule, n in self.log.counts().items() if n)
        done = "Each value was computed when its line ran: there is nothing left to do."
        steps.append({
            "kind": "passes", "eager": done,
            "graph": f"Now the whole graph is recorded. Passes reduce its {before} operations to {after}"
            + (f": {fired}." if fired else "."),
        })
        steps.append({
            "kind": "fused", "eager": done,
            "graph": f"Operations that can share a loop become one kernel: {counted(len(kernels), 'kernel')} to run.",
        })
        runs = [self._run_in_words(kernel) for kernel in kernels]
        steps += [{"kind": "run", "row": number, "eager": done, "graph": run} for number, run in enumerate(runs)]
        return steps + self._second_call(runs)

    def _run_in_words(self, kernel: dict[str, Any]) -> str:
        inside = [operation_name(self.optimised.nodes[i]) for i in kernel["nodes"]]
        wrote = ", ".join(f"{row['name']}, {row['value'] or row['type']}" for row in kernel["writes"])
        what = "a library routine computes" if kernel["library"] else "one loop computes"
        writes = f", and writes {wrote}" if wrote else ""
        return f"{kernel['name']} runs: {what} {', '.join(inside) or 'a copy'}{writes}."

    def _second_call(self, runs: list[str]) -> list[dict[str, Any]]:
        """The steps of another call with the same arguments: Python runs every line again, or no line at all."""
        nodes, steps = self.graph.nodes, []
        for i in range(max(len(nodes), len(runs))):
            name = operation_name(nodes[i]) if i < len(nodes) else ""
            eager = f"Python runs the line again, and {name} is computed." if name else "Done."
            graph = f"No line of Python runs; {runs[i]}" if i < len(runs) else "Done: the result was there earlier."
            both = {"eager": f"Second call. {eager}", "graph": f"Second call. {graph}"}
            steps.append({"kind": "again", "row": i} | both)
        return steps

    def to_svg(self) -> str:
        """The graph with its values."""
        nodes = [*self.graph.inputs, *self.graph.nodes]
        return draw(scene_of(nodes, self.graph.outputs, self.names, self.values))

    def text(self) -> str:
        """The steps of both modes, in words."""
        steps = self._steps([self._kernel(n, group) for n, group in enumerate(self.partition.groups)])
        return "\n".join(f"{i}. eager: {s['eager']}\n   graph: {s['graph']}" for i, s in enumerate(steps, 1))

    def _plain(self) -> str:
        return repr(self)


def _values_of(graph: Graph, inputs: list[Any]) -> dict[Node, Summary]:
    """A summary of each value, computed node by node as in eager mode."""
    found: dict[Node, Summary] = {}

    def look(node: Node, given: list[Any], value: Any) -> None:
        if not isinstance(node.dtype, tuple):
            found[node] = Summary.of(on_host(value, node))

    with switch(interpreter=None, grad=False), held_back():
        run_nodes(graph.nodes, dict(zip(graph.inputs, inputs)), starts_of(graph), (), look)
    return found
