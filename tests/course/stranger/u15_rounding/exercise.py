"""Unit 15: what the student writes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...tasks import FunctionTask
from .about import UNIT


@UNIT.task
class ToSteps(FunctionTask):
    name = "to_steps"

    def vary(self, draw: random.Random) -> None:
        self.step = draw.choice([0.25, 0.125, 0.2, 0.4])

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (np.array([0.93, -1.42, 2.2]),)
        yield (np.array([draw.uniform(-3, 3) for _ in range(4)]),)

    def right(self, x: Any) -> Any:
        return np.round(x / self.step) * self.step
