"""Unit 11: the pass of the student, which merges equal computations, and a training step to compile with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad import nn, optim
from minigrad import random as seeds
from minigrad.compile.jitted import jit, trace
from minigrad.compile.nodes.graph import Graph, remade
from minigrad.compile.rewriting.common import common
from minigrad.compile.rewriting.rules import Note, rewritten
from minigrad.core.mode import no_grad
from minigrad.core.node import Node
from minigrad.data import digits
from minigrad.ops.creation import asarray, ones
from minigrad.ops.elementwise import exp, sqrt
from minigrad.ops.losses import cross_entropy
from minigrad.viz.flipbook import Flipbook

from ...compare import Difference
from ...digits import Trained
from ...feedback import Misused, Wrong
from ...session import SESSION
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT
from .graphs import SIZE, evaluated, random_graph, same_values, values_of
from .savings import page_of, saved, stages_of, table_of

Merged = dict[Node, Node]  # each node, and the node that takes its place
PIXELS, HIDDEN, BATCH, EPOCHS, RATE = 64, 256, 64, 4, 0.5  # of the training
FORM = "return a dictionary with an entry for every node: itself, or the earlier node that takes its place"
TRAPS = {  # programs, each with something that a key must tell apart
    "sin(x * 2.0) + sin(x * 2.0)": "two products and two sines become one each",
    "exp(x.sum(0)) * exp(x.sum(1))": "the two sums have different axes",
    "(x - x.T) * exp(x.T - x)": "the two differences have their inputs the other way round",
    "1.0 / (x * 0.0) - 1.0 / (x * -0.0)": "the two products have different signs of zero",
    "sin(x * 2.0) + sin(x * 3.0)": "the two products have different numbers",
    "x * asarray([0.0, 1.0, 2.0, 3.0]) + x * asarray([1.0, 1.0, 5.0, 1.0])": "two constants with different numbers",
    "x + (arange(4) * 2).sum() / 3 + (arange(4) * 2.0).sum()": "2 gives whole numbers, and 2.0 gives floats",
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

    def merge_same(graph: Graph, note: Note) -> Graph:
        chosen = function(graph.nodes)
        if not isinstance(chosen, dict):
            raise Misused("merge_same", f"returned a {type(chosen).__name__}", FORM)
        return merged(graph, chosen, note)

    return merge_same


def told_apart(inputs: Iterable[Any]) -> tuple[Any, ...]:
    """Inputs as a key: nodes themselves, numbers as text, which tells 0.0 from -0.0 and 2 from 2.0."""
    return tuple([x if isinstance(x, Node) else repr(x) for x in inputs])


# ---- the training step -----------------------------------------------------------------------------------------------

class ByHand(nn.Module):
    """A network for the digits, with a layer norm and a SiLU that are written out, as in many tutorials."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(PIXELS, HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        variance = ((h - h.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
        h = (h - h.mean(-1, keepdims=True)) / sqrt(variance + 1e-5)
        return self.second(h / (1 + exp(-h)))

    def read(self, images: Any) -> Any:
        """The digits that it reads."""
        with no_grad():
            return self(_flat(images)).argmax(1).numpy()


def train() -> Flipbook:
    """Train the network on the digits by a compiled step, with the passes that are in the pipeline now.

    The first picture shows what the step takes after each pass, the others the loss and the digits before and after.
    """
    seeds.seed(0)
    model = ByHand()
    optimizer = optim.SGD(model.parameters(), lr=RATE)

    @jit
    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    (images, labels), (others, _) = [part.arrays for part in digits()]
    parts = [slice(i, i + BATCH) for i in range(0, len(labels) - BATCH + 1, BATCH)]
    batches = [(_flat(images[part]), asarray(labels[part].copy())) for part in parts]
    before = model.read(others)
    with np.errstate(all="ignore"):  # with a wrong pass the numbers may overflow
        losses = [float(step(*batch).item()) for _ in range(EPOCHS) for batch in batches]
        trained = Trained(SESSION.author, None, losses, before, model.read(others))
    stages = stages_of(step.passes(*batches[0]), step.cost(*batches[0]))
    title = f"{saved(stages)}; {trained.right} of {trained.shown} digits read"
    says = f"{title}. Each bar is the step after a pass, node by node; the last one is fused."
    return Flipbook(title, [[page_of(stages, says), *trained.picture.pages[0][1:]]], cover=0, unit="picture",
                    words=table_of(stages))


