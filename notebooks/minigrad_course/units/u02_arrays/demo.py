"""Unit 02: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...forms import names_in
from ...predicting import Choice
from ...tasks import Prediction, Question
from .about import UNIT
from .crossings import SIDE


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
class LibraryCalls(Guess):
    name = "library_calls"
    right_value = SIDE**2


@UNIT.task
class TurnedStrides(Question):
    name = "turned_strides"
    mistakes = ()


@UNIT.task
class Copies(Guess):
    name = "copies"

    def read(self, answer: Any) -> Any:
        names = names_in(answer)
        return answer if names is None else sorted("".join(names).upper())  # "ABC" is an answer too
