"""`mg.viz.schedule`: which steps of a program wait for which, and how long several workers take.

The time of a step is the compiler's estimate, in bytes of memory traffic.  Nothing is measured, so the picture is the
same on every machine.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

from ..compile.running.order import Schedule, ScheduledStep
from ..support.table import bytes_text
from .charts import Chart, Marks, mark
from .compiled import programs_of, view_of
from .drawing import counted
from .flipbook import Flipbook, Page

WIDTH, LEFT, RIGHT, LANE = 860.0, 84.0, 16.0, 30.0
WORKERS = 8  # the end of the slider


class Turn(NamedTuple):
    """A step that a worker runs: when it begins and ends."""

    step: ScheduledStep
    worker: int
    begin: float
    end: float


def schedule(what: Any, *args: Any, workers: int = 1, **kwargs: Any) -> Flipbook:
    """Show the steps of a program over time: levels, the critical path, and how long several workers take.

    >>> mg.viz.schedule(lambda x, y: (x @ x).sum() + (y @ y).sum(), mg.ones((8, 8)), mg.ones((8, 8)))
    <schedule of 5 steps in 3 levels: 2 workers are 1.99 times as fast as one>
    """
    shown = programs_of(what, args, kwargs, "schedule")
    return view_of(shown, lambda each: _drawn(each.program.schedule, workers))


def turns(plan: Schedule, workers: int) -> list[Turn]:
    """Which worker runs which step when.

    A free worker takes, among the steps that are ready, the step with the longest chain of steps after it.

    >>> plan = mg.jit(lambda x, y: (x @ x, y @ y)).program(mg.ones((2, 2)), mg.ones((2, 2))).schedule
    >>> [(turn.step.name, turn.worker, turn.begin) for turn in turns(plan, 2)]
    [('matmul_1', 0, 0.0), ('matmul_2', 1, 0.0)]
    """
    left = {step.number: len(step.after) for step in plan.steps}
    waiting: dict[int, list[ScheduledStep]] = {}
    for step in plan.steps:
        for before in step.after:
            waiting.setdefault(before, []).append(step)
    ahead: dict[int, float] = {}  # the longest chain from a step to the end
    for step in reversed(plan.steps):
        ahead[step.number] = step.cost + max([ahead[s.number] for s in waiting.get(step.number, ())], default=0.0)
    ready = [(-ahead[s.number], s.number) for s in plan.steps if not s.after]
    ready.sort()
    free = list(range(workers))
    running: list[tuple[float, int, int]] = []  # (its end, the step, the worker)
    now, done = 0.0, []
    while ready or running:
        while ready and free:
            number = heappop(ready)[1]
            worker = heappop(free)
            step = plan.steps[number]
            done.append(Turn(step, worker, now, now + step.cost))
            heappush(running, (now + step.cost, number, worker))
        now, number, worker = heappop(running)
        heappush(free, worker)
        for step in waiting.get(number, ()):
            left[step.number] -= 1
            if not left[step.number]:
                heappush(ready, (-ahead[step.number], step.number))
    return done


def _drawn(plan: Schedule, workers: int) -> Flipbook:
    widest = max([len(level) for level in plan.levels], default=1)
    most = max(1, min(WORKERS, widest))
    critical = {step.number for step in plan.critical_path}
    pages = [_gantt(plan, count, critical) for count in range(1, most + 1)]
    about = f"schedule of {counted(len(plan.steps), 'step')} in {counted(len(plan.levels), 'level')}"
    if most > 1:
        gain = _length(turns(plan, 1)) / (_length(turns(plan, most)) or 1.0)
        about += f": {most} workers are {gain:.2f} times as fast as one"
    start = max(0, min(workers, most) - 1)
    marks = _marks(plan, critical)
    return Flipbook(about, [pages], unit="workers", start=start, cover=start, marks=marks, words=str(plan))


def _marks(plan: Schedule, critical: set[int]) -> Marks:
    """What each step waits for, and what it costs."""
    names = {step.number: step.name for step in plan.steps}
    marks: Marks = {}
    for step in plan.steps:
        followers = [s.number for s in plan.steps if step.number in s.after]
        rows = [
            ("waits for", ", ".join(names[n] for n in step.after) or "nothing"),
            ("needed by", ", ".join(names[n] for n in followers) or "nothing"),
            ("level", str(step.level)), ("memory traffic", bytes_text(step.bytes)), ("operations", f"{step.flops:,}"),
            ("takes as long as", f"{bytes_text(step.cost)} of traffic"),
            ("critical", "yes: no number of workers is faster than this chain" if step.number in critical else "no"),
        ]
        marks[f"k{step.number}"] = mark(step.name, rows, [f"k{n}" for n in (*step.after, *followers)])
    return marks


def _length(done: list[Turn]) -> float:
    return max([turn.end for turn in done], default=0.0)


def _gantt(plan: Schedule, workers: int, critical: set[int]) -> Page:
    done = turns(plan, workers)
    alone, whole = plan.work, _length(done)
    chart = Chart(WIDTH, 84.0 + LANE * (workers + 0.8))
    top = 14.0
    bottom = top + LANE * workers
    # The scale is the same for all numbers of workers: with more workers, the picture gets shorter.
    scale = chart.ruler((LEFT, WIDTH - RIGHT), (top, bottom + 6.0), alone or 1.0, bytes_text)
    for worker in range(workers):
        chart.lane(LEFT, top + LANE * worker, LANE, f"worker {worker}")
    for step, worker, begin, end in done:
        kind = "other" if step.number in critical else "kernel" if step.kind == "kernel" else "library"
        place = LEFT + begin * scale + 0.5, top + LANE * worker + 3.0, (end - begin) * scale - 1.0, LANE - 6.0
        chart.bar(*place, kind, f"k{step.number}", step.name, f"{step.name}, {bytes_text(step.cost)}")
    for at, dashes in ((plan.span, ""), (whole, "4 3")):
        if at:
            x = LEFT + at * scale
            chart.path([(x, top - 6.0), (x, bottom + 6.0)], "back", thick=1.6, dashes=dashes)
    legend = "orange: on the critical path, which ends at the solid line.  Time in bytes of traffic."
    chart.text(LEFT, bottom + 38.0, legend, fill="quiet")
    gain, limit = (alone / time if time else 1.0 for time in (whole, plan.span))
    says = (
        f"{counted(workers, 'worker')}: {gain:.2f} times as fast as one. "
        f"Any number of workers is at most {limit:.2f} times as fast."
    )
    return Page(chart, says)
