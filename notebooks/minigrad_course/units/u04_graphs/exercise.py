"""Unit 04: the graph of a program as a dictionary, and a graph with one wrong arrow."""

from __future__ import annotations

import random
from typing import Any

from minigrad.viz.numbers import short  # noqa: F401  (in the texts)

from ...boards import Arrow, arrows_of, evaluated, mover, with_arrow
from ...feedback import Wrong, written
from ...forms import parts_of
from ...graphs import Graph
from ...tasks import ROUNDS, ValueTask
from .about import UNIT
from .graph_tasks import GraphTask

SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


@UNIT.task
class TypedGraph(GraphTask):
    """Write the graph of a program as a dictionary."""

    name = "typed_graph"
    given_names = ("x", "w")
    operations = ("multiply", "add", "subtract")

    def vary(self, draw: random.Random) -> None:
        self.left = draw.choice([True, False])  # whether w is the left factor
        self.second = draw.choice(["add", "subtract"])
        self.factor = draw.choice([2, 3, 4])
        self.number = draw.choice([5, 6, 7])
        self.positive = draw.choice([True, False])

    def rounds(self, count: int) -> tuple[dict[str, tuple[Any, ...]], str]:
        """The graph of the loop, and the name of its last value."""
        graph: dict[str, tuple[Any, ...]] = {}
        h = "x"
        for i in range(1, count + 1):
            graph[f"a{i}"] = ("multiply", "w", h) if self.left else ("multiply", h, "w")
            graph[f"h{i}"] = (self.second, f"a{i}", "x")
            h = f"h{i}"
        return graph, h

    def ended(self, count: int, positive: bool) -> dict[str, tuple[Any, ...]]:
        """The graph of the whole program, for a number of rounds, and the way that it takes in the end."""
        graph, h = self.rounds(count)
        return {**graph, "y": ("multiply", h, h) if positive else ("subtract", h, self.factor)}

    def right(self) -> dict[str, tuple[Any, ...]]:
        return self.ended(2, self.positive)


@UNIT.task
class Moved(ValueTask):
    """A graph has one wrong arrow: which, and where should it begin?"""

    name = "moved"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        while True:
            self.values = {"x": float(draw.choice([2, 3, 5])), "w": float(draw.choice([4, 7]))}
            ops = [draw.choice(["add", "subtract"]) for _ in range(3)]
            self.graph: dict[str, tuple[Any, ...]] = {
                "a": ("multiply", "x", "w"), "b": (ops[0], "a", "x"), "c": (ops[1], "b", "w"),
                "d": (ops[2], "a", "c"), "y": ("multiply", "c", "d"),
            }
            self.arrow = draw.choice([each for each in arrows_of(self.graph, "y") if each.target in ("b", "c", "d")])
            self.begins = draw.choice(["x", "w", "a", "b"])
            self.broken = with_arrow(self.graph, self.arrow, self.begins)
            if self._possible(self.begins):
                results = {abs(self.y_of(graph)) for graph in (self.graph, self.broken)}
                if len(results) == 2 and 0 < min(results) and max(results) < 1000:
                    return

    def _possible(self, name: str) -> bool:
        """Whether the chosen arrow can begin at a node by mistake: all nodes must stay in use."""
        broken = with_arrow(self.graph, self.arrow, name)
        used = {each for node in broken.values() for each in node[1:]}
        return name not in (self.arrow.source, self.arrow.target) and used >= {"x", "w", "a", "b", "c", "d"}

    def lines(self) -> str:
        """The program."""
        return "\n".join(f"{name} = {left} {SIGNS[op]} {right}" for name, (op, left, right) in self.graph.items())

    def given(self) -> dict[str, Any]:
        return {"board": mover(self.broken, self.values, "y", self.y_of(self.graph))}

    def y_of(self, graph: Graph) -> float:
        """The value of y in a graph."""
        return evaluated(graph, self.values, "y")["y"]

    def right(self) -> tuple[str, int, str]:
        return self.arrow.target, self.arrow.slot, self.arrow.source

    def line_of(self, graph: Graph) -> str:
        """What the arrow's target is in a graph."""
        op, left, right = graph[self.arrow.target]
        return f"{left} {SIGNS[op]} {right}"

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        parts = tuple([each.strip().lower() if isinstance(each, str) else each for each in parts_of(answer, 3)])
        if not isinstance(parts[0], str) or not isinstance(parts[2], str):
            raise self.misformed(answer, f"like {self.example}")
        target, slot, source = parts
        if target not in self.graph:
            raise Wrong(self.name, f"no arrow ends at {target!r}", "the first part is the box where the arrow ends")
        if isinstance(slot, bool) or slot not in (0, 1):
            raise Wrong(self.name, f"{target} has no input {written(slot)}", "inputs count from 0: the left one is 0")
        if source not in (*self.graph, *self.values):
            raise Wrong(self.name, f"there is no box {source!r}", f"one of {', '.join([*self.values, *self.graph])}")
        if parts == self.right():
            return self.explained()
        raise Wrong(self.name, f"{target} is not wrong there" if target != self.arrow.target else
                    "this move does not repair the graph", self._hint_for(Arrow(source, target, slot)))

    def _hint_for(self, move: Arrow) -> str:
        right = self.arrow
        if (move.target, move.slot, move.source) == (right.target, right.slot, self.begins):
            return "that is where the arrow begins now. Where should it begin?"
        if move.target == right.source and move.source == right.target:
            return "the other way round: first the box where the arrow ends, last the box where it should begin"
        if move.target != right.target:
            op, left, other = self.broken[move.target]
            return f"the program has {move.target} = {left} {SIGNS[op]} {other}, and so has the picture"
        if move.slot != right.slot:
            return f"the other input of {move.target}. The left operand is input 0, and the right one is input 1"
        return f"the right arrow. What does the program have in the line of {move.target}?"
