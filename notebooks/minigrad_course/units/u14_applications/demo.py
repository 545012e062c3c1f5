"""Unit 14: the questions of the notebook."""

from __future__ import annotations

from functools import cache
from typing import Any

from minigrad.core.primitive import P

from ...predicting import Choice
from ...tasks import Prediction
from .about import UNIT
from .constellations import constellations, shared, uses
from .journeys import journey
from .pieces import PIECES, PoleLoss
from .runs import Run, Taken, taken


@cache
def taken_steps() -> dict[str, Taken]:
    """What a training step of each of the four programs takes, with the pieces that are right."""
    found = {each.program.name: taken(each("").application(each("").right)) for each in PIECES}
    return {name: each for name, each in found.items() if each is not None}


def needed() -> dict[str, list[int]]:
    """The primitives that the four steps compute."""
    return uses({name: each.graph for name, each in taken_steps().items()})


@UNIT.task
class PrimitivesNeeded(Prediction):
    """How many of the library's 84 primitives do the training steps of all four programs need together?"""

    name, outcome, example = "primitives_needed", "shared", "60"
    otherwise = "no sorting or inverses. Matrix products, sums, exp, a lookup, views: which others come to your mind?"

    def right(self) -> int:
        return len(needed())

    def explained(self) -> str:
        return f"of {len(P)}. Forward passes, backward passes and updates are made of them."

    def given(self) -> dict[str, Any]:
        return {
            "steps": taken_steps, "uses": needed,
            "picture": lambda: constellations({name: each.graph for name, each in taken_steps().items()}),
        }


@UNIT.task
class PrimitivesShared(Prediction):
    """How many of them are in the training steps of all four programs?"""

    name, outcome, example = "primitives_shared", "shared", "5"
    otherwise = "all four multiply matrices, add, sum, take views, choose by a condition, and update by Adam"

    def right(self) -> int:
        return len(shared(needed()))

    def explained(self) -> str:
        return ", ".join(shared(needed())) + "."


@UNIT.task
class LineNodes(Prediction):
    """How many operations does the line mg.tanh(x @ w) * 2 record?"""

    name, outcome, example, right_value = "line_nodes", "line", "5", 3
    why = "a matrix product, a tanh, a product with 2. x and w are leaves, and 2 is a plain number."
    otherwise = "one for each operation: @, tanh, *"
    wrong_values = (
        (1, "one line, but each operation in it is a node of its own"),
        (2, "@, tanh and *: which one did you leave out?"),
        (5, "x and w are leaves, not operations"),
        (4, "the number 2 is not a node: it is stored with the product"),
    )


@UNIT.task
class LineRules(Prediction):
    """x and w both require a gradient. How many gradient rules run when the line's result passes back?"""

    name, outcome, example, right_value = "line_rules", "line", "3", 4
    why = "one for the product with 2, one for tanh, and two for the matrix product: x and w have a rule each."
    otherwise = "a rule for each input that needs a gradient. Which operation has two such inputs?"
    wrong_values = (
        (3, "one for each operation. But the matrix product has two inputs that need a gradient"),
        (2, "x and w get a gradient each. But the rules of * and tanh run before"),
        (5, "the number 2 needs no gradient, so its rule does not run"),
        (6, "the number 2 needs no gradient, and tanh has one input"),
    )


@UNIT.task
class LineLaunches(Prediction):
    """The line is compiled. How many launches does a call take?"""

    name, outcome, example, right_value = "line_launches", "line", "3", 2
    why = "one call of the library for the matrix product, one fused loop for tanh and the product."
    otherwise = "what is a library call, and what can be one loop?"
    wrong_values = (
        (1, "the matrix product is a call of a library. A loop of the compiler cannot join it"),
        (3, "that is node by node. tanh and the product go over the same numbers"),
    )

    def given(self) -> dict[str, Any]:
        return {"journey": journey}


@cache
def trained_pole() -> Run:
    """The policy, trained with the right loss."""
    return Run(PoleLoss().application(PoleLoss().right))


@UNIT.task
class PolicyCurve(Choice, Prediction):
    """A policy learns to keep a pole upright. What does its loss do meanwhile: "falls", "rises" or "neither"?"""

    name, outcome, right_value = "policy_curve", "policy", "neither"
    why = "each round has new episodes and a new baseline. The loss carries a gradient; its value measures nothing."
    options = {
        "falls": "so it would be with a fixed data set. Here each round brings new episodes, and a new baseline",
        "rises": "it has no direction: each round brings new episodes, and a new baseline",
        "neither": "",
    }

    def given(self) -> dict[str, Any]:
        return {"train": trained_pole}
