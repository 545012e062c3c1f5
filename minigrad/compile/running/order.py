"""The schedule: what of a partition waits for what, and so what may run at the same time.

A step waits for those that make what it reads.  One that overwrites an input also waits for all that read the input,
and what cannot be undone (overwriting, effects) waits for all checks that may still stop the run.  The *level* of a
step is the length of the longest chain of steps that it waits for: steps of one level are independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ...core.node import Node
from ...core.primitive import P
from ...core.table import as_table
from ..fusion.group import Group, Partition
from ..lowering.lower import Argument, Lowered

FLOP = 0.5  # bytes of memory traffic that take as long as an operation in a kernel
PRODUCT_FLOP = 0.1  # the same for a matrix product, whose libraries keep what they read in registers


class Step(NamedTuple):
    """One kernel or library call: what it waits for, and what it takes.

    `cost` is an estimate of its time, in bytes of memory traffic that take as long.
    """

    number: int  # in the order of a run one after the other
    name: str
    kind: str  # "kernel" or "library"
    level: int
    after: tuple[int, ...]  # the numbers of the steps that it waits for
    bytes: int
    flops: int
    cost: float
    is_product: bool  # of matrices, whose library has threads of its own
    has_effect: bool  # which happens in the thread that called


class Schedule:
    """The steps of a program by level.

    >>> f = mg.jit(lambda x, y: (x @ x).sum() + (y @ y).sum())
    >>> schedule = f.program(mg.ones((8, 8)), mg.ones((8, 8))).schedule
    >>> [[step.name for step in level] for level in schedule.levels]
    [['matmul_1', 'matmul_2'], ['kernel_2', 'kernel_3'], ['kernel_4']]
    >>> [step.name for step in schedule.critical_path]
    ['matmul_1', 'kernel_2', 'kernel_4']
    """

    def __init__(self, partition: Partition, lowered: Mapping[Group, Lowered]) -> None:
        names = step_names(partition)
        levels: list[int] = []
        self.steps: list[Step] = []
        for number, (group, after) in enumerate(zip(partition.groups, dependencies(partition, lowered))):
            levels.append(max([levels[i] + 1 for i in after], default=0))
            kind = "kernel" if group.library is None else "library"
            is_product = group.library is not None and group.library.node.op is P.matmul
            if group.library is None:
                count, cost = lowered[group].count, work_of(lowered[group])
            else:
                count = group.library.count
                cost = count.bytes + PRODUCT_FLOP * count.flops * is_product
            where = names[group], kind, levels[-1], tuple(sorted(after))
            self.steps.append(Step(number, *where, count.bytes, count.flops, cost, is_product, _has_effect(group)))

    @cached_property
    def levels(self) -> list[list[Step]]:
        """The steps that may run at the same time, level by level."""
        levels: list[list[Step]] = [[] for _ in range(max([s.level for s in self.steps], default=-1) + 1)]
        for step in self.steps:
            levels[step.level].append(step)
        return levels

    @cached_property
    def critical_path(self) -> list[Step]:
        """The chain of steps, each waiting for the one before, that takes longest: no number of threads is faster."""
        until: list[float] = []  # the cost of the longest chain that ends in each step
        before: list[int | None] = []
        for step in self.steps:
            last = max(step.after, key=until.__getitem__, default=None)
            before.append(last)
            until.append(step.cost + (0 if last is None else until[last]))
        path: list[Step] = []
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

    def plain(self) -> list[dict[str, Any]]:
        """The steps as plain data, for drawing."""
        return [step._asdict() for step in self.steps]

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


def step_names(partition: Partition) -> dict[Group | None, str]:
    """What each step is called: a kernel by its number, a library call like its node."""
    names = partition.graph.names()
    return {group: group.name if group.library is None else names[group.library.node] for group in partition.groups}


def uses(group: Group, lowered: Mapping[Group, Lowered]) -> tuple[list[Any], list[Any]]:
    """What a group reads and what it writes: nodes, and of partial results the `Argument`s that stand for them."""
    if group.library is not None:
        return list(group.library.bases), [group.library.node]
    reads: list[Any] = []
    writes: list[Any] = []
    for argument, parameter in zip(lowered[group].arguments, lowered[group].kernel.parameters):
        if argument.kind != "scratch":
            key = argument if argument.kind == "partial" else argument.node
            (reads if parameter.role == "in" else writes).append(key)
    return reads, writes


def dependencies(partition: Partition, lowered: Mapping[Group, Lowered]) -> list[set[int]]:
    """For each group, the numbers of the groups that it has to wait for."""
    made_by: dict[Node | Argument, int] = {}
    read_by: dict[Any, list[int]] = {}
    checks: list[int] = []
    last_effect: int | None = None
    found: list[set[int]] = []
    for number, group in enumerate(partition.groups):
        reads, writes = uses(group, lowered)
        after = {made_by[key] for key in reads if key in made_by}
        for source in group.inplace.values():
            after |= {other for other in read_by.get(source, ()) if other != number}
        effect = _has_effect(group)
        if effect and last_effect is not None:
            after.add(last_effect)
        if effect or group.inplace:
            after.update(checks)
        if effect:
            last_effect = number
        if group in partition.checked:
            checks.append(number)
        made_by |= dict.fromkeys((*writes, *group.inplace), number)
        for key in (*reads, *group.inplace.values()):
            read_by.setdefault(key, []).append(number)
        found.append(after)
    return found


def _has_effect(group: Group) -> bool:
    return group.library is not None and group.library.node.effect is not None


def work_of(lowered: Lowered) -> float:
    """What a kernel costs, in bytes of memory traffic that take as long."""
    return lowered.count.bytes + FLOP * lowered.count.flops
