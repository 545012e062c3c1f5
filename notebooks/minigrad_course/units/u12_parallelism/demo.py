"""Unit 12: the questions of the notebook."""

from __future__ import annotations

import random
from typing import Any

from minigrad.viz.timelines import Timeline, timeline

from ...tasks import Prediction
from ...views.costs import passes
from .about import UNIT
from .gantts import Jobs, gantt
from .jobs import GRAHAM, chains, taken
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


ANOMALIES = {  # what changes, and the jobs then
    "every job becomes one minute shorter": Jobs({job: cost - 1 for job, cost in GRAHAM.costs.items()}, GRAHAM.after),
    "E and F no longer wait for D": Jobs(GRAHAM.costs, {**GRAHAM.after, "E": [], "F": []}),
    "G and H no longer wait for D": Jobs(GRAHAM.costs, {**GRAHAM.after, "G": [], "H": []}),
}


def length(jobs: Jobs, workers: int) -> float:
    """When all jobs are done, taken in the order of the alphabet."""
    return max(turn.begin + jobs.costs[turn.job] for turn in taken(*jobs, workers, sorted(jobs.costs)))


@UNIT.task
class FourthWorker(Prediction):
    """Nine jobs on three workers, and a change that should make them faster."""

    name = "fourth_worker"

    def vary(self, draw: random.Random) -> None:
        self.change = draw.choice(list(ANOMALIES))
        self.jobs = ANOMALIES[self.change]

    def right(self) -> float:
        return length(self.jobs, 3)

    def chain(self) -> float:
        """The longest chain."""
        return max(chains(*self.jobs).values())

    def work(self) -> float:
        """All jobs together."""
        return sum(self.jobs.costs.values())

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(self.jobs, {n: taken(*self.jobs, n, "ABCDEFGHI") for n in range(1, 7)})}


@UNIT.task
class ProgramStarts(Prediction):
    name = "program_starts"

    def given(self) -> dict[str, Any]:
        return {"starts": starts}


@UNIT.task
class ThousandWorkers(Prediction):
    name = "thousand_workers"

    def vary(self, draw: random.Random) -> None:
        self.jobs = DIAMOND._replace(costs={**DIAMOND.costs, "c": draw.choice([2, 6, 8, 10])})

    @property
    def listed(self) -> str:
        return ", ".join(f"{job} takes {cost}" for job, cost in self.jobs.costs.items())

    def right(self) -> float:
        return max(chains(*self.jobs).values())

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(self.jobs, {n: taken(*self.jobs, n, "acbdef") for n in range(1, 5)})}


@UNIT.task
class Together(Prediction):
    name = "together"

    def given(self) -> dict[str, Any]:
        return {"gains": gains, "picture": compared}
