"""Unit 14: the questions of the notebook."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import minigrad as mg
from minigrad.core.mode import record
from minigrad.core.node import Node, topological_order
from minigrad.core.primitive import P

from ...expressions import value
from ...predicting import Choice
from ...tasks import Prediction, digest
from .about import UNIT
from .constellations import constellations, shared, uses
from .fifth import FIFTH
from .journeys import journey
from .pieces import PIECES, PoleLoss
from .runs import Run, Taken, taken

Lines = dict[str, Callable[..., Any]]
LINES = ("mg.exp(x @ w) + b", "mg.sin(x @ w) * b - x.sum()", "mg.tanh((x * b.sum()) @ w) * 2", "mg.sqrt(x @ w) / b * 2")


@cache
def taken_steps() -> dict[str, Taken]:
    """What a training step of each of the four programs takes, with the pieces that are right."""
    found = {each.program.name: taken(each("").application(each("").right)) for each in PIECES}
    return {name: each for name, each in found.items() if each is not None}


def needed() -> dict[str, list[int]]:
    """The primitives that the four steps compute."""
    return uses({name: each.graph for name, each in taken_steps().items()})


@UNIT.task
class MostPrimitives(Choice, Prediction):
    name = "most_primitives"

    def explained(self) -> str:
        found = needed()
        return f"{len(found)} of {len(P)} are needed together, {len(shared(found))} by all four."

    def given(self) -> dict[str, Any]:
        return {
            "steps": taken_steps, "uses": needed,
            "picture": lambda: constellations({name: each.graph for name, each in taken_steps().items()}),
        }


@UNIT.task
class FifthProgram(Choice, Prediction):
    """Another program: how many primitives does it need that the four do not?"""

    name = "fifth_program"

    def vary(self, draw: random.Random) -> None:
        self.fifth = draw.choice(list(FIFTH))

    def new(self) -> list[str]:
        """The primitives of this student's program that the four do not need."""
        return sorted({*uses({"": FIFTH[self.fifth]()})} - {*needed()})

    def given(self) -> dict[str, Any]:
        return {"new": self.new}


class LineTask(Prediction):
    """A question about this student's line: the same line in all questions."""

    def vary(self, draw: random.Random) -> None:
        self.code = random.Random(digest("line", self.student)).choice(LINES)

    def line(self, x: Any, w: Any, b: Any) -> Any:
        return value(self.code, None, {"x": x, "w": w, "b": b})

    def nodes(self) -> list[Node]:
        """The operations that the line records."""
        leaves = [mg.ones(shape, requires_grad=True) for shape in ((4, 3), (3, 8), (8,))]
        with record():
            result: Any = self.line(*leaves)
        return [node for node in topological_order([result.node]) if node.op is not None]

    def given(self) -> dict[str, Any]:
        args = mg.ones((4, 3)), mg.ones((3, 8)), mg.ones(8)
        return {"line": self.line, "journey": lambda of: journey(self.line, *args, of=of)}


@UNIT.task
class LineNodes(LineTask):
    name = "line_nodes"

    def right(self) -> int:
        return len(self.nodes())

    def leaves(self) -> int:
        """The inputs, each counted once."""
        return 3


@UNIT.task
class LineRules(LineTask):
    name = "line_rules"

    def right(self) -> int:
        return sum(isinstance(each, Node) for node in self.nodes() for each in node.inputs)


@UNIT.task
class LineLaunches(LineTask):
    name = "line_launches"

    def right(self) -> int:
        args = mg.ones((4, 3)), mg.ones((3, 8)), mg.ones(8)
        return mg.jit(self.line).cost(*args).program.launches


@cache
def trained_pole() -> Run:
    """The policy, trained with the right loss."""
    return Run(PoleLoss().application(PoleLoss().right))


@UNIT.task
class PolicyCurve(Choice, Prediction):
    name = "policy_curve"

    def given(self) -> dict[str, Any]:
        return {"train": trained_pole}
