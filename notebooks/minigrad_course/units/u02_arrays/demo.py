"""Unit 02: the questions of the notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg

from ...predicting import Choice, Lettered
from ...tasks import Prediction, Question
from .about import UNIT


@UNIT.kind
class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()


@UNIT.task
class LoopTimes(Choice, Prediction):
    name = "loop_times"

    def read(self, answer: Any) -> Any:
        return super().read(str(answer).replace(",", "").replace(".0", ""))


@UNIT.task
class TurnedStrides(Question):
    name = "turned_strides"
    mistakes = ()


@UNIT.task
class Copies(Lettered, Prediction):
    name, shown, wanted = "copies", 5, 2

    def given(self) -> dict[str, Any]:
        return {"program": "\n".join(f"{letter} = {line}" for letter, line in self.lines.items())}

    def is_so(self, line: str) -> bool:
        a = mg.arange(12).reshape(3, 4)
        return not np.shares_memory(a.numpy(), eval(line, {"a": a}).numpy())
