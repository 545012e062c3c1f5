"""Unit 11: the pass that the student writes: computations that are the same become one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....compile.jitted import trace
from ....compile.nodes.graph import Graph, remade
from ....compile.rewriting.rules import Note, rewritten
from ....core.node import Node
from ....ops.creation import arange, asarray, ones
from ....ops.elementwise import exp, sin
from ....support.table import counted
from ...compare import Difference
from ...feedback import Misused, Wrong, written
from ...tasks import FunctionTask, Mistake, mistake
from .about import UNIT
from .graphs import SIZE, random_program, same_values, values_of
from .training import train

Merged = dict[Node, Node]  # each node, and the node that takes its place
FORM = "return a dictionary with an entry for every node: itself, or the earlier node that takes its place"


# ---- graphs to merge -------------------------------------------------------------------------------------------------


def twins(x: Any) -> Any:
    return sin(x * 2.0) + sin(x * 2.0)


def axes(x: Any) -> Any:
    return exp(x.sum(0)) * exp(x.sum(1))


def order(x: Any) -> Any:
    return (x - x.T) * exp(x.T - x)


def zeros(x: Any) -> Any:
    return 1.0 / (x * 0.0) - 1.0 / (x * -0.0)


def numbers(x: Any) -> Any:
    return sin(x * 2.0) + sin(x * 3.0)


def constants(x: Any) -> Any:
    return x * asarray(np.arange(4.0, dtype="f")) + x * asarray(np.ones(4, dtype="f"))


def types(x: Any) -> Any:
    whole = arange(SIZE)
    return (whole * 1.5).sum() + x.sum() * (whole * 2).sum() + (whole * 2.0 / 3.0).sum() + x * 1.0


WHAT = {
    twins: "sin(x * 2) + sin(x * 2): two multiplications and two sines become one each",
    axes: "exp(x.sum(0)) * exp(x.sum(1)): the two sums have different axes",
    order: "(x - x.T) * exp(x.T - x): the two differences have their inputs the other way round",
    zeros: "1 / (x * 0.0) - 1 / (x * -0.0): the two products have different signs of zero",
    numbers: "sin(x * 2) + sin(x * 3): different numbers",
    constants: "x * c + x * d, with two constants c and d",
    types: "a whole number times 2, and times 2.0: one is a whole number, the other a float",
}


def merged(graph: Graph, chosen: Mapping[Node, Node], note: Note | None = None) -> Graph:
    """The graph in which nodes are replaced by earlier nodes, as chosen; nodes with effects stay."""
    now: dict[Node, Node] = {}

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        first = now.get(chosen.get(node, node))
        now[node] = remade(node, inputs) if first is None else first
        if first is not None and note is not None:
            note("merged by you", node, first)
        return now[node]

    return rewritten(graph, replace)


def as_pass(function: Callable[[Sequence[Node]], Merged]) -> Callable[[Graph, Note], Graph]:
    """A student's `merge_same` as a pass of the compiler: `course.compiler_pass("common", as_pass(merge_same))`."""

    def run(graph: Graph, note: Note) -> Graph:
        chosen = function(graph.nodes)
        if not isinstance(chosen, dict):
            raise Misused(run.__name__, f"returned {written(chosen)}", FORM)
        return merged(graph, chosen, note)

    run.__name__ = function.__name__
    return run


# ---- the task --------------------------------------------------------------------------------------------------------


def merging(key: Callable[[Node, tuple[Any, ...]], Any], through: bool = True) -> Callable[[Sequence[Node]], Merged]:
    """A pass that merges the nodes with equal keys; without `through` it compares the inputs before merging."""

    def merge(nodes: Sequence[Node]) -> Merged:
        first: dict[Any, Node] = {}
        now: Merged = {}
        for node in nodes:
            inputs = tuple([now.get(x, x) if through else x for x in node.inputs])
            found = key(node, inputs)
            now[node] = node if found is None else first.setdefault(found, node)
        return now

    return merge


