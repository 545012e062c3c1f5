"""Unit 07: plans of checkpoints within a budget of bytes: for a chain of equal operations, and for a GPT."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ....core.mode import record
from ....core.node import topological_order
from ....ops.creation import ones
from ....ops.elementwise import tanh
from ....support.table import bytes_text, counted
from ....viz.flipbook import Flipbook
from ....viz.lessons.tapes import Unit, read_tape
from ...budgets import Limit, within
from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask, mistake
from .about import UNIT
from .seams import Row, seams
from .training import WithinBudget, compare_trainings, row_of

OPERATIONS: dict[str, Callable[[Any], Any]] = {"h * h": lambda h: h * h, "tanh(h)": tanh}
FEWEST = {("h * h", 9): 3, ("h * h", 10): 3, ("tanh(h)", 10): 4, ("tanh(h)", 8): 3}  # arrays at once, by the best plan
ONE_ARRAY = 4000


@cache
def chain(code: str, count: int) -> Row:
    """The tape of an operation that is applied again and again to 1,000 floats."""
    h = ones(1000, requires_grad=True)
    with record():
        for _ in range(count):
            h = OPERATIONS[code](h)
    tape = read_tape(topological_order([h.node]))
    return Row(replace(tape, units=[Unit(str(i), [node]) for i, node in enumerate(tape.needs)]), count)


class PlanTask(ValueTask):
    """A plan of checkpoints: any plan that stays within the budget is right."""

    mistakes = ()
    block: ClassVar[str] = "block"
    count: int
    budget: int
    again: int  # the most blocks that may be computed again

    def row(self) -> Row:
        """The blocks."""
        raise NotImplementedError

    def best(self) -> list[int]:
        """A plan that is right."""
        raise NotImplementedError

    def given(self) -> dict[str, Any]:
        return {"picture": self.picture, "budget": self.budget, "count": self.count}

    def picture(self) -> Flipbook:
        """The blocks with their seams."""
        title = f"{counted(self.count, self.block)}, a budget of {bytes_text(self.budget)}"
        return seams(self.row(), self.budget, title, self.block)

    def right(self) -> list[int]:
        return self.best()

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        plan = self._read(answer)
        row = self.row()
        most = row.peak(plan)
        limits = [
            Limit("kept at once", most, self.budget, self._why(row, plan)),
            Limit(f"{self.block}s computed again", sum(plan), self.again, self._too_often(row, plan), str),
        ]
        return within(self.name, limits)

    def _read(self, answer: Any) -> list[int]:
        """A plan as a list of sizes."""
        plan = answer.tolist() if hasattr(answer, "tolist") else answer
        plan = [plan] if isinstance(plan, int) and not isinstance(plan, bool) else plan
        sizes = isinstance(plan, list | tuple) and all(isinstance(n, int | np.integer) for n in plan)
        if not sizes:
            hint = f"a list of sizes: {self.example} puts the first {self.block}s into two checkpoints"
            raise Wrong(self.name, f"your answer {written(answer)} has another form", hint)
        if any(size < 1 for size in plan):
            raise Wrong(self.name, f"{written(answer)} has a checkpoint without a {self.block}",
                        f"sizes of 1 and more; {self.block}s at the end that are not listed have no checkpoint")
        if sum(plan) > self.count:
            problem = f"{written(answer)} lists {sum(plan)} {self.block}s, and there are {self.count}"
            raise Wrong(self.name, problem, "sizes, not places: [2, 3] is 2 of them, and then the next 3")
        return [int(size) for size in plan]

    def _why(self, row: Row, plan: list[int]) -> str:
        """Where a plan keeps too much."""
        if not plan:
            return "without a checkpoint everything is kept. Cut a seam in the picture"
        history = row.history(plan)
        after = history[len(row.tape.units)].bytes
        if plan == [self.count]:
            return "one checkpoint around everything saves nothing: the backward pass computes all of it again at once"
        if after > self.budget:
            return (f"after the forward pass {bytes_text(after)} are kept already: more {self.block}s need a checkpoint"
                    if self.count - sum(plan) > max(plan) else
                    f"after the forward pass {bytes_text(after)} are kept already: the inputs of the checkpoints, and all "
                    "that has no checkpoint")
        largest = max(plan)
        return (f"too much is computed again at once: a checkpoint of {counted(largest, self.block)} keeps all of them "
                "while it goes back. Cut it")

    def _too_often(self, row: Row, plan: list[int]) -> str:
        """How a plan computes too much again."""
        if sum(plan) == self.count:
            return f"the last {self.block}s come first in the backward pass: a checkpoint around them saves nothing"
        return f"within the budget. {self.again} are enough: leave as many as possible at the end without a checkpoint"


@UNIT.task
class ChainPlan(PlanTask):
    """A plan for a chain of equal layers."""

    name = "chain_plan"
    points = 2
    minutes = 10
    outcome = "plan"
    block = "layer"
    example = "[2, 3]"

    def vary(self, draw: random.Random) -> None:
        (self.code, self.count), fewest = draw.choice(list(FEWEST.items()))
        self.budget, self.again = ONE_ARRAY * fewest, self.count

    def text(self) -> str:
        return (
            f"A chain of {self.count} layers, each `h = {self.code}`, on 1,000 floats. Without checkpoints it keeps "
            f"{bytes_text(self.row().peak(()))}. **Find a plan that never keeps more than {bytes_text(self.budget)}, "
            f"which is {self.budget // ONE_ARRAY} arrays.** A list of sizes: `[2, 3]` puts the first 2 layers into one "
            "checkpoint, the next 3 into another, and the rest into none. Find it on the picture."
        )

    def row(self) -> Row:
        return chain(self.code, self.count)

    def best(self) -> list[int]:
        return {("h * h", 9): [3, 3, 2], ("h * h", 10): [4, 3, 2], ("tanh(h)", 10): [3, 4], ("tanh(h)", 8): [3, 3]}[
            self.code, self.count]


@UNIT.task
class GptPlan(PlanTask):
    """A plan for a GPT."""

    name = "gpt_plan"
    points = 3
    minutes = 12
    outcome = "plan"
    example = "[1, 2]"
    seconds = 20.0

    def vary(self, draw: random.Random) -> None:
        self.count = draw.choice([6, 7, 8])
        plain, self.budget = draw.choice([(3, 11_000_000), (2, 8_000_000), (1, 4_500_000)])
        self.again = self.count - plain

    def given(self) -> dict[str, Any]:
        return {**super().given(), "train": self.train}

    def train(self, run: Callable[..., Any], plan: Any) -> WithinBudget:
        """The GPT, trained without checkpoints and with a plan, its blocks run by `run(blocks, x, plan)`."""
        return compare_trainings(self.count, self.budget, run, self._read(plan))

    def text(self) -> str:
        return (
            f"The GPT has {self.count} blocks, and one step keeps {bytes_text(self.row().peak(()))}. **Find a plan that "
            f"never keeps more than {bytes_text(self.budget)}, and computes at most {self.again} blocks again.**"
        )

    def row(self) -> Row:
        return row_of(self.count)

    def best(self) -> list[int]:
        plain = self.count - self.again
        sizes = [plain] * (self.again // plain)
        return [*sizes, self.again - sum(sizes)] if self.again > sum(sizes) else sizes
