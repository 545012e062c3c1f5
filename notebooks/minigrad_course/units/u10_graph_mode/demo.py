"""Unit 10: the questions of the notebook."""

from __future__ import annotations

import math
import random
from typing import Any

from ...answers import in_numbers
from ...forms import names_in
from ...tasks import ROUNDS, Prediction
from .about import UNIT

SYNONYMS = {"correct": "right", "ok": "right", "incorrect": "wrong", "crash": "error", "fails": "error"}
SHORT = ([0.24, 0.07], 0.25), ([0.07, 0.24], 0.25), ([0.14, 0.48], 0.5), ([0.48, 0.14], 0.5)  # and their lengths


@UNIT.task
class ClipNodes(Prediction):
    """How many nodes each line of `clip` puts in; names of operations and words for none are counted."""

    name = "clip_nodes"
    signs = (
        "line 2 has a product, a sum and a root",
        "line 3 compares, and Python chooses a line by the answer: is that in g?",
        "line 4 divides, and then multiplies", "line 5 only returns g: `return` is a word of Python",
    )

    def read(self, answer: Any) -> Any:
        parts = in_numbers(answer, self.right())
        return [len(each) if isinstance(each, list) else each for each in parts] if isinstance(parts, list) else parts

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given, right = self.read(answer), self.right()
        if isinstance(given, list) and len(given) == len(right):
            self.otherwise = next((sign for *pair, sign in zip(given, right, self.signs) if pair[0] != pair[1]), "")
        return super().check(answer, rounds)


@UNIT.task
class ThreeWays(Prediction):
    name = "three_ways"

    def read(self, answer: Any) -> Any:
        names = names_in([*answer.values()] if isinstance(answer, dict) else answer) or []
        return [SYNONYMS.get(name.lower(), name.lower()) for name in names]


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
