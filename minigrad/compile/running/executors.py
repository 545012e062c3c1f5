"""Executors: run the steps of a program one after the other, or the steps of a level at the same time.

Native kernels and array libraries release the interpreter's lock while they compute, so threads are enough.  They are
the same threads that share a large kernel.  A step that shares its work uses the threads that are free, and does not
wait for a thread that has not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...devices.threads import in_blocks
from ...support.context import setting
from ...support.errors import CompileError
from ...support.source import ON_BEHALF_OF, caller
from ..fusion.count import Count
from ..nodes.thresholds import WORTH_A_THREAD_BYTES, WORTH_SHARING_BYTES
from .order import Schedule, ScheduledStep
from .profiler import RUNNING, timed

EXECUTORS = ("serial", "auto", "parallel")

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


def as_timed_steps(levels: Sequence[Sequence[Named]]) -> list[Run]:
    """The same, with each call noted in the active profile."""
    return as_steps([[each._replace(run=timed(*each)) for each in level] for level in levels])


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
