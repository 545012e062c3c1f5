"""Unit 06: the questions of the notebook."""

from __future__ import annotations

from typing import Any

import minigrad as mg

from ...predicting import Lettered
from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class Again(Lettered, Prediction):
    name, shown, wanted = "again", 4, 2

    def given(self) -> dict[str, Any]:
        return {"lines": self.lines}

    def is_so(self, line: str) -> bool:
        total = eval(line, {"mg": mg, "h": mg.ones(1000, requires_grad=True)}).sum()
        total.backward()
        try:
            total.backward()
        except mg.GradError:
            return False
        return True
