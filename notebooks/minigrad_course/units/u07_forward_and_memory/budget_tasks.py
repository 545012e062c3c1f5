"""A budget: how much of something an answer may use.

A task with a budget calls `within` with its limits, the most important first.  Where the answer is a plan that groups
blocks, a `PlanTask` does this: any plan within the limits is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minigrad.support.table import bytes_text, counted

from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask


class Limit(NamedTuple):
    """The most that an answer may use of something, and the hint for an answer that uses more."""

    what: str  # as in "7.1 MB kept at once"
    used: int
    most: int
    hint: str | None = None
    amount: Callable[[Any], str] = bytes_text  # an amount in words

    def __str__(self) -> str:
        return f"{self.amount(self.used)} {self.what}, of {self.amount(self.most)}"


def within(task: str, limits: Sequence[Limit]) -> str:
    """Raise `Wrong` for the first limit that an answer exceeds; otherwise return what it uses, in words.

    >>> within("plan", [Limit("kept at once", 7_100_000, 9_000_000), Limit("blocks computed again", 4, 4, amount=str)])
    '7.1 MB kept at once, of 9 MB; 4 blocks computed again, of 4'
    """
    for limit in limits:
        if limit.used > limit.most:
            got, most = limit.amount(limit.used), limit.amount(limit.most)
            raise Wrong(task, f"too much: {limit.what}\n  Expected: at most {most}\n  Got: {got}", limit.hint)
    return "; ".join(map(str, limits))


class PlanTask(ValueTask):
    """A plan to find: the sizes of groups of consecutive blocks, from the first block on."""

    mistakes = ()
    block: ClassVar[str] = "block"  # what is grouped
    example = "[2, 3]"
    count: int  # of blocks
    best: list[int]  # a plan that is right

    def limits(self, plan: list[int]) -> Sequence[Limit]:
        """What a plan may use, and what it uses."""
        raise NotImplementedError

    def right(self) -> list[int]:
        return self.best

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        return within(self.name, self.limits(self.sizes(answer)))

    def sizes(self, answer: Any) -> list[int]:
        """The plan of an answer; `Wrong` is raised for other forms."""
        plan = answer.tolist() if hasattr(answer, "tolist") else answer
        plan = [plan] if isinstance(plan, int) and not isinstance(plan, bool) else plan
        listed = isinstance(plan, list | tuple)
        if not listed or not all(type(size) is int or isinstance(size, np.integer) for size in plan):
            hint = f"a list of sizes: {self.example} makes groups of the first {self.block}s"
            raise self.misformed(answer, hint)
        if any(size < 1 for size in plan):
            hint = f"sizes of 1 and more; leave out the {self.block}s at the end that belong to no group"
            raise Wrong(self.name, f"{written(answer)} has a group without a {self.block}", hint)
        if sum(plan) > self.count:
            problem = f"{written(answer)} lists {counted(sum(plan), self.block)}, and there are {self.count}"
            raise Wrong(self.name, problem, "sizes, not places: [2, 3] is the first 2, and then the next 3")
        return [int(size) for size in plan]
