"""Unit 08: the scale of the first weights."""

from __future__ import annotations

import math
import random

from ...tasks import ValueTask
from .about import UNIT


@UNIT.task
class Scale(ValueTask):
    """Which spread of the weights keeps the spread of the activations, with relu?"""

    name = "scale"

    def vary(self, draw: random.Random) -> None:
        self.inputs = draw.choice([128, 200, 288, 392, 512])

    def right(self) -> float:
        return math.sqrt(2 / self.inputs)
