"""Unit 14: a training of one of the four programs: its score, its picture, and what a step of it takes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from minigrad.compile.jitted import trace
from minigrad.compile.look.cost import Cost
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.program import Program
from minigrad.support.errors import MinigradError
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ...session import SESSION
from .programs import Application

WIDE, CHART, LOWER = 690.0, 150.0, 235.0


class Taken(NamedTuple):
    """What a training step takes: the recorded graph, its launches one by one, and those of the fused program."""

    graph: Graph
    launches: int
    fused: int

    @property
    def nodes(self) -> int:
        """The nodes of the graph that a primitive computes."""
        return sum(node.op is not None for node in self.graph.nodes)


def taken(like: Application) -> Taken | None:
    """What a step of a program takes, before it is trained; None if the step cannot be recorded."""
    program = like.again()
    batch = program.batch()
    try:
        graph = trace(lambda: program.step(*batch))
    except MinigradError:
        return None
    cost = Cost(Program(graph, backend="numpy"))
    return Taken(graph, cost.eager.launches, cost.program.launches)


class Run:
    """A training, as a notebook shows it.  The last one of each program is kept for the report."""

    def __init__(self, program: Application) -> None:
        self.author, self.program = SESSION.author, program
        self.losses: list[float] = []
        with np.errstate(all="ignore"):  # with a wrong piece the numbers may overflow
            self.before = program.look()
            for _ in range(program.steps):
                batch = program.batch()
                self.losses.append(program.loss_of(program.step(*batch), batch))
            self.score, self.after = program.score(), program.look()
        LAST[program.name] = self

    @property
    def passed(self) -> bool:
        """Whether the score reaches the floor; nan does not."""
        return self.score <= self.program.floor if self.program.less_is_better else self.score >= self.program.floor

    @property
    def scored(self) -> str:
        """The score in words."""
        return f"{self.score:.{self.program.decimals}f} {self.program.says}"

    def __repr__(self) -> str:
        sign = "reached" if self.passed else "not reached"
        return f"{self.author}, {self.program.name}: {self.scored}, floor {self.program.floor:g} {sign}"

    @cached_property
    def taken(self) -> Taken | None:
        """What a step takes; None if the step cannot be recorded."""
        return taken(self.program)

    @cached_property
    def picture(self) -> Flipbook:
        """The loss of each step; below it, what the program does before and after."""
        drawing = Drawing(WIDE, CHART + LOWER)
        stood = getattr(self.program, "stood", None)
        charts = {"loss of each step": self.losses} | ({"steps upright, in training": stood} if stood else {})
        for i, (title, values) in enumerate(charts.items()):
            points = {title: [(float(step), value) for step, value in enumerate(values, 1)]}
            curves(drawing, (i * WIDE / 2, 0, WIDE / len(charts) - 10, CHART), points, title)
        self.program.show(drawing, CHART + 20, self.before, self.after)
        words = f"loss {self.losses[0]:.3g} → {self.losses[-1]:.3g}, in {len(self.losses)} steps"
        return Flipbook(repr(self), [[Page(drawing, f"{self!r}.")]], words=words)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


LAST: dict[str, Run | None] = dict.fromkeys(each.name for each in Application.__subclasses__())
