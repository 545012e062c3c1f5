"""Unit 13: plans and sums on paper: which chunk goes where, how many bytes, how long, how much memory."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np

from minigrad.distributed import Machine, Step, step_time
from minigrad.viz.flipbook import Flipbook

from ...feedback import NotWritten, Wrong, written
from ...tasks import ROUNDS, Mistake, ValueTask
from .about import UNIT
from .chunks import by_plan, faults, rounds_of

WORKERS = 4
FORM = (
    f"a list of {WORKERS - 1} rounds, and each round is a list of {WORKERS} chunks: the one that worker 0 sends, "
    "the one that worker 1 sends, and so on"
)
Plan = list[list[int]]


@UNIT.task
class RingPlan(ValueTask):
    """A table: which chunk each of four workers sends in each of three rounds."""

    name = "ring_plan"
    mistakes: ClassVar[tuple[Mistake, ...]] = ()

    def vary(self, draw: random.Random) -> None:
        self.way = draw.choice([1, -1])
        self.home = draw.choice([0, 1, 2] if self.way > 0 else [0, 2, 3])  # no worker begins with its own number

    def homes(self) -> str:
        """A part of the text."""
        return ", ".join(f"chunk {c} in worker {(c + self.home) % WORKERS}" for c in range(WORKERS))

    def given(self) -> dict[str, Any]:
        return {"act": self.act}

    def act(self, plan: Any) -> Flipbook:
        """A plan, round by round; rounds that are not written yet are left out."""
        rows = plan if isinstance(plan, list | tuple) else []
        rows = [row for row in rows if isinstance(row, list | tuple) and ... not in row]
        states, rounds = by_plan(self.plan(rows, len(rows)) if rows else [], WORKERS, self.way)
        wrong = faults(states[-1], self.places())
        says = f"{wrong[0]}." if wrong else "All four chunks are complete, where they should be."
        return rounds_of(f"your plan, {len(rows)} rounds", states, rounds, says)

    def places(self) -> list[tuple[int, int]]:
        """The worker and the number of each chunk that is to be complete."""
        return [((c + self.home) % WORKERS, c) for c in range(WORKERS)]

    def plan(self, answer: Any, rounds: int = WORKERS - 1) -> Plan:
        """The plan of an answer; `Wrong` is raised for other forms."""
        try:
            table = np.array(answer, dtype=float)
        except (TypeError, ValueError):
            raise self.misformed(answer, FORM) from None
        if table.shape == (WORKERS, WORKERS - 1):
            raise Wrong(self.name, "your answer has 4 rows of 3: a row for each worker?", FORM)
        if table.shape != (rounds, WORKERS):
            raise self.misformed(answer, FORM)
        if not np.isin(table, range(WORKERS)).all():
            raise Wrong(self.name, f"your answer {written(answer)} has other numbers", "the chunks are 0, 1, 2 and 3")
        return [[int(chunk) for chunk in row] for row in table]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        rows = answer if isinstance(answer, list | tuple) else []
        if any(... in row for row in rows if isinstance(row, list | tuple)):
            raise NotWritten(self.name, "not answered yet", f"put numbers in place of the dots: {FORM}")
        plan = self.plan(answer)
        states, _ = by_plan(plan, WORKERS, self.way)
        wrong = faults(states[-1], self.places())
        if not wrong:
            return "12 messages of a quarter each: each worker has sent 3/4 of its array."
        known = [each for each in self.mistakes if self.wrong(each) == plan]
        raise Wrong(self.name, wrong[0], self.words(known[0]) if known else self.otherwise)

    def made(self, home: int, way: int) -> Plan:
        """The plan by which chunk c is complete in worker c + home, in a ring that goes on by `way`."""
        return [[(r - home - way * (i + 1)) % WORKERS for r in range(WORKERS)] for i in range(WORKERS - 1)]

    def right(self) -> Plan:
        return self.made(self.home, self.way)


@UNIT.task
class BytesSent(ValueTask):
    """How many megabytes does a worker send?"""

    name = "bytes_sent"

    def vary(self, draw: random.Random) -> None:
        self.workers, self.millions = draw.choice([5, 8, 16, 20]), draw.choice([10, 15, 30])

    def of(self, factor: float) -> float:
        """The megabytes of the gradients, times a factor."""
        return round(4 * self.millions * factor, 6)

    def right(self) -> float:
        return self.of(2 * (self.workers - 1) / self.workers)


@UNIT.task
class SlowStep(ValueTask):
    """The time of a step with overlap and one slow worker."""

    name = "slow_step"

    def vary(self, draw: random.Random) -> None:
        self.forward, self.backward = draw.choice([40, 60, 80]), draw.choice([120, 160, 200])
        self.buckets, self.each = draw.choice([4, 5]), draw.choice([11, 12, 14])
        self.percent = draw.choice([25, 50])

    def time(self, **what_if: Any) -> float:
        """The milliseconds of a step, by the model of `mg.distributed`."""
        n, size = 1000, 1e6
        machine = Machine(0.0, 2 * (n - 1) / n * size / (self.each * 1e-3), slow=1, slowdown=1 + self.percent / 100)
        step = Step.even(self.buckets, self.forward * 1e-3, self.backward * 1e-3, self.buckets * size, bucket=size,
                         algorithm="ring")
        return round(step_time(step, machine, n, **what_if).seconds * 1e3, 6)

    def right(self) -> float:
        return self.time()


@UNIT.task
class WorkerMemory(ValueTask):
    """The memory of a worker with a sharded optimizer."""

    name = "worker_memory"
    KINDS = {"SGD with momentum": 1, "AdamW": 2}  # numbers of state for each parameter

    def vary(self, draw: random.Random) -> None:
        self.optimizer = draw.choice(list(self.KINDS))
        self.billions, self.workers = draw.choice([1, 3, 7]), draw.choice([8, 10, 16, 20])

    def of(self, numbers: float) -> float:
        """The gigabytes of a number of values for each parameter."""
        return round(4 * self.billions * numbers, 6)

    def right(self) -> float:
        return self.of(2 + self.KINDS[self.optimizer] / self.workers)
