"""Unit 08: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...predicting import Choice
from ...tasks import ROUNDS, Prediction, Question
from .about import UNIT


@UNIT.task
class Phase(Choice, Question):
    name = "phase"
    same: ClassVar[dict[str, str]] = dict(pair.split(": ") for pair in (  # words of the text and of the code
        "take a batch: batch", "compute the loss: forward", "loss: forward", "compute the gradients: backward",
        "gradients: backward", "update the weights: update", "optimizer.step(): update", "step: update",
    ))

    def read(self, answer: Any) -> Any:
        return super().read(self.same.get(str(answer).strip().lower(), answer))


@UNIT.task
class FirstDifference(Prediction):
    name = "first_difference"

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        number = str(answer).lower().removeprefix("loss").strip()  # "loss 2" is an answer too
        return super().check(int(number) if number.isdecimal() else answer, rounds)
