"""Unit 12: parts of a graph on a faster device: a placement that beats the compiler's, and a program that runs it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from minigrad.compile.jitted import trace
from minigrad.compile.look.placement import Link, System, placed, predicted
from minigrad.compile.look.roofline import Machine
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.program import Program as Compiled
from minigrad.core.emit import emit
from minigrad.core.node import Node
from minigrad.core.primitive import P
from minigrad.ops import elementwise
from minigrad.ops.creation import asarray, ones
from minigrad.ops.transfer import offload
from minigrad.support.errors import MinigradError
from minigrad.support.table import counted, time_text
from minigrad.viz.drawing import Drawing
from minigrad.viz.predictions import placed_band
from minigrad.viz.timelines import Timeline, timeline

from ...compare import Difference, difference
from ...feedback import Wrong, written
from ...forms import names_in
from ...tasks import ROUNDS, FunctionTask, ValueTask
from ...views.costs import pairs
from .about import UNIT
from .gantts import WIDTH

HERE, THERE = "cpu", "cpu:1"
# A chip that is far quicker than the processor, at the end of a slow link: 2 GB a second.
CHIP = System({HERE: Machine(1e10, 1e11, 1e-6), THERE: Machine(1e12, 1e13, 5e-6)}, Link(2e9, 1e-5))
SIDE, THIN, SMALL = 1000, 8, 64  # of the tables, and of those that are really computed
ENOUGH = 0.7  # of the time that the compiler's search finds
FUNCTIONS = ("tanh", "exp", "sin", "cos")


def example() -> Graph:
    """The example of the notebook: two thin tables make a large one, and of it one row is left."""
    return trace(lambda u, v: elementwise.tanh(u @ v).sum(0), ones((SIDE, THIN)), ones((THIN, SIDE)))


def gains() -> dict[str, int]:
    """What moving each operation of the example alone to the chip gains, in microseconds."""
    parts = example().offloading(THERE, CHIP).parts
    return {part.name: round(part.gain * 1e6) for part in parts if part.name != "everything"}


def compared() -> Timeline:
    """The time of the example here and on the chip, and the lanes of three placements."""
    graph = example()
    times = [1e3 * predicted(graph, placement, CHIP).seconds for placement in ({}, dict.fromkeys(graph.nodes, THERE))]
    view = timeline(graph, devices=THERE, system=CHIP)
    return in_front("in ms: here, and all three on the chip", times[0], times[1], view, ("here", "on the chip"))


def in_front(heading: str, before: float, after: float, view: Timeline, words: tuple[str, str]) -> Timeline:
    """A view whose first sentence has two numbers: a stored notebook shows these as bars, the same on every machine."""
    drawing = Drawing(WIDTH, 80)
    pairs(drawing, 0, WIDTH, [(heading, before, after, "")], words)
    said = f"{heading}: {before:.3g} and {after:.3g}"
    return Stored(said, view.bands, f"{said}. {view.says}", view.unit, view.workers, drawing)


@dataclass(repr=False)
class Stored(Timeline):
    """A timeline of which a stored notebook shows another picture."""

    drawing: Drawing = field(default_factory=lambda: Drawing(0, 0))

    def to_svg(self) -> str:
        return self.drawing.to_svg(self.said())

    def in_words(self) -> str:
        return self.said()


def run_placed(graph: Graph, placement: Mapping[Node, str]) -> Callable[..., Any]:
    """The function that a graph computes, with the nodes of a placement on their devices."""

    def run(*inputs: Any) -> Any:
        values: dict[Any, Any] = dict(zip(graph.inputs, inputs))
        for node in graph.nodes:
            with offload(placement.get(node, HERE)):
                given = [values.get(each, each) if isinstance(each, Node) else each for each in node.inputs]
                values[node] = emit(node.op, *given, **node.attrs)  # type: ignore[arg-type]
        return values[graph.outputs[0]]

    return run


def transfers_of(function: Callable[..., Any], *args: Any) -> tuple[int, list[str]]:
    """How many transfers the program of a function contains, and what it computes on the other device."""
    nodes = Compiled(trace(function, *args), backend="numpy").final.nodes
    there = [node.name for node in nodes if str(node.device) == THERE and node.op not in (None, P.to_device)
             and node.op.kind != "view"]
    return sum(node.op is P.to_device for node in nodes), there


class Program:
    """`y = f(x).sum(0) + g(u @ v).sum(0)`: a large table that is here, and a large one that two thin ones make."""

    def __init__(self, f: str, g: str) -> None:
        self.f, self.g = f, g
        self.code = f"mg.{f}(x).sum(0) + mg.{g}(u @ v).sum(0)"
        self.functions = [getattr(elementwise, name) for name in (f, g)]

    def __call__(self, x: Any, u: Any, v: Any) -> Any:
        f, g = self.functions
        return f(x).sum(0) + g(u @ v).sum(0)

    @cached_property
    def graph(self) -> Graph:
        """Its graph for tables of a million numbers."""
        return trace(self, ones((SIDE, SIDE)), ones((SIDE, THIN)), ones((THIN, SIDE)))

    @property
    def small(self) -> list[Any]:
        """Inputs to run it with."""
        draw = np.random.default_rng(0)
        return [asarray(draw.random(shape).astype("f")) for shape in ((SMALL, SMALL), (SMALL, THIN), (THIN, SMALL))]


class Offloaded:
    """What the two tasks share: the student's program."""

    program: Program

    def vary(self, draw: random.Random) -> None:
        """Two functions."""
        self.program = Program(*draw.sample(FUNCTIONS, 2))


