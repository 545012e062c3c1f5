"""`mg.viz.schedule`: which steps of a program run at the same time, and how long several workers take.

This is a model: the time of a step is the compiler's estimate, in bytes of memory traffic, so it is the same on every
machine.  Below it is what was measured on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from ..compile.look.cost import Cost
from ..compile.look.record import Record
from ..compile.nodes.graph import Graph
from ..compile.running.order import Schedule, ScheduledStep
from ..compile.running.program import Program
from ..support.table import bytes_text, counted, time_text
from .charts import KINDS, Chart, Marks, legend, mark
from .compiled import Shown, jitted_once, programs_of, records_of, view_of
from .flipbook import Flipbook, Page
from .phases import PHASES, Section

WIDTH, LEFT, RIGHT, LANE, BUSY = 1000.0, 84.0, 16.0, 40.0, 64.0
WORKERS = 8  # the end of the slider
NAMES = {"kernel": "kernel", "library": "library call", "other": "transfer"}  # of the kinds of bars
BESIDE = 86.0  # the height of what was measured
MANY = 60  # steps: of more, those of one section that follow each other on a worker are one bar


class Turn(NamedTuple):
    """A step that a worker runs: when it begins and ends."""

    step: ScheduledStep
    worker: int
    begin: float
    end: float


def schedule(what: Any, *args: Any, workers: int | None = None, runs: int = 5, **kwargs: Any) -> Flipbook:
    """Show which steps of a program run at the same time, the critical path, and how long several workers take.

    The times are those of a model, and a lane below shows a measured call.  Side effects of the function happen in
    every call that is measured.  A program, a graph, and a function with `runs=0` are not measured, so the picture is
    the same on all machines.  The view opens with as many workers as are worth having.

    >>> mg.viz.schedule(lambda x, y: (x @ x).sum() + (y @ y).sum(), mg.ones((8, 8)), mg.ones((8, 8)))
    <schedule of 5 launches in 3 levels: by the model, 2 workers are 1.99 times as fast as one>
    """
    what = jitted_once(what)
    shown = programs_of(what, args, kwargs, "schedule")
    records = records_of(what, args, kwargs, runs) if runs and not isinstance(what, (Program, Graph)) else []
    known = {each.program: each for each in records}
    return view_of(shown, lambda each: _drawn(each, known.get(each.program), workers))


def turns(plan: Schedule, workers: int) -> list[Turn]:
    """Which worker runs which step when.

    A free worker takes, among the steps that are ready, the step with the longest chain
    of steps after it.

    >>> x, y = mg.ones((2, 2)), mg.ones((2, 2))
    >>> plan = mg.jit(lambda x, y: (x @ x, y @ y)).program(x, y).schedule
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
        later = [ahead[other.number] for other in waiting.get(step.number, ())]
        ahead[step.number] = step.cost + max(later, default=0.0)
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


def bars_of(done: list[Turn], sections: Mapping[str, Section]) -> list[list[Turn]]:
    """The bars of a chart: each turn, or in a long program the turns in one section that follow each other."""
    bars: list[list[Turn]] = []
    last: dict[int, list[Turn]] = {}
    for turn in done:
        bar = last.get(turn.worker)
        section = sections.get(turn.step.name)
        follows = bar and bar[-1].end == turn.begin and sections.get(bar[-1].step.name) == section
        if bar and follows and section is not None and len(done) > MANY:
            bar.append(turn)
        else:
            last[turn.worker] = [turn]
            bars.append(last[turn.worker])
    return bars


def _drawn(shown: Shown, measured: Record | None, workers: int | None) -> Flipbook:
    plan, sections = shown.program.schedule, shown.sections
    widest = max([len(level) for level in plan.levels], default=1)
    most = max(1, min(WORKERS, widest))
    critical = {step.number for step in plan.critical_path}
    runs = [turns(plan, count) for count in range(1, most + 1)]
    marks = _marks(plan, critical, sections, shown.devices)
    pages = [_gantt(plan, run, critical, shown, measured, marks) for run in runs]
    launches = Cost(shown.program).program.launches
    about = f"schedule of {counted(launches, 'launch', 'launches')} in {counted(len(plan.levels), 'level')}"
    times = [_length(run) for run in runs]
    worth = next(i for i, time in enumerate(times) if time <= 1.01 * times[-1])
    if most > 1:
        gain = times[0] / (times[worth] or 1.0)
        more = f"{worth + 1} workers are {gain:.2f} times as fast as one"
        about += f": by the model, {more if worth else 'more workers gain nothing'}"
    start = worth if workers is None else max(0, min(workers, most) - 1)
    return Flipbook(about, [pages], unit="workers", start=start, cover=start, marks=marks, words=str(plan))


