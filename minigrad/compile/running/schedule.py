"""Schedules: which steps of a plan wait for which, which run at the same time, and what each of them costs.

The *level* of a step is the length of the longest chain of steps that it waits for.  The steps of a level are
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ...support.errors import CompileError
from ...support.table import as_table
from ..fusion.count import Count, Part, count_inside, eager_parts, functions_of
from ..nodes.thresholds import WORTH_A_THREAD_BYTES, WORTH_SHARING_BYTES
from .plan import IN_PLACE, Blocked, Call, Check, Launch, Plan, has_effect
from .steps import attrs_of, copies_of, multiplies_matrices, work_of


def waits(plan: Plan) -> list[tuple[int, ...]]:
    """For each step, the numbers of the steps that it waits for.

    A step waits for the steps that write what it reads.  A step that overwrites an input also waits for all steps
    that read the input.  Steps that cannot be undone (overwriting, effects) wait for all checks before them, which
    may stop the run, and effects wait for each other.
    """
    made_by: dict[int, int] = {}
    read_by: dict[int, list[int]] = {}
    checks: list[int] = []
    effects: list[int] = []
    found = []
    for number, step in enumerate(plan.steps):
        reads, writes = plan.uses(step)
        after = {made_by[buffer] for buffer in reads if buffer in made_by}
        overwritten = [plan.buffers[i].number for i in writes if plan.buffers[i].kind == IN_PLACE]
        for source in (*overwritten, *([step.reads[0].buffer] if isinstance(step, Call) and step.in_place else [])):
            after.update(read_by.get(source, ()))
        if overwritten or has_effect(step):
            after.update(checks)
        if has_effect(step):
            after.update(effects)
            effects = [number]
        if isinstance(step, Check):
            checks.append(number)
        made_by |= dict.fromkeys(writes, number)
        for buffer in reads:
            read_by.setdefault(buffer, []).append(number)
        found.append(tuple(sorted(after)))
    return found


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
            self.steps.append(ScheduledStep(number, *where, *takes, multiplies_matrices(step), has_effect(step)))

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


# What steps cost, loops and branches included: see `fusion.count` for what counts -------------------------------------

def counts_of(plan: Plan) -> list[Count]:
    """The cost of each step.

    >>> f = mg.jit(lambda xs: mg.scan(lambda c, x: (c + mg.tanh(x), None), xs[0], xs)[0])
    >>> counts_of(f.program(mg.ones((20, 5))).plan)[0]
    Count(bytes_read=800, bytes_written=400, flops=200, launches=20)
    """
    return [count_inside(attrs, program_parts) if functions_of(attrs) else count for count, attrs in _parts(plan)]


def program_parts(function: Any) -> list[Part]:
    """The cost of each step of a function's program, and of the copies of its results."""
    plan = getattr(function.program, "plan", None)
    return eager_parts(function) if plan is None else [*_parts(plan), (copies_of(plan), {})]


def _parts(plan: Plan) -> list[Part]:
    return [(Count() if isinstance(step, Check) else step.count, attrs_of(step)) for step in plan.steps]


# Executors: which steps run one after the other, and which at the same time -------------------------------------------


EXECUTORS = ("serial", "auto", "parallel")
def turns(schedule: Schedule, executor: str) -> list[list[ScheduledStep]]:
    """The steps in the order of a run, in lists of steps that run at the same time.

    "parallel" runs each level at the same time; "auto" only where at least two of its
    steps may gain.  "serial" is the default: on two cores there is nothing to gain, because a step that takes longer
    than waking up a thread is almost large enough to share its work.

    >>> f = mg.jit(lambda x, y: (x @ x, y @ y))
    >>> schedule = f.program(mg.ones((2, 2)), mg.ones((3, 3))).schedule
    >>> [len(turns(schedule, executor)) for executor in EXECUTORS]
    [2, 2, 1]
    """
    check_executor(executor)
    found: list[list[ScheduledStep]] = []
    for level in schedule.levels:
        apart = [step for step in level if step.has_effect]
        rest = [step for step in level if not step.has_effect]
        at_once = executor == "parallel" or (executor == "auto" and _pays(rest))
        found += [rest] if at_once and rest else [[step] for step in rest]
        found += [[step] for step in apart]
    in_parts = len(found) < len(schedule.steps)
    return found if in_parts else [[step] for step in schedule.steps]


def _pays(level: Sequence[ScheduledStep]) -> bool:
    """Whether steps gain by running together: not one that shares its work, nor a product, which BLAS shares."""
    return sum(not s.is_product and WORTH_A_THREAD_BYTES <= s.cost < WORTH_SHARING_BYTES for s in level) > 1


def check_executor(name: str) -> None:
    """Raise an error for an unknown executor."""
    if name not in EXECUTORS:
        raise CompileError(f"there is no executor named {name!r}", expect=" or ".join(EXECUTORS))
