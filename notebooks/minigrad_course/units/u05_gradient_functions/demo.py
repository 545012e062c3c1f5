"""Unit 05: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class ByShapes(Prediction):
    name = "by_shapes"

    def read(self, answer: Any) -> Any:
        return " @ ".join(answer.replace(" ", "").split("@")) if isinstance(answer, str) else answer
