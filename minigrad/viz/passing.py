"""The graph of a program after each pass: its new nodes, and the rules that fired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..compile.fusion.count import Count, eager_count
from ..compile.look.stage import Stage, graph_stages
from ..compile.nodes.graph import Graph
from ..compile.nodes.view import views_of
from ..compile.rewriting.log import PassRun
from ..compile.rewriting.passes import PASSES
from ..compile.running.program import Program
from ..core.node import Node
from ..support.source import show


class Change(NamedTuple):
    """A graph after a pass, and its cost node by node.

    `fired` has a line for each rule that fired, with the nodes before and after it; `fresh` are the new nodes.
    """

    name: str
    says: str
    graph: Graph
    fired: list[tuple[str, Node, Node]]
    fresh: set[Node]
    takes: Count


def changes_of(program: Program) -> list[Change]:
    """The graph as it was traced, and after each pass that changed it.

    >>> program = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4))
    >>> [(change.name, len(change.graph)) for change in changes_of(program)]
    [('as traced', 5), ('simplify', 3), ('common', 2)]
    """
    says = {each.name: each.says for each in PASSES}
    traced, *stages = graph_stages(program.log)
    known: dict[Node, Count] = {}
    changes = [_change(traced, "what your code computes, operation by operation", None, [], known)]
    for stage, run in zip(stages, [run for run in program.log.runs if run.changed]):
        changes.append(_change(stage, says.get(run.name, ""), run.before, list(_fired(run)), known))
    return changes


def _change(
    stage: Stage, says: str, before: Graph | None, fired: list[tuple[str, Node, Node]], known: dict[Node, Count]
) -> Change:
    """A change; `known` are the costs of nodes in earlier stages: most nodes are in several."""
    graph: Graph = stage.object
    fresh = _fresh(before, graph) if before is not None else set()
    views = views_of(graph)
    known |= {node: eager_count(node, views) for node in graph.nodes if node not in known}
    return Change(stage.name, says, graph, fired, fresh, sum([known[node] for node in graph.nodes], Count()))


def _fired(run: PassRun) -> Iterator[tuple[str, Node, Node]]:
    names = {**run.after.names(), **run.before.names()}
    for each in run.fired:
        old, new = [names.get(node, node.name) for node in (each.node, each.replacement)]
        yield f"{each.rule}: {old} → {new}   {show(each.node.where)}", each.node, each.replacement


def _fresh(before: Graph, after: Graph) -> set[Node]:
    """The nodes whose operation is not in the graph before, whatever its inputs."""
    old: dict[Any, int] = defaultdict(int)
    known = set(before.nodes)
    for node in before.nodes:
        old[_recipe(node)] += 1
    for node in after.nodes:
        if node in known:
            old[_recipe(node)] -= 1
    fresh = set()
    for node in after.nodes:
        if node not in known:
            key = _recipe(node)
            if old[key] > 0:
                old[key] -= 1
            else:
                fresh.add(node)
    return fresh


def _recipe(node: Node) -> Any:
    numbers = tuple([repr(x) for x in node.inputs if not isinstance(x, Node)])
    return node.name, node.shape, str(node.dtype), repr(sorted(node.attrs)), numbers, node.code, node.offset
