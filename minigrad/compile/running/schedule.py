"""Schedules: which steps of a plan wait for which, which run at the same time, and what each of them costs.

The *level* of a step is the length of the longest chain of steps that it waits for.  The steps of a level are
independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

from ...core.primitive import P
from ...devices.threads import in_blocks
from ...support.context import setting, switched_variable
from ...support.errors import CompileError
from ...support.source import ON_BEHALF_OF, caller
from ...support.table import as_table
from ..fusion.count import Count, Part, count_inside, eager_parts, functions_of, kept_by
from ..nodes.thresholds import FLOP, PRODUCT_FLOP, WORTH_A_THREAD_BYTES, WORTH_SHARING_BYTES
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


# What steps cost, loops and branches included: see `fusion.count` for what counts -------------------------------------

COPIES = "copies of results"


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
    return [(Count() if isinstance(step, Check) else step.count, _attrs(step)) for step in plan.steps]


def _attrs(step: Step) -> Mapping[str, Any]:
    return step.attrs if isinstance(step, Call) else {}


def own_count(step: Step) -> Count:
    """The cost of a step alone: nothing for a check; for a loop that ran, its copies, as its steps have their own."""
    attrs = _attrs(step)
    if functions_of(attrs):
        return kept_by(attrs, attrs["body"].tally.last or 0) if "body" in attrs else Count()
    return Count() if isinstance(step, Check) else step.count


def copies_of(plan: Plan) -> Count:
    """The cost of the copies of results at the end of a run."""
    return sum([_copied(plan, number) for number in range(len(plan.outputs)) if plan.is_copied(number)], Count())


def _copied(plan: Plan, number: int) -> Count:
    read = plan.outputs[number]
    buffer = plan.buffers[read.buffer]
    different = prod([size for size, stride in zip(read.shape, read.strides) if stride])
    itemsize = buffer.dtype.itemsize
    return Count(min(different, buffer.size) * itemsize, read.size * itemsize, 0, 1)


# Executors: run the steps one after the other, or the steps of a level at the same time -------------------------------
#
# Native kernels and array libraries release the interpreter's lock while they compute, so threads are enough.  They are
# the same threads that share a large kernel.  A step that shares its work uses the threads that are free, and does not
# wait for a thread that has not begun.


EXECUTORS = ("serial", "auto", "parallel")
RUNNING: ContextVar[Any] = switched_variable("minigrad profile", None)  # the active `profile`

Run = Callable[[Any], object]  # called with the starts of the generators of random numbers


class Named(NamedTuple):
    """The function of a step, with its name and its own cost after a run, without that of the steps inside a loop."""

    name: str
    run: Run
    cost: Callable[[], Count]


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
    if executor not in EXECUTORS:
        raise no_executor(executor)
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


def no_executor(name: str) -> CompileError:
    """The error for an unknown executor."""
    return CompileError(f"there is no executor named {name!r}", expect=" or ".join(EXECUTORS))


def as_steps(levels: Sequence[Sequence[Named]]) -> list[Run]:
    """A function for each level, which runs all its calls."""
    return [level[0].run if len(level) == 1 else partial(together, level) for level in levels if level]


def is_profiled() -> bool:
    """Whether a profile is active."""
    return RUNNING.get() is not None


def in_turn(runs: Sequence[Run], starts: Any) -> None:
    """Run functions one after the other."""
    for run in runs:
        run(starts)


def together(calls: Sequence[Named], starts: Any) -> None:
    """Run all calls of a level at the same time; if several fail, raise the first error."""
    errors: dict[int, Exception] = {}

    def work(number: int, _: int) -> None:
        try:
            calls[number].run(starts)
        except Exception as error:
            errors[number] = error

    with setting(ON_BEHALF_OF, ON_BEHALF_OF.get() or caller(2)):
        in_blocks(work, len(calls), 1)
    if errors:
        raise errors[min(errors)]
