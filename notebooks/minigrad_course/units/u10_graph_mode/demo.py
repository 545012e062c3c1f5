"""Unit 10: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class ThreeWays(Prediction):
    name = "three_ways"

    def read(self, answer: Any) -> Any:
        several = answer.replace(",", " ").split() if isinstance(answer, str) else answer
        return [str(each).strip().lower() for each in several] if isinstance(several, list | tuple) else answer


@UNIT.task
class Divisions(Prediction):
    name = "divisions"
    right_value = 4, 1