@UNIT.task
class MyPlacement(Offloaded, ValueTask):
    """A placement that is faster in the model than the one that the compiler finds."""

    name, mistakes = "my_placement", ()

    @cached_property
    def names(self) -> dict[str, Node]:
        """The operations by their names."""
        graph = self.program.graph
        return {name: node for node, name in graph.names().items() if node in graph.nodes}

    @cached_property
    def times(self) -> tuple[float, float]:
        """The seconds of the graph as it is, and as the compiler places it."""
        found = placed(self.program.graph, HERE, THERE, system=CHIP)
        return self.takes([]), predicted(self.program.graph, found, CHIP).seconds

    def takes(self, there: Iterable[str]) -> float:
        """How long the graph takes with these operations on the chip."""
        return predicted(self.program.graph, self.placement(there), CHIP).seconds

    def placement(self, there: Iterable[str]) -> dict[Node, str]:
        """Operations on the chip, by their names, as a placement."""
        return dict.fromkeys([self.names[name] for name in there], THERE)

    def text(self) -> str:
        here, search = map(time_text, self.times)
        goal = time_text(ENOUGH * self.times[1])
        return (
            f"The program is `y = {self.program.code}`. x is a table of {SIDE} × {SIDE} numbers, 4 MB. u is {SIDE} × "
            f"{THIN}, v is {THIN} × {SIDE}: thin. A chip, `cpu:1`, is a hundred times as fast as the processor, at the "
            f"end of a link of 2 GB a second, so 4 MB take 2 ms.\n\nEverything here takes {here}. The compiler finds "
            f"{search}. **Write the names of the operations that should run on the chip, so that the whole takes "
            f"at most {goal}.** The view shows the three placements that the compiler tries. "
            "`task.show([...])` adds yours."
        )

    def given(self) -> dict[str, Any]:
        return {"show": self.show}

    def show(self, answer: Any = None) -> Timeline:
        """The lanes of the compiler's placements, and of the student's."""
        view = timeline(self.program.graph, devices=THERE, system=CHIP)
        if answer is not None and answer is not ...:
            now, yours = (predicted(self.program.graph, p, CHIP) for p in ({}, self.placement(self.read(answer))))
            view.bands.append(placed_band("yours", yours, now))
        return view

    def right(self) -> list[str]:
        return [name for name in self.names if name in ("matmul_1", f"{self.program.g}_1", "sum_2")]

    def read(self, answer: Any) -> list[str]:
        names = names_in(answer)
        if names is None:
            raise Wrong(self.name, f"your answer {written(answer)} is not a list of names", f"like {self.example}")
        for name in names:
            if name not in self.names:
                raise Wrong(self.name, f"{written(name)} is not an operation", f"the names are {', '.join(self.names)}")
        return [name for name in self.names if name in names]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        there = self.read(answer)
        takes, (_, search) = self.takes(there), self.times
        moves = counted(len(predicted(self.program.graph, self.placement(there), CHIP).transfers), "transfer")
        if takes > search * ENOUGH:
            goal = time_text(search * ENOUGH)
            what = f"the whole takes {time_text(takes)} with {moves}: more than {goal}, which is possible"
            raise Wrong(self.name, what, self._hint(there))
        count, _ = transfers_of(run_placed(self.program.graph, self.placement(there)), *self.program.small)
        return (f"{time_text(takes)} with {moves} in the model, {time_text(search)} by the compiler. Run on cpu:1, "
                f"your program has {counted(count, 'transfer')}.")

    def _hint(self, there: Sequence[str]) -> str:
        chip, mine = {*there}, {*self.right()}
        large = f"{self.program.f}_1"
        if not chip:
            return "with nothing on the chip nothing gains. Which operations have small inputs and a small result?"
        if chip >= {*self.names} - {"add_1"}:
            return "everything is on the chip, so x must go there: 4 MB, 2 ms. What only reads x may stay here"
        if large in chip or "sum_1" in chip:
            return f"if {large} or sum_1 is on the chip, a table of 4 MB must go there. Both may stay here, with x"
        if chip & mine:
            return "a large table crosses the link: u @ v makes 4 MB. What reads it goes along"
        return "only small tables should cross the link. Which operations read u and v, and what comes from them?"

    def solution(self) -> Any:
        return self.right()


@UNIT.task
class Offload(Offloaded, FunctionTask):
    """`offloaded(x, u, v)`: the same program, with a part of it on cpu:1, and three transfers."""

    name = "offloaded"
    most: ClassVar = 3

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield tuple(self.program.small)

    def right(self, x: Any, u: Any, v: Any) -> Any:
        f, g = self.program.functions
        with offload(THERE):
            part = g(u @ v).sum(0)
        return f(x).sum(0) + part

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(yours, self.program(*args))

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        try:
            count, there = transfers_of(answer, *self.program.small)
        except MinigradError as error:
            what = str(error).partition("\n")[0]
            raise Wrong(self.name, f"it cannot be compiled: {what}", "use operations of mg, not NumPy") from None
        wanted = sorted(["matmul", self.program.g, "sum"])
        where = f"cpu:1 computes {', '.join(there) or 'nothing'}, with {counted(count, 'transfer')}"
        if sorted(there) != wanted:
            raise Wrong(self.name, f"the numbers are right, but {where}", self._place(there))
        if count > self.most:
            raise Wrong(self.name, where, "one block for all three, so that what is between them stays there")
        return f"{where}: u, v, and the row that comes back."

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        if found[0][1] is None:
            return "a function gives back only the value after `return`: to print or to assign is not enough"
        return super()._hint(found)

    def _place(self, there: list[str]) -> str | None:
        for known in self.mistakes:
            if transfers_of(self.wrong(known), *self.program.small)[1] == there:
                return known.hint
        return self.otherwise
