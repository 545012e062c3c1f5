"""Unit 07: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question
from .about import UNIT
from .tangents import moving


@UNIT.task
class WeightPasses(Prediction):
    name = "weight_passes"


@UNIT.task
class SpotPasses(Prediction):
    name = "spot_passes"
    right_value = (1, 576)

    def given(self) -> dict[str, Any]:
        return {"moving": moving}


@UNIT.task
class Slider(Question):
    name = "slider"
