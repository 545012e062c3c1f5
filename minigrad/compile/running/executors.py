"""Executors: the steps of a program one after the other, or level by level, with those of a level at the same time.

Native kernels and array libraries let go of the interpreter's lock while they compute, so that threads are enough.
The helpers are those that share a large kernel.  A step that shares its work asks them from within a level: whoever is
free takes part, and nobody waits for a helper that has not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...devices.threads import in_blocks
from ...support.context import setting
from ...support.errors import CompileError
from ...support.source import ON_BEHALF_OF, caller
from .order import Schedule, ScheduledStep
from .profiler import RUNNING, timed

EXECUTORS = ("serial", "auto", "parallel")
WORTH_SHARING = 2_000_000  # bytes, or what takes as long, from which several threads share a kernel
# From which a step gains by running beside another: a smaller one ends as a helper wakes up.  One that shares its work
# gains nothing, and matrix products are shared by their library.
WORTH_A_THREAD = 1_000_000

Run = Callable[[Any], object]  # of where the generators of random numbers begin


class Named(NamedTuple):
    """A step that can be run, with its name."""

    name: str
    run: Run


def turns(schedule: Schedule, executor: str) -> list[list[ScheduledStep]]:
    """The steps in the order of a run, in lists of those that run at the same time.

    "parallel" takes each level as a whole; "auto" only where at least two of its steps may gain by it.  "serial" is the
    default: on two cores there is nothing to gain, because what takes longer than waking up a thread does (50 to 90 µs)
    is soon large enough to share its own work.

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
    return found if len(found) < len(schedule.steps) else [[step] for step in schedule.steps]


def _pays(level: Sequence[ScheduledStep]) -> bool:
    return sum(not s.is_product and WORTH_A_THREAD <= s.cost < WORTH_SHARING for s in level) > 1


def no_executor(name: str) -> CompileError:
    """The error of a name that no executor has."""
    return CompileError(f"there is no executor named {name!r}", expect=" or ".join(EXECUTORS))


def as_steps(levels: Sequence[Sequence[Named]]) -> list[Run]:
    """A function for each level, which runs all of its calls."""
    return [level[0].run if len(level) == 1 else partial(together, level) for level in levels if level]


def as_timed_steps(levels: Sequence[Sequence[Named]]) -> list[Run]:
    """The same, with each call written down by the profile that is on."""
    return as_steps([[Named(name, timed(name, run)) for name, run in level] for level in levels])


def is_profiled() -> bool:
    """Whether somebody wants the calls to be written down."""
    return RUNNING.get() is not None


def in_turn(runs: Sequence[Run], starts: Any) -> None:
    """One after the other."""
    for run in runs:
        run(starts)


def together(calls: Sequence[Named], starts: Any) -> None:
    """All calls of a level at the same time; if some fail, the first of them is the error."""
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
