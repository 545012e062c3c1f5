"""Unit 07: plans of checkpoints within a budget of bytes: for a chain of equal operations, and for a GPT."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

from minigrad.core.mode import record
from minigrad.core.node import topological_order
from minigrad.ops.creation import ones
from minigrad.ops.elementwise import tanh
from minigrad.support.table import bytes_text, counted
from minigrad.viz.flipbook import Flipbook
from minigrad.viz.kept import Unit, read_tape

from ...feedback import NotWritten
from .about import UNIT
from .budget_tasks import Limit, PlanTask
from .seams import Row, seams
from .training import both_trained, row_of

OPERATIONS: dict[str, Callable[[Any], Any]] = {"h * h": lambda h: h * h, "tanh(h)": tanh}
CHAINS = (  # the operation, how many, the fewest arrays at once, and a plan for it
    ("h * h", 9, 3, [3, 3, 2]), ("h * h", 10, 3, [4, 3, 2]), ("tanh(h)", 10, 4, [3, 4]), ("tanh(h)", 8, 3, [3, 3]))
ONE_ARRAY = 4000


@cache
def chain(code: str, count: int) -> Row:
    """The tape of an operation that is applied again and again to 1,000 floats."""
    h = ones(1000, requires_grad=True)
    with record():
        for _ in range(count):
            h = OPERATIONS[code](h)
    tape = read_tape(topological_order([h.node]))
    return Row(tape._replace(units=[Unit(str(i), [node]) for i, node in enumerate(tape.needs)]), count)


class CheckpointPlan(PlanTask):
    """A plan of checkpoints that stays within a budget of bytes."""

    budget: int
    again: int  # the most blocks that may be computed again

    def row(self) -> Row:
        """The blocks."""
        raise NotImplementedError

    def given(self) -> dict[str, Any]:
        return {"picture": self.picture, "budget": self.budget, "count": self.count}

    def picture(self) -> Flipbook:
        """The blocks with their seams."""
        title = f"{counted(self.count, self.block)}, a budget of {bytes_text(self.budget)}"
        return seams(self.row(), self.budget, title, self.block)

    def limits(self, plan: list[int]) -> list[Limit]:
        again = f"{self.block}s computed again"
        return [Limit("kept at once", self.row().peak(plan), self.budget, self._too_much(plan)),
                Limit(again, sum(plan), self.again, self._too_often(plan), str)]

    def _too_much(self, plan: list[int]) -> str:
        """Where a plan keeps too much."""
        if not plan:
            return "without a checkpoint everything is kept. Cut a seam in the picture"
        if plan == [self.count]:
            return "one checkpoint around everything saves nothing: the backward pass computes all of it again at once"
        row, done = self.row(), len(self.row().tape.units)
        if row.history([sum(plan)])[done].bytes > self.budget:
            return f"the {self.block}s without a checkpoint keep too much: put more of them into checkpoints"
        if row.history(plan)[done].bytes > self.budget:
            return f"the inputs of {counted(len(plan), 'checkpoint')} add up: make fewer, and larger ones"
        largest = counted(max(plan), self.block)
        return (f"too much is computed again at once: a checkpoint of {largest} keeps all of them while the backward "
                "pass goes through it. Cut it")

    def _too_often(self, plan: list[int]) -> str:
        """How a plan computes too much again."""
        if sum(plan) == self.count:
            return f"the last {self.block}s come first in the backward pass: a checkpoint around them saves nothing"
        return f"it is within the budget, but {self.again} are enough: leave more at the end without a checkpoint"


@UNIT.task
class ChainPlan(CheckpointPlan):
    """A plan for a chain of equal layers."""

    name = "chain_plan"

    def vary(self, draw: random.Random) -> None:
        self.code, self.count, arrays, self.best = draw.choice(CHAINS)
        self.budget, self.again = ONE_ARRAY * arrays, self.count

    def row(self) -> Row:
        return chain(self.code, self.count)


@UNIT.task
class GptPlan(CheckpointPlan):
    """A plan for a GPT."""

    name = "gpt_plan"

    def vary(self, draw: random.Random) -> None:
        self.count = draw.choice([6, 7, 8])
        free, self.budget = draw.choice([(2, 8_000_000), (1, 4_500_000)])
        self.again = self.count - free
        rest = self.again % free
        self.best = [free] * (self.again // free) + [rest] * (rest > 0)

    def given(self) -> dict[str, Any]:
        return {**super().given(), "train": self.train}

    def train(self, run: Callable[..., Any], plan: Any) -> Flipbook:
        """The GPT, trained without checkpoints and with a plan, its blocks run by `run(blocks, x, plan)`."""
        if plan is ...:
            raise NotWritten(self.name, "not answered yet", "answer the question above first, and run its cell")
        return both_trained(self.count, self.budget, run, self.sizes(plan))

    def row(self) -> Row:
        return row_of(self.count)
