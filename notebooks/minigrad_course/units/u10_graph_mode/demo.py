"""Unit 10: the questions of the notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...forms import names_in
from ...tasks import ROUNDS, Prediction
from .about import UNIT


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
        parts = answer.values() if isinstance(answer, dict) else answer
        parts = parts.replace(",", " ").split() if isinstance(parts, str) else parts
        if not isinstance(parts, Iterable) or len(counts := [_count(each) for each in parts]) != len(self.signs):
            return answer
        return counts

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given, right = self.read(answer), self.right()
        if isinstance(given, list) and len(given) == len(right):
            self.otherwise = next((sign for *pair, sign in zip(given, right, self.signs) if pair[0] != pair[1]), "")
        return super().check(answer, rounds)


def _count(part: Any) -> Any:
    if isinstance(part, str):
        return int(part) if part.strip().isdigit() else 0 if part.strip().lower() in ("none", "no", "") else part
    return len(part) if isinstance(part, list | tuple) else part


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