def _flat(images: Any) -> Any:
    return asarray(images.reshape(len(images), PIXELS).copy())


# ---- the task --------------------------------------------------------------------------------------------------------


@UNIT.task
class MergeSame(FunctionTask):
    name = "merge_same"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        graphs = [(trace(lambda x: evaluated(text, x=x), ones((SIZE, SIZE))), text) for text in TRAPS]  # noqa: B023
        graphs += [(random_graph(draw), "") for _ in range(8)]
        self.graphs = {graph.nodes: (graph, text) for graph, text in graphs}
        self.answers: dict[tuple[Node, ...], Merged] = {}
        yield from [(graph.nodes,) for graph, _ in graphs]

    def right(self, nodes: Sequence[Node]) -> Merged:
        first: dict[Any, Node] = {}
        now: Merged = {}
        for node in nodes:
            inputs = tuple([now.get(x, x) for x in node.inputs])
            key = (node.name, told_apart(inputs), str(node.attrs))
            now[node] = first.setdefault(key, node) if node.op is not None else node
        return now

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        graphs = [graph for graph, _ in self.graphs.values()]
        left = sum(len(merged(graph, self.answers[graph.nodes])) for graph in graphs)
        own = sum(len(common(graph, lambda *fired: None)) for graph in graphs)
        return f"{left} of {sum(map(len, graphs))} nodes of all test graphs are left. minigrad's own pass leaves {own}."

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        graph, _ = self.graphs[args[0]]
        self.answers[graph.nodes] = yours
        self._check_form(yours, graph)
        after = merged(graph, yours)
        if not same_values(values_of(graph), values_of(after)):
            return "the merged graph computes something else"
        most = len(merged(graph, self.right(graph.nodes)))
        return f"{len(after)} of {len(graph)} nodes are left, {most} are possible" if len(after) > most else None

    def _check_form(self, yours: Any, graph: Graph) -> None:
        if not isinstance(yours, dict):
            raise Wrong(self.name, f"it returned a {type(yours).__name__}, not a dictionary", FORM)
        position = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
        for node in (*yours, *yours.values()):
            if node not in position:
                what = f"the dictionary contains a {type(node).__name__}, not a node of the graph"
                raise Wrong(self.name, what, "keys and values are nodes. The keys to compare are another dictionary")
        for node, other in yours.items():
            if position[other] > position[node]:
                what = "a node is replaced by a later one, which does not exist yet"
                raise Wrong(self.name, what, "keep the first of two: first.setdefault(key, node) returns it")
            if (node.shape, node.dtype) != (other.shape, other.dtype):
                what = f"{node.name} of {node.dtype} {node.shape} is replaced by {other.dtype} {other.shape}"
                raise Wrong(self.name, f"{what}\n  in {self._call((graph.nodes,))}", self._hint())
        if any(node not in yours for node in graph.nodes):
            raise Wrong(self.name, "some nodes have no entry", FORM)

    def _hint(self, found: Any = ()) -> str | None:
        """The hint of the mistake that merges in the same way in all graphs so far, or in the graph that failed."""
        failed = found[0][0][0] if found else [*self.answers][-1]
        for graphs in self.answers, [failed]:
            for each in self.mistakes:
                if all(self.wrong(each)(nodes) == self.answers[nodes] for nodes in graphs):
                    return each.hint
        return self.otherwise

    def _call(self, args: tuple[Any, ...]) -> str:
        _, text = self.graphs[args[0]]
        return f"{text}: {TRAPS[text]}" if text else "a random graph"

    def given(self) -> dict[str, Any]:
        return {"as_pass": as_pass, "train": train}
