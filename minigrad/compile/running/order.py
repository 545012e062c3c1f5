"""Schedules: which steps of a plan wait for which, and which may run at the same time.

The *level* of a step is the length of the longest chain of steps that it waits for.  The steps of a level are
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from ...core.primitive import P
from ...support.table import as_table
from ..fusion.count import Count
from ..nodes.thresholds import FLOP, PRODUCT_FLOP
from .plan import Blocked, Call, Check, Launch, Plan, Step, has_effect


class ScheduledStep(NamedTuple):
    """One kernel, library call or check: the steps that it waits for, and its cost.

    `cost` estimates its time, in bytes of memory traffic that take as long.
    """

    number: int  # in a serial run
    name: str
    kind: str  # "kernel", "library", "check" or "blocks"
    level: int
    after: tuple[int, ...]  # the numbers of the steps that it waits for
    bytes: int
    flops: int
    cost: float
    is_product: bool  # of matrices, which a library shares among its threads
    has_effect: bool  # an effect happens in the calling thread


KINDS = {Launch: "kernel", Call: "library", Check: "check", Blocked: "blocks"}


class Schedule:
    """The steps of a program by level.

    >>> f = mg.jit(lambda x, y: (x @ x).sum() + (y @ y).sum())
    >>> schedule = f.program(mg.ones((8, 8)), mg.ones((8, 8))).schedule
    >>> [[step.name for step in level] for level in schedule.levels]
    [['matmul_1', 'matmul_2'], ['kernel_2', 'kernel_3'], ['kernel_4']]
    >>> [step.name for step in schedule.critical_path]
    ['matmul_1', 'kernel_2', 'kernel_4']
    """

    def __init__(self, plan: Plan, counts: Sequence[Count] = ()) -> None:
        levels: list[int] = []
        known = counts or [step.count for step in plan.steps]
        self.steps: list[ScheduledStep] = []
        for number, (step, after, count) in enumerate(zip(plan.steps, plan.after, known)):
            levels.append(max([levels[i] + 1 for i in after], default=0))
            where = step.name, KINDS[type(step)], levels[-1], after
            takes = count.bytes, count.flops, work_of(step)
            self.steps.append(ScheduledStep(number, *where, *takes, _is_product(step), has_effect(step)))

    @cached_property
    def levels(self) -> list[list[ScheduledStep]]:
        """The steps by level: those of one level may run at the same time."""
        levels: list[list[ScheduledStep]] = [[] for _ in range(max([s.level for s in self.steps], default=-1) + 1)]
        for step in self.steps:
            levels[step.level].append(step)
        return levels

    @cached_property
    def critical_path(self) -> list[ScheduledStep]:
        """The chain of steps, each waiting for the one before, that takes longest: more threads are not faster."""
        until: list[float] = []  # the cost of the longest chain that ends in each step
        before: list[int | None] = []
        for step in self.steps:
            last = max(step.after, key=until.__getitem__, default=None)
            before.append(last)
            until.append(step.cost + (0 if last is None else until[last]))
        path: list[ScheduledStep] = []
        at = max(range(len(until)), key=until.__getitem__, default=None)
        while at is not None:
            path.append(self.steps[at])
            at = before[at]
        return path[::-1]

    @property
    def work(self) -> float:
        """The cost of all steps."""
        return sum(step.cost for step in self.steps)

    @property
    def span(self) -> float:
        """The cost of the critical path."""
        return sum(step.cost for step in self.critical_path)

    def __repr__(self) -> str:
        return f"<Schedule of {len(self.steps)} steps in {len(self.levels)} levels>"

    def __str__(self) -> str:
        critical = {step.number for step in self.critical_path}
        rows = []
        for step in (step for level in self.levels for step in level):
            name = step.name + (" *" if step.number in critical else "")
            after = ", ".join(self.steps[i].name for i in step.after) or "-"
            rows.append((str(step.level), name, after, f"{step.bytes:,}", f"{step.flops:,}", f"{step.cost:,.0f}"))
        table = as_table(("level", "step", "after", "bytes", "flops", "cost"), rows, left=3)
        gain = self.work / self.span if self.span else 1.0
        return f"{table}\n* on the critical path; many threads could be {gain:.2f} times as fast as one"


def _is_product(step: Step) -> bool:
    return isinstance(step, Call) and step.op is P.matmul


def work_of(step: Step) -> float:
    """The cost of a step, in bytes of memory traffic that take as long."""
    if isinstance(step, Blocked):
        products = step.count.flops - step.launch.count.flops
        return step.count.bytes + FLOP * step.launch.count.flops + PRODUCT_FLOP * products
    flop = FLOP if isinstance(step, Launch) else PRODUCT_FLOP * _is_product(step)
    return step.count.bytes + flop * step.count.flops
