"""Unit 13: plans and sums on paper: which chunk goes where, how many bytes, how long, how much memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from minigrad.distributed import Machine, Step, step_time
from minigrad.viz.flipbook import Flipbook

from ...feedback import NotWritten, Wrong, written
from ...tasks import ROUNDS, ValueTask
from .about import UNIT
from .chunks import by_plan, faults, rounds_of
from .known import values

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
    mistakes = values(
        ("[list(range(4))] * 3",
         "each worker sends the chunk of its own number three times: the second time, the same numbers are counted "
         "again. Pass on the chunk that has just come"),
        ("self.right()[:1] * 3",
         "all rounds are the same, so numbers are counted twice. In round 2, pass on what came in round 1"),
        ("self.made(self.home, -self.way)",
         "in this plan the chunks travel in the other direction: look at the arrows in the text, and at the order of "
         "your rounds, the first one first"),
        ("self.made(self.home + self.way, self.way)",
         "all chunks are complete, but each in the worker after the right one. A chunk takes three hops: where must it "
         "begin to end where the text says?"),
        ("self.made(self.home - self.way, self.way)",
         "all chunks are complete, but each in the worker before the right one. A chunk takes three hops: where must "
         "it begin to end where the text says?"),
        ("self.made(self.home + 2, self.way)",
         "all chunks are complete, but each two workers away from the right one. A chunk takes three hops: where must "
         "it begin to end where the text says?"),
        ("[[i] * 4 for i in range(3)]",
         "the same chunk in all workers: the other chunks never move. In a round, each worker sends another chunk"),
    )

    def vary(self, draw: random.Random) -> None:
        self.way = draw.choice([1, -1])
        self.home = draw.choice([0, 1, 2] if self.way > 0 else [0, 2, 3])  # no worker begins with its own number

    def text(self) -> str:
        other = "the next one: 0 → 1 → 2 → 3 → 0" if self.way > 0 else "the one before: 0 → 3 → 2 → 1 → 0"
        homes = ", ".join(f"chunk {c} in worker {(c + self.home) % WORKERS}" for c in range(WORKERS))
        return (
            f"Four workers, with four chunks each. Each worker sends to {other}. The receiver **adds** what comes to "
            f"its own chunk of the same number. **After three rounds, these are to be complete: {homes}.** Write the "
            "table: three rounds, and for each round the four chunks that workers 0, 1, 2 and 3 send."
        )

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
            raise Wrong(self.name, f"your answer {written(answer)} has another form", FORM) from None
        if table.shape == (WORKERS, WORKERS - 1):
            raise Wrong(self.name, "your answer has 4 rows of 3: a row for each worker?", FORM)
        if table.shape != (rounds, WORKERS):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", FORM)
        if not np.isin(table, range(WORKERS)).all():
            raise Wrong(self.name, f"your answer {written(answer)} has other numbers", "the chunks are 0, 1, 2 and 3")
        return [[int(chunk) for chunk in row] for row in table]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        rows = answer if isinstance(answer, list | tuple) else []
        if any(... in row for row in rows if isinstance(row, list | tuple)):
            raise NotWritten(self.name, "not answered yet", f"put numbers in the place of the dots: {FORM}")
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
    mistakes = values(
        ("self.of((self.workers - 1) / self.workers)",
         "that is the first half, the reduce-scatter. The all-gather sends as much again"),
        ("self.of(2)",
         "nearly: n rounds in each half are one too many. After n − 1 rounds a chunk has been everywhere"),
        ("self.of(1)",
         "that is the array itself. The sums go round first, and then the totals: two times (n − 1) chunks"),
        ("self.of(2 * (self.workers - 1))",
         "that is what all workers send together. In each of 2 (n − 1) rounds one of them sends a chunk"),
        ("round(self.right() / 4, 6)",
         "that counts numbers. A float32 takes 4 bytes"),
        ("self.of(1 / self.workers)",
         "that is the chunk of one round. How many rounds are there?"),
        ("self.right() * 1e6",
         "these are bytes: divide by a million"),
        ("self.of(4 * (self.workers - 1) / self.workers)",
         "each message is sent by one worker and received by another: count the sent ones only"),
    )

    def vary(self, draw: random.Random) -> None:
        self.workers, self.millions = draw.choice([5, 8, 16, 20]), draw.choice([10, 15, 30])

    def of(self, factor: float) -> float:
        """So many times the bytes of the gradients."""
        return round(4 * self.millions * factor, 6)

    def right(self) -> float:
        return self.of(2 * (self.workers - 1) / self.workers)

    def explained(self) -> str:
        return f"{2 * (self.workers - 1)} chunks, each 1/{self.workers} of the array. More workers send hardly more."


@UNIT.task
class SlowStep(ValueTask):
    """The time of a step with overlap and one slow worker."""

    name = "slow_step"
    mistakes = values(
        ("self.time(slow=0)",
         "one of 1,000 is slow, and all wait for it: its times count, not the others'"),
        ("round((self.forward + self.backward) * (1 + self.percent / 100 / 1000) + self.each, 6)",
         "that is the mean over the workers. A step ends when the slowest one is there"),
        ("self.time() / 1000",
         "these are seconds: the answer is in ms"),
        ("self.time(slow=0, overlap=False)",
         "the slow worker is forgotten, and nothing overlaps: all wait for the slow one, while buckets are sent"),
        ("self.time(overlap=False)",
         "nothing overlaps there. All buckets but the last are on their way while backward computes"),
        ("self.time() - self.each",
         "the last bucket is full at the end of backward: its all-reduce comes after it"),
        ("round(self.forward + self.backward * (1 + self.percent / 100) + self.each, 6)",
         "forward is slower in that worker too"),
        ("round((self.forward + self.backward + self.each) * (1 + self.percent / 100), 6)",
         "the worker computes longer. Its all-reduce takes the same time as before"),
        ("round((self.forward + self.backward) * self.percent / 100, 6)",
         "the slow worker computes 1 + p/100 times as long; your number has the extra time only"),
    )

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

    def explained(self) -> str:
        return f"{self.time() - self.each:g} ms of computing in the slow worker, {self.each} ms for the last bucket."


@UNIT.task
class WorkerMemory(ValueTask):
    """The memory of a worker with a sharded optimizer."""

    name = "worker_memory"
    mistakes = values(
        ("self.of((2 + self.KINDS[self.optimizer]) / self.workers)",
         "only the state of the optimizer is divided: each worker needs all parameters, and computes all gradients"),
        ("self.of(2 + self.KINDS[self.optimizer])",
         "that is without sharding: each worker keeps an n-th of the state"),
        ("self.of(self.KINDS[self.optimizer] / self.workers)",
         "that is the state alone. Parameters and gradients take memory too"),
        ("self.of(1 + self.KINDS[self.optimizer] / self.workers)",
         "the gradients are missing: as many numbers as parameters"),
        ("self.right() * 1e9",
         "these are bytes: divide by a billion"),
        ("self.of(2 + (3 - self.KINDS[self.optimizer]) / self.workers)",
         "how many numbers does this optimizer keep for each parameter? See the text"),
        ("self.of(2)",
         "parameters and gradients alone: the worker keeps its part of the state too"),
        ("round(self.right() / 4, 6)",
         "that counts numbers. A float32 takes 4 bytes"),
    )
    KINDS = {"SGD with momentum": 1, "AdamW": 2}  # numbers of state for each parameter

    def vary(self, draw: random.Random) -> None:
        self.optimizer = draw.choice(list(self.KINDS))
        self.billions, self.workers = draw.choice([1, 3, 7]), draw.choice([8, 10, 16, 20])

    def text(self) -> str:
        keeps = "one number" if self.KINDS[self.optimizer] == 1 else "two numbers"
        return (
            f"{self.billions} billion parameters, float32, trained by {self.optimizer}, which keeps {keeps} for each "
            f"parameter. {self.workers} workers, `ShardedOptimizer`. **How many GB (billions of bytes) do parameters, "
            "gradients and optimizer state take in one worker?**"
        )

    def of(self, numbers: float) -> float:
        """The gigabytes of so many numbers for each parameter."""
        return round(4 * self.billions * numbers, 6)

    def right(self) -> float:
        return self.of(2 + self.KINDS[self.optimizer] / self.workers)

    def explained(self) -> str:
        return f"{self.of(2 + self.KINDS[self.optimizer]):g} GB without sharding. Only the state is divided."
