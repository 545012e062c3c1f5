"""`mg.viz.schedule`: which steps of a program wait for which, and what many workers make of it.

How long a step takes is the compiler's estimate, in bytes of memory traffic that take as long: nothing is measured, so
the picture is the same on every machine.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

from ..compile.running.order import Schedule, ScheduledStep
from ..support.table import bytes_text
from .charts import Chart
from .compiled import programs_of, view_of
from .drawing import round_numbers
from .exhibit import Charted, Frame, mark

WIDTH, LEFT, RIGHT, LANE = 860.0, 84.0, 16.0, 30.0
WORKERS = 8  # that the slider goes to, if more than one finds something to do


class Turn(NamedTuple):
    """A step when it is its turn: with whom, from when to when."""

    step: ScheduledStep
    worker: int
    begin: float
    end: float


def schedule(what: Any, *args: Any, workers: int = 1, **kwargs: Any) -> Charted:
    """The steps of a program over time: levels, the critical path, and how long so many workers take.

    >>> mg.viz.schedule(lambda x, y: (x @ x).sum() + (y @ y).sum(), mg.ones((8, 8)), mg.ones((8, 8)))
    <schedule of 5 steps in 3 levels: 2 workers are 1.99 times as fast as one>
    """
    shown = programs_of(what, args, kwargs, "schedule")
    return view_of(shown, lambda each: _drawn(each.program.schedule, workers))


def turns(plan: Schedule, workers: int) -> list[Turn]:
    """Who does what when: a worker who is free takes, of the steps that wait for nothing, the one with most to come.

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
    running: list[tuple[float, int, int]] = []  # (when it ends, which, with whom)
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


def _drawn(plan: Schedule, workers: int) -> Charted:
    widest = max([len(level) for level in plan.levels], default=1)
    most = max(1, min(WORKERS, widest))
    critical = {step.number for step in plan.critical_path}
    frames = [_gantt(plan, count, critical) for count in range(1, most + 1)]
    levels = f"{len(plan.levels)} level{'s' * (len(plan.levels) != 1)}"
    about = f"schedule of {len(plan.steps)} step{'s' * (len(plan.steps) != 1)} in {levels}"
    if most > 1:
        gain = _length(turns(plan, 1)) / (_length(turns(plan, most)) or 1.0)
        about += f": {most} workers are {gain:.2f} times as fast as one"
    names = {step.number: step.name for step in plan.steps}
    marks = {}
    for step in plan.steps:
        followers = [s.number for s in plan.steps if step.number in s.after]
        rows = [
            ("waits for", ", ".join(names[n] for n in step.after) or "nothing"),
            ("awaited by", ", ".join(names[n] for n in followers) or "nobody"),
            ("level", str(step.level)), ("memory traffic", bytes_text(step.bytes)), ("operations", f"{step.flops:,}"),
            ("takes as long as", f"{bytes_text(step.cost)} of traffic"),
            ("critical", "yes: nothing is done sooner than this chain" if step.number in critical else "no"),
        ]
        marks[f"k{step.number}"] = mark(step.name, rows, [f"k{n}" for n in (*step.after, *followers)])
    return Charted(about, frames, marks, str(plan), "workers", max(0, min(workers, most) - 1))


def _length(done: list[Turn]) -> float:
    return max([turn.end for turn in done], default=0.0)


def _gantt(plan: Schedule, workers: int, critical: set[int]) -> Frame:
    done = turns(plan, workers)
    alone, whole = plan.work, _length(done)
    chart = Chart(WIDTH, 40.0 + LANE * workers + 44.0 + LANE * 0.8)
    scale = (WIDTH - LEFT - RIGHT) / (alone or 1.0)  # the same for all: with more workers, the picture gets shorter
    top = 14.0
    bottom = top + LANE * workers
    for worker in range(workers):
        chart.text(LEFT - 10.0, top + LANE * worker + LANE / 2 + 3.0, f"worker {worker}", fill="quiet", anchor="end")
    for tick in round_numbers(0.0, alone or 1.0, 6):
        x = LEFT + tick * scale
        chart.path([(x, top), (x, bottom + 6.0)], "line", thick=1.0)
        chart.text(x, bottom + 18.0, bytes_text(tick), fill="quiet", anchor="middle")
    for step, worker, begin, end in done:
        kind = "other" if step.number in critical else "kernel" if step.kind == "kernel" else "library"
        place = LEFT + begin * scale + 0.5, top + LANE * worker + 3.0, (end - begin) * scale - 1.0, LANE - 6.0
        chart.bar(*place, kind, f"k{step.number}", step.name, f"{step.name}, {bytes_text(step.cost)}")
    for at, what in ((plan.span, "critical path"), (whole, "done")):
        if at:
            x, dashes = LEFT + at * scale, "4 3" if what == "done" else ""
            chart.path([(x, top - 6.0), (x, bottom + 6.0)], "back", thick=1.6, dashes=dashes)
    legend = "orange: on the critical path, which ends at the solid line.  Time in bytes of traffic."
    chart.text(LEFT, bottom + 38.0, legend, fill="quiet")
    gain = alone / whole if whole else 1.0
    limit = alone / plan.span if plan.span else 1.0
    says = (
        f"{workers} worker{'s' * (workers != 1)}: {gain:.2f} times as fast as one. "
        f"However many there were, it would be at most {limit:.2f} times."
    )
    return Frame(f"{workers}", chart, says)