def _marks(
    plan: Schedule, critical: set[int], sections: Mapping[str, Section], devices: Mapping[str, str]
) -> Marks:
    """What each step waits for, and what it costs; of several devices, on which it runs."""
    names = {step.number: step.name for step in plan.steps}
    followers: dict[int, list[int]] = {}
    for step in plan.steps:
        for before in step.after:
            followers.setdefault(before, []).append(step.number)
    marks: Marks = {}
    for step in plan.steps:
        after = followers.get(step.number, [])
        rows = [
            ("waits for", ", ".join(names[n] for n in step.after) or "nothing"),
            ("needed by", ", ".join(names[n] for n in after) or "nothing"),
            ("level", str(step.level)), ("memory traffic", bytes_text(step.bytes)), ("operations", f"{step.flops:,}"),
            ("takes as long as", f"{bytes_text(step.cost)} of traffic"),
            ("critical", "yes: no number of workers is faster than this chain" if step.number in critical else "no"),
        ]
        if len({*devices.values()}) > 1:
            rows.insert(0, ("on", devices[step.name]))
        if step.name in sections and sections[step.name].title:
            rows.insert(0, ("part of", sections[step.name].title))
        marks[f"k{step.number}"] = mark(step.name, rows, [f"k{n}" for n in (*step.after, *after)])
    return marks


def _length(done: list[Turn]) -> float:
    return max([turn.end for turn in done], default=0.0)


def _gantt(
    plan: Schedule, done: list[Turn], critical: set[int], shown: Shown, measured: Record | None, marks: Marks
) -> Page:
    sections, devices = shown.sections, shown.devices
    several = len({*devices.values()}) > 1
    workers = 1 + max([turn.worker for turn in done], default=0)
    alone, whole = plan.work, _length(done)
    top = 30.0 + BUSY + 22.0
    bottom = top + LANE * workers
    chart = Chart(WIDTH, bottom + 40.0 + (BESIDE if measured else 0.0))
    # The scale is the same for all numbers of workers: with more workers, the picture gets shorter.
    scale = chart.ruler((LEFT, WIDTH - RIGHT), (top, bottom + 6.0), alone or 1.0, bytes_text)
    chart.text(WIDTH - RIGHT, bottom + 34.0, "model: time in bytes of memory traffic", fill="quiet", anchor="end")
    parallel = _busy(chart, done, workers, scale)
    for worker in range(workers):
        chart.lane(LEFT, top + LANE * worker, LANE, f"worker {worker + 1}")
    for bar in bars_of(done, sections):
        steps = [turn.step for turn in bar]
        section = sections.get(steps[0].name, Section("", ""))
        x, y, wide = LEFT + bar[0].begin * scale, top + LANE * bar[0].worker + 4.0, (bar[-1].end - bar[0].begin) * scale
        kind = section.phase or _kind(steps[0])
        place = f" on {devices[steps[0].name]}" if several and not section.layer else ""
        key, label = f"k{steps[0].number}", section.layer or steps[0].name + place
        cost = bytes_text(sum(step.cost for step in steps))
        about = f"{section.title or steps[0].name}, {cost}"
        if len(bar) > 1:
            key = f"b{steps[0].number}-{steps[-1].number}"
            rows = [("steps", str(len(bar))), ("takes as long as", f"{cost} of traffic")]
            rows += [(step.name, bytes_text(step.cost)) for step in steps[:12]]
            marks[key] = mark(section.title, rows)
            label = section.layer or section.phase
        chart.bar(x + 0.5, y, wide - 1.0, LANE - 12.0, kind, key, label, about, model=True)
        for turn in bar:
            if turn.step.number in critical:
                begin, end = LEFT + turn.begin * scale, LEFT + turn.end * scale
                chart.path([(begin, y + LANE - 9.0), (end, y + LANE - 9.0)], "now", thick=4.0)
    x = LEFT + whole * scale
    chart.path([(x, top - 6.0), (x, bottom + 6.0)], "ink", thick=1.4, dashes="4 3")
    phases = dict.fromkeys(sections[turn.step.name].phase for turn in done if turn.step.name in sections)
    kinds = [phase for phase in PHASES if phase in phases]
    kinds = kinds or [kind for kind in NAMES if any(_kind(turn.step) == kind for turn in done)]
    entries = [(*KINDS[kind], NAMES.get(kind, kind)) for kind in kinds]
    legend(chart, LEFT, 12.0, [*entries, ("now", "now", "on the critical path: no number of workers is faster")])
    gain, limit = (alone / time if time else 1.0 for time in (whole, plan.span))
    much = "the measure for the others" if workers == 1 else f"{gain:.2f} times as fast as one"
    says = f"By the model, {counted(workers, 'worker is', 'workers are')} {much}. "
    says += f"Any number of workers is at most {limit:.2f} times as fast. {parallel}"
    if measured is not None:
        says += f" Measured: {time_text(measured.seconds)} for a call."
        _beside(chart, bottom + 58.0, measured, sections)
    return Page(chart, says)


