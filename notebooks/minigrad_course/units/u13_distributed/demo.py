"""Unit 13: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...predicting import Choice
from ...tasks import Prediction, Question
from .about import UNIT
from .chunks import act_out
from .training import WAYS, compared, scaled


@UNIT.task
class ReadTogether(Prediction):
    name = "read_together"


@UNIT.task
class MoreSent(Prediction):
    name = "more_sent"


@UNIT.task
class SecondRound(Question):
    name = "second_round"
    hints: ClassVar = {
        "turned": "the chunks of workers 0, 1 and 2, in this order",
        **dict.fromkeys(("first_only", "last_only"), "three numbers: the chunks of workers 0, 1 and 2"),
        "without_the_last": "worker 2 sends a chunk too: three numbers",
        **dict.fromkeys(
            ("all_like_the_first", "all_like_the_last"),
            "all workers send the same chunk then: only that one is completed"),
        "differences": "the numbers of the chunks: 0, 1 or 2",
    }

    def read(self, answer: Any) -> Any:
        return list(answer) if isinstance(answer, tuple) else answer

    def given(self) -> dict[str, Any]:
        return {"act_out": act_out}


@UNIT.task
class Rounds(Prediction):
    name = "rounds"


@UNIT.task
class SameCurve(Prediction):
    name, any_order = "same_curve", True

    def read(self, answer: Any) -> Any:
        given = [answer] if isinstance(answer, str) else answer
        if not isinstance(given, list | tuple | set):
            return answer
        return sorted(str(each).strip().lower() for each in given)

    def given(self) -> dict[str, Any]:
        return {"ways": list(WAYS), "compared": compared}


@UNIT.task
class OverlappedStep(Prediction):
    name = "overlapped_step"


@UNIT.task
class BestBucket(Choice, Prediction):
    name = "best_bucket"

    def given(self) -> dict[str, Any]:
        return {"scaled": scaled}


@UNIT.task
class OneSlow(Prediction):
    name = "one_slow"


@UNIT.task
class ShardedGb(Prediction):
    name = "sharded_gb"