def told_apart(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs as a key: nodes themselves, numbers as text, which tells 0.0 from -0.0 and 2 from 2.0."""
    return tuple([x if isinstance(x, Node) else repr(x) for x in inputs])


def recipe(node: Node, inputs: tuple[Any, ...]) -> Any:
    """All that decides what a node computes; None for a constant."""
    return None if node.op is None else (node.name, told_apart(inputs), str(node.attrs))


def variant(key: Callable[[Node, tuple[Any, ...]], Any], through: bool = True) -> Callable[..., Merged]:
    """The program of a known mistake."""
    return lambda self, nodes: merging(key, through)(nodes)


def known(hint: str, name: str, key: Callable[[Node, tuple[Any, ...]], Any], through: bool = True) -> Mistake:
    """A known mistake: a key that lacks something."""
    return Mistake(name, hint, variant(key, through), None)


def _without_constants(key: Callable[[Node, tuple[Any, ...]], Any]) -> Callable[[Node, tuple[Any, ...]], Any]:
    return lambda node, inputs: None if node.op is None else key(node, inputs)


@UNIT.task
class MergeSame(FunctionTask):
    """`merge_same(nodes)` finds nodes that compute the same: for each node, the node that takes its place."""

    name = "merge_same"
    points = 0
    minutes = 25
    outcome = "common"
    otherwise = (
        "two nodes compute the same if name, inputs and attrs are the same. The inputs may have been merged before: look "
        "them up first. Constants (node.op is None) stay"
    )

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        self.graphs: dict[tuple[Node, ...], tuple[Graph, str]] = {}
        self.answers: dict[tuple[Node, ...], Merged] = {}
        random_ones = {random_program(draw): "a random graph" for _ in range(8)}
        for function, what in {**WHAT, **random_ones}.items():
            graph = trace(function, ones((SIZE, SIZE)))
            self.graphs[graph.nodes] = graph, what
            yield (graph.nodes,)

    def right(self, nodes: Sequence[Node]) -> Merged:
        return merging(recipe)(nodes)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        nodes = args[0]
        graph, _ = self.graphs[nodes]
        self.answers[nodes] = yours
        self._check_form(yours, graph)
        after = merged(graph, yours)
        before, now = values_of(graph), values_of(after)
        if not same_values(before, now):
            return "the merged graph computes something else"
        most = len(merged(graph, self.right(nodes)))
        if len(after) > most:
            left = counted(len(after), "node")
            return f"{left} of {len(graph)} are left, where {most} compute the same"
        return None

    def _check_form(self, yours: Any, graph: Graph) -> None:
        if not isinstance(yours, dict):
            raise Wrong(self.name, f"it returned {written(yours)}, not a dictionary", FORM)
        position = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
        for node, other in yours.items():
            if node not in position or other not in position:
                strange = node if node not in position else other
                what = f"the dictionary contains {type(strange).__name__}, which is not a node of the graph"
                raise Wrong(self.name, what, "keys and values are nodes. The keys of the comparison are another dictionary")
            if position[other] > position[node]:
                hint = "keep the first of two equal nodes: first.setdefault(key, node) returns the node that came first"
                raise Wrong(self.name, "a node is replaced by a later one, which does not exist yet", hint)
            if (node.shape, node.dtype) != (other.shape, other.dtype):
                what = f"{node.name} of {node.dtype} {node.shape} is replaced by {other.dtype} {other.shape}"
                raise Wrong(self.name, what, self._hint())
        if any(node not in yours for node in graph.nodes):
            raise Wrong(self.name, "some nodes have no entry", FORM)

    def _hint(self, found: Any = ()) -> str | None:
        """The hint of the mistake that merges in the same way in all graphs so far."""
        for each in self.mistakes:
            if all(self.wrong(each)(nodes) == yours for nodes, yours in self.answers.items()):
                return each.hint
        return self.otherwise

    def _call(self, args: tuple[Any, ...]) -> str:
        return self.graphs[args[0]][1]

    def given(self) -> dict[str, Any]:
        return {"as_pass": as_pass, "train": train}

    @mistake("nothing is merged: the entry of a node that was seen before is the first of them")
    def nothing(self, nodes: Sequence[Node]) -> Merged:
        return {node: node for node in nodes}

    without_inputs = known(
        "the inputs are missing in the key: two sines of different values are not the same", "without_inputs",
        _without_constants(lambda node, inputs: (node.name, str(node.attrs), node.shape)))
    without_attributes = known(
        "attrs are missing in the key: x.sum(0) and x.sum(1) have the same name and the same input", "without_attributes",
        _without_constants(lambda node, inputs: (node.name, told_apart(inputs))))
    without_name = known(
        "the name is missing in the key: x * 2 and x + 2 have the same inputs", "without_name",
        _without_constants(lambda node, inputs: (told_apart(inputs), str(node.attrs))))
    without_order = known(
        "a set or a sorted list forgets the order: x - y is not y - x", "without_order",
        _without_constants(lambda node, inputs: (node.name, frozenset(told_apart(inputs)), str(node.attrs))))
    equal_numbers = known(
        "0.0 == -0.0 and 2 == 2.0 in Python, and as keys they are equal too. Use repr of the numbers, or compare types and "
        "signs", "equal_numbers", _without_constants(lambda node, inputs: (node.name, inputs, str(node.attrs))))
    with_constants = known(
        "constants have no inputs and no attrs, so all look the same. They stay: if node.op is None", "with_constants",
        lambda node, inputs: (node.name, told_apart(inputs), str(node.attrs)))
    one_level = known(
        "twins of twins are missed: look up the inputs first, now.get(x, x), so that equal inputs are the same node",
        "one_level", recipe, through=False)
    nodes_only = known(
        "the numbers among the inputs are missing in the key: x * 2 is not x * 3", "nodes_only",
        _without_constants(lambda node, inputs: (
            node.name, tuple([x for x in inputs if isinstance(x, Node)]), str(node.attrs))))
