"""Unit 11: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...tasks import Prediction
from ...views.descents import descent
from .about import UNIT


@UNIT.kind
class Guess(Prediction):
    """A prediction; `also` holds other ways to write an answer."""

    also: ClassVar[dict[str, Any]] = {}

    def read(self, answer: Any) -> Any:
        text = " ".join(answer.lower().replace("−", "-").split()) if isinstance(answer, str) else answer
        return self.also.get(str(text), text)


@UNIT.task
class SoftmaxPasses(Guess):
    name = "softmax_passes"

    def given(self) -> dict[str, Any]:
        return {"descent": descent}
