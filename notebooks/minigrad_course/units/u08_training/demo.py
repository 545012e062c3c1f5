"""Unit 08: the questions of the notebook."""

from __future__ import annotations

import random
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
        "backward(): backward", "loss.backward(): backward",
    ))

    def read(self, answer: Any) -> Any:
        return super().read(self.same.get(str(answer).strip().lower(), answer))


TEXTS = (
    ["71.3", "1_000", "1,5", "nan", "0x1f", " 8 ", ""], ["-3", "1e400", "2.5.1", "infinity", "7 %", " "],
    ["+5", "1e3", "3 4", "-inf", "none", "1.2.3", "nan"],
)
MASKS = "loss 1 is computed with the restored weights, but {} decides what it is computed from: it differs at once."
LATER = "loss 1 is computed before the step, so it is the same. {} belongs to the step: loss 2 differs."
PARTS = {"the place of the loader in its epoch": 1,
         "the momentum of the optimizer": 2, "the state of the random numbers, from which dropout draws": 1}


@UNIT.task
class Refused(Prediction):
    name = "refused"

    def vary(self, draw: random.Random) -> None:
        self.given_texts = draw.choice(TEXTS)

    def right(self) -> int:
        return len(self.refusals())

    def refusals(self) -> list[str]:
        """The texts that it refuses."""
        return [each for each in self.given_texts if not _is_read(each)]

    @property
    def listed(self) -> str:
        return ", ".join(f'`"{each}"`' for each in self.given_texts)

    @property
    def refused(self) -> str:
        return ", ".join(f'"{each}"' for each in self.refusals())

    def given(self) -> dict[str, Any]:
        return {"texts": self.given_texts}


def _is_read(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@UNIT.task
class FirstDifference(Prediction):
    name = "first_difference"

    def vary(self, draw: random.Random) -> None:
        self.part = draw.choice(list(PARTS))

    def right(self) -> int:
        return PARTS[self.part]

    @property
    def because(self) -> str:
        part = self.part.partition(",")[0]
        return MASKS.format(part) if self.right() == 1 else LATER.format(part[0].upper() + part[1:])

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        number = str(answer).lower().removeprefix("loss").strip()  # "loss 2" is an answer too
        return super().check(int(number) if number.isdecimal() else answer, rounds)
