"""Unit 07: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction
from .about import UNIT
from .tangents import moving


@UNIT.task
class SpotPasses(Prediction):
    name = "spot_passes"

    def given(self) -> dict[str, Any]:
        return {**super().given(), "moving": moving}
