"""Unit 12: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from minigrad.viz.timelines import Timeline, timeline

from ...predicting import Choice
from ...tasks import Prediction
from ...views.costs import passes
from .about import UNIT
from .gantts import Jobs, gantt
from .jobs import GRAHAM, taken
from .placing import compared, gains, in_front

DIAMOND = Jobs({"a": 2, "b": 3, "c": 5, "d": 4, "e": 2, "f": 4},
               {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["b", "c"], "f": ["d"]})


def starts(step: Any, *batch: Any) -> Timeline:
    """What Python starts in a call of a jitted function, in eager mode and as a program; and the times of both."""
    step.function(*batch)  # the first call makes more: the optimizer's arrays
    step(*batch)
    (frame, *_) = step.program(*batch)._idle
    counts = len(passes(step.function, *batch)), len(frame.early) + len(frame.steps)
    return in_front("started by Python in one step: eagerly, and as a program", *counts, timeline(step, *batch),
                    ("eager mode", "program"))


@UNIT.task
class FourthWorker(Prediction):
    name = "fourth_worker"

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(GRAHAM, {n: taken(*GRAHAM, n, "ABCDEFGHI") for n in range(1, 7)})}


@UNIT.task
class ProgramStarts(Prediction):
    name = "program_starts"

    def given(self) -> dict[str, Any]:
        return {"starts": starts}


@UNIT.task
class ThousandWorkers(Prediction):
    name = "thousand_workers"

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(DIAMOND, {n: taken(*DIAMOND, n, "acbdef") for n in range(1, 5)})}


@UNIT.task
class Together(Choice, Prediction):
    name = "together"

    def given(self) -> dict[str, Any]:
        return {"gains": gains, "picture": compared}