def _beside(chart: Chart, top: float, measured: Record, sections: Mapping[str, Section]) -> None:
    """The measured call: its steps, one after the other, in microseconds."""
    chart.heading(LEFT, top, f"measured on this machine: {time_text(measured.seconds)} for a call")
    seconds = measured.seconds or 1e-9
    scale = chart.ruler((LEFT, WIDTH - RIGHT), (top + 8.0, top + LANE), seconds, time_text)
    chart.lane(LEFT, top + 8.0, LANE - 8.0, "measured")
    begin = len(chart.pieces)
    for event in measured.launched:
        section = sections.get(event.name, Section("", ""))
        stroke, fill = KINDS[section.phase or ("kernel" if event.name.startswith("kernel_") else "library")]
        about = f"{event.name}: {time_text(event.end - event.begin)}"
        place = LEFT + event.begin * scale, top + 12.0, max((event.end - event.begin) * scale, 0.8), LANE - 16.0
        chart.rect(*place, fill, stroke, thick=0.7, round=1.0, about=about)
    chart.merge(begin)


def _kind(step: ScheduledStep) -> str:
    """The kind of a step's bar."""
    return "kernel" if step.kind == "kernel" else "other" if step.name.startswith("to_device") else "library"


def _busy(chart: Chart, done: list[Turn], workers: int, scale: float) -> str:
    """How many workers are busy, over time: what is above one is parallel.  Returns a sentence about it."""
    base, level = 30.0 + BUSY, (BUSY - 16.0) / max(workers, 2)
    changes: dict[float, int] = {}
    for turn in done:
        changes[turn.begin] = changes.get(turn.begin, 0) + 1
        changes[turn.end] = changes.get(turn.end, 0) - 1
    points, parallel, busy, before = [(LEFT, base)], 0.0, 0, 0.0
    for time in sorted(changes):
        parallel += (time - before) * (busy > 1)
        points.append((LEFT + time * scale, base - busy * level))
        busy, before = busy + changes[time], time
        points.append((LEFT + time * scale, base - busy * level))
    chart.path([*points, (LEFT, base)], "library", thick=1.2, fill="library-fill")
    chart.path([(LEFT, base - level), (WIDTH - RIGHT, base - level)], "quiet", thick=0.8, dashes="2 3")
    chart.lane(LEFT, base - level - 8.0, 16.0, "1 is busy")
    if workers > 1:
        chart.lane(LEFT, base - workers * level - 8.0, 16.0, f"all {workers}")
    share = parallel / _length(done) if done and _length(done) else 0.0
    if not share:
        return "No two steps run at the same time."
    return f"In {share:.0%} of the time, at least two workers are busy."
