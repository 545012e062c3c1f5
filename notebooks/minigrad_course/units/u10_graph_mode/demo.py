"""Unit 10: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...forms import names_in
from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class ThreeWays(Prediction):
    name = "three_ways"

    def read(self, answer: Any) -> Any:
        names = names_in(answer)
        return answer if names is None else [name.lower() for name in names]


@UNIT.task
class Divisions(Prediction):
    name = "divisions"
    right_value = 4, 1
