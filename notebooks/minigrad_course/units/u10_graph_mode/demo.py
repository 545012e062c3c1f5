"""Unit 10: the questions of the notebook."""

from __future__ import annotations

import math
import random
from typing import Any

from ...forms import names_in
from ...tasks import Prediction
from .about import UNIT

SHORT = ([0.24, 0.07], 0.25), ([0.07, 0.24], 0.25), ([0.14, 0.48], 0.5), ([0.48, 0.14], 0.5)  # and their lengths


@UNIT.task
class ThreeWays(Prediction):
    name = "three_ways"

    def read(self, answer: Any) -> Any:
        names = names_in(answer)
        return answer if names is None else [name.lower() for name in names]


@UNIT.task
class SmallGradient(Prediction):
    name = "small_gradient"

    def vary(self, draw: random.Random) -> None:
        self.short, self.size = draw.choice(SHORT)

    def right(self) -> list[float]:
        return [round(each / self.size, 6) for each in self.short]

    def given(self) -> dict[str, Any]:
        return {"short": self.short}


@UNIT.task
class Divisions(Prediction):
    name = "divisions"

    def vary(self, draw: random.Random) -> None:
        self.start = draw.choice([3, 20, 50, 100])

    def turns(self) -> int:
        """The turns of the loop for the example."""
        return math.ceil(math.log2(self.start))

    def right(self) -> tuple[int, int]:
        return self.turns(), 1

    def given(self) -> dict[str, Any]:
        return {"start": self.start}
