"""Unit 14: the questions of the notebook."""

from __future__ import annotations

from functools import cache
from typing import Any

from minigrad.core.primitive import P  # noqa: F401  (in the texts)

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
    name = "primitives_needed"

    def right(self) -> int:
        return len(needed())

    def given(self) -> dict[str, Any]:
        return {
            "steps": taken_steps, "uses": needed,
            "picture": lambda: constellations({name: each.graph for name, each in taken_steps().items()}),
        }


@UNIT.task
class PrimitivesShared(Prediction):
    name = "primitives_shared"

    def right(self) -> int:
        return len(shared(needed()))

    def explained(self) -> str:
        return ", ".join(shared(needed())) + "."


@UNIT.task
class LineLaunches(Prediction):
    name = "line_launches"

    def given(self) -> dict[str, Any]:
        return {"journey": journey}


@cache
def trained_pole() -> Run:
    """The policy, trained with the right loss."""
    return Run(PoleLoss().application(PoleLoss().right))


@UNIT.task
class PolicyCurve(Choice, Prediction):
    name = "policy_curve"

    def given(self) -> dict[str, Any]:
        return {"train": trained_pole}
