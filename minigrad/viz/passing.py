"""The graph of a program after each pass: its new nodes, and the rules that fired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..compile.fusion.count import Count
from ..compile.look.cost import node_costs
from ..compile.nodes.graph import Graph
from ..compile.rewriting.log import PassRun
from ..compile.rewriting.passes import PASSES
from ..compile.running.program import Program
from ..core.node import Node
from ..support.source import show


class Stage(NamedTuple):
    """A graph after a pass, and its cost node by node.

    `fired` has a line for each rule that fired, with the nodes before and after it; `fresh` are the new nodes.
    """

    name: str
    says: str
    graph: Graph
    fired: list[tuple[str, Node, Node]]
    fresh: set[Node]
    takes: Count


def stages_of(program: Program) -> list[Stage]:
    """The graph as it was traced, and after each pass that changed it.

    >>> program = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4))
    >>> [(stage.name, len(stage.graph)) for stage in stages_of(program)]
    [('as traced', 5), ('simplify', 3), ('common', 2)]
    """
    says = {each.name: each.says for each in PASSES}
    stages = [_stage("as traced", "what your code computes, operation by operation", program.graph, None, [])]
    for run in program.log.runs:
        if run.changed:
            name = run.name if run.round == 1 else f"{run.name}, again"
            stages.append(_stage(name, says.get(run.name, ""), run.after, stages[-1].graph, list(_fired(run))))
    return stages


def _stage(name: str, says: str, graph: Graph, before: Graph | None, fired: list[tuple[str, Node, Node]]) -> Stage:
    fresh = _fresh(before, graph) if before is not None else set()
    return Stage(name, says, graph, fired, fresh, sum([each.eager for each in node_costs(graph)], Count()))


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
