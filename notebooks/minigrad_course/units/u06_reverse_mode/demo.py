"""Unit 06: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class Again(Prediction):
    name = "again"

    def read(self, answer: Any) -> Any:
        if isinstance(answer, str):
            answer = [answer]
        names = answer if isinstance(answer, list | tuple | set) else []
        return sorted(str(each).strip().lower() for each in names)
