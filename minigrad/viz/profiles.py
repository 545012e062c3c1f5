"""`mg.viz.profile` and `mg.viz.roofline`: how long each step of a program takes, and how much work it does.

Times differ from run to run, so outputs that are compared should not contain these views.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil, log10
from typing import Any

from ..compile.look.cost import KernelCost
from ..compile.look.record import Record
from ..compile.look.roofline import Roofline
from ..compile.nodes.graph import Graph
from ..compile.running.profiler import Event, trace_of
from ..compile.running.profiler import profile as recorder
from ..compile.running.program import Program
from ..core.tensor import Tensor
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted, time_text
from .charts import KINDS, Chart, Marks, legend, mark
from .compiled import Shown, no_kernels, programs_of, records_of
from .flipbook import Flipbook, Page
from .naming import operation_name
from .phases import PHASES, Section

WIDTH, LEFT, RIGHT, LANE, LANES = 860.0, 150.0, 16.0, 26.0, 44.0
MANY = 60  # steps: of more, those of one section that follow each other are one bar
NAMED = 12  # the slowest steps, whose names stand in a roofline
BARS = 30  # steps in the chart of times
COLUMNS = ("time", "of all", "calls", "bytes", "operations")


def profile(what: Any, *args: Any, runs: int = 5, **kwargs: Any) -> Flipbook:
    """Run a function as a program, and show the time, the bytes and the operations of each step.

    After one run to warm up, the fastest of `runs` is shown; side effects of the function happen in every run.  A
    finished `mg.profile()` can be given instead of a function.  `.save("run.json")` writes a trace for
    chrome://tracing and ui.perfetto.dev.

    >>> f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    >>> mg.viz.profile(f, mg.ones((4, 4))).data()["about"].partition(":")[0]
    'profile of 2 launches in 1 thread'
    """
    if isinstance(what, recorder):
        return _drawn(Record("", _span(what.events), what.events), json.dumps(what.trace()))
    return _of_records("profile", _drawn, what, args, kwargs, runs)


def _of_records(
    view: str, draw: Callable[[Record], Flipbook], what: Any, args: Any, kwargs: Mapping[str, Any], runs: int
) -> Flipbook:
    """A picture of a function's program, and below it of its gradient's if that ran."""
    if runs < 1:
        raise MinigradError(f"a {view} of {runs} runs shows nothing", expect="runs=1 or more")
    if isinstance(what, (Program, Graph)):
        raise MinigradError("a program has no arguments to run on", hint=f"mg.viz.{view}(f, *arguments)")
    if isinstance(what, Tensor) or not callable(what):
        programs_of(what, args, kwargs, view)  # raises the error
    found: Flipbook | None = None
    for record in reversed(records_of(what, args, kwargs, runs)):
        if record.program is None:
            raise no_kernels(view)
        found = draw(record).titled(record.title, found)
    assert found is not None
    return found


def sections_in(record: Record) -> dict[str, Section]:
    """The phase and the layer of each step of the program that ran."""
    return Shown("", record.program, {}).sections if record.program is not None else {}


def _span(events: Sequence[Event]) -> float:
    return max([e.end for e in events], default=0.0) - min([e.begin for e in events], default=0.0)


def _drawn(record: Record, trace: str = "") -> Flipbook:
    events, sections = record.events, sections_in(record)
    costs = {each.name: each for each in record.cost.kernels} if record.cost else {}
    threads = list(dict.fromkeys(event.thread for event in events))
    launches = sum([event.launches for event in events])
    steps = f"{counted(launches, 'launch', 'launches')} in {counted(len(threads), 'thread')}"
    taken: dict[str, list[float]] = {}
    for event in record.launched:
        taken.setdefault(event.name, []).append(event.end - event.begin)
    marks: Marks = {}
    rows = []
    whole = record.seconds or 1.0
    for name, times in sorted(taken.items(), key=lambda item: -sum(item[1])):
        seconds = sum(times)
        about = [("time", time_text(seconds)), ("of all", f"{seconds / whole:.0%}"), ("calls", str(len(times)))]
        about += _rates(costs.get(name), seconds / len(times))
        marks[f"p{name}"] = mark(name, about)
        rows.append((name, *[dict(about).get(column, "") for column in COLUMNS]))
    pages = [
        Page(_over_time(record, threads, sections), "when each step ran, thread by thread", name="over time"),
        Page(_by_step(taken, sections), "the steps that took longest", name="by step"),
    ]
    parts: dict[str, list[float]] = {}
    for event in record.launched:
        if event.name in sections:
            parts.setdefault(sections[event.name].title, []).append(event.end - event.begin)
    if len(parts) > 2:
        for name, times in parts.items():
            about = [("time", time_text(sum(times))), ("of all", f"{sum(times) / whole:.0%}")]
            marks[f"p{name}"] = mark(name or "outside of all modules", [*about, ("steps", str(len(times)))])
        known = {section.title: section for section in sections.values()}
        pages.append(Page(_by_step(parts, known), "each phase and layer, the longest first", name="by layer"))
    says = f"profile of {steps}: {time_text(record.seconds)}, of which {time_text(record.in_launches)} in launches"
    return Flipbook(
        says, [pages], marks=marks, cover=0, unit="picture", words=as_table(("step", *COLUMNS), rows, left=1),
        files={"run.json": trace or json.dumps(trace_of(events))},
    )


def _rates(cost: KernelCost | None, seconds: float) -> list[tuple[str, str]]:
    """The work of a step, and how much of it the step does in a second."""
    if cost is None:
        return []
    taken = cost.program
    rows = [("computes", _computed(cost)), ("bytes", bytes_text(taken.bytes))]
    rows.append(("operations", f"{taken.flops:,}"))
    if seconds:
        rows += [("bytes a second", f"{bytes_text(taken.bytes / seconds)}/s")]
        rows += [("operations a second", f"{taken.flops / seconds / 1e9:.2f} G/s")]
    return rows


def _over_time(record: Record, threads: list[str], sections: Mapping[str, Section]) -> Chart:
    events = record.events
    begin = min([e.begin for e in events], default=0.0) if record.program is None else 0.0
    top, bottom = 30.0, 30.0 + LANES * len(threads)
    chart = Chart(WIDTH, bottom + 36.0)
    legend(chart, LEFT, 12.0, _phases(sections))
    most = (record.seconds or 1e-9) * 1e6
    ends = (LEFT, WIDTH - RIGHT), (top - 4.0, bottom + 4.0)
    scale = 1e6 * chart.ruler(*ends, most, lambda tick: time_text(tick / 1e6))
    for number, thread in enumerate(threads):
        chart.lane(LEFT, top + LANES * number, LANES, thread[-20:])
    for bar in _bars(events, sections):
        first, taken = bar[0], bar[-1].end - bar[0].begin
        section = sections.get(first.name, Section("", ""))
        title = first.name if len(bar) == 1 else section.title
        label = section.layer or (first.name if len(bar) == 1 else section.phase)
        place = LEFT + (first.begin - begin) * scale, top + LANES * threads.index(first.thread) + 2
        about = f"{title}, {counted(len(bar), 'step')}, {time_text(taken)}"
        chart.bar(*place, taken * scale, LANES - 4, _kind(first.name, sections), f"p{title}", label, about)
    return chart


def _bars(events: list[Event], sections: Mapping[str, Section]) -> Iterator[list[Event]]:
    """The bars of a chart: each step, or in a long program the steps in one section that follow each other."""
    for (_, section), run in groupby(events, lambda event: (event.thread, sections.get(event.name))):
        bar = list(run)
        yield from [bar] if len(events) > MANY and section is not None and section.title else [[step] for step in bar]


def _by_step(taken: Mapping[str, list[float]], sections: Mapping[str, Section]) -> Chart:
    longest = sorted(taken.items(), key=lambda item: -sum(item[1]))[:BARS]
    chart = Chart(WIDTH, 20.0 + LANE * max(1, len(longest)))
    most = sum(longest[0][1]) if longest else 1.0
    for number, (name, times) in enumerate(longest):
        y, seconds = 10.0 + LANE * number, sum(times)
        wide = (WIDTH - LEFT - RIGHT - 90.0) * seconds / (most or 1.0)
        chart.lane(LEFT, y, LANE, name, room=LEFT - 14.0)
        place, about = (LEFT, y + 3.0, wide, LANE - 6.0), f"{name}, {time_text(seconds)}"
        chart.bar(*place, _kind(name, sections), f"p{name}", "", about)
        chart.text(LEFT + wide + 8.0, y + LANE / 2 + 3.0, time_text(seconds), fill="quiet")
    return chart


def _kind(name: str, sections: Mapping[str, Section] | None = None) -> str:
    if sections and name in sections and sections[name].phase:
        return sections[name].phase
    return "kernel" if name.startswith("kernel_") else "library"


# The roofline ---------------------------------------------------------------------------------------------------------


def roofline(what: Any, *args: Any, runs: int = 5, **kwargs: Any) -> Flipbook:
    """Compare the speed of each step of a program with the limits of this machine: memory traffic and arithmetic.

    The quickest of `runs` is shown; side effects of the function happen in every run.

    >>> mg.viz.roofline(lambda x: mg.tanh(x @ x), mg.ones((8, 8)), runs=2).data()["about"].partition(":")[0]
    'roofline of 2 launches'
    """
    return _of_records("roofline", roofline_of, what, args, kwargs, runs)


def roofline_of(record: Record) -> Flipbook:
    """The roofline of a record as a chart."""
    found, sections = record.roofline(), sections_in(record)
    marks: Marks = {}
    for step in found.steps:
        taken = step.kernel.program
        marks[f"r{step.kernel.name}"] = mark(step.kernel.name, [
            ("computes", _computed(step.kernel)), ("time", time_text(step.seconds)),
            ("bound by", step.bound), ("at best", time_text(step.best)), ("attained", f"{step.attained:.0%}"),
            ("operations for a byte", f"{taken.intensity:.2f}"), ("bytes", bytes_text(taken.bytes)),
            ("operations", f"{taken.flops:,}"),
        ])
    launches = sum([step.kernel.program.launches for step in found.steps])
    about = f"roofline of {counted(launches, 'launch', 'launches')}: {found.limits()}"
    return Flipbook(about, [[Page(_roof(found, sections), about, name="roofline")]], marks=marks, words=repr(found))


def _roof(found: Roofline, sections: Mapping[str, Section]) -> Chart:
    """Operations per second over operations per byte, both axes logarithmic."""
    machine = found.machine
    points = []
    for step in found.steps:
        taken = step.kernel.program
        points.append((step, max(taken.intensity, 0.01), max(taken.flops / (step.seconds or 1.0), 1e5)))
    ridge = machine.flops / machine.bandwidth
    low_x = 10.0 ** int(log10(min([x for _, x, _ in points] + [0.1])) - 1)
    high_x = 10.0 ** int(log10(max([x for _, x, _ in points] + [ridge])) + 1.5)
    high_y = max([machine.flops, *[y for _, _, y in points]]) * 2.5
    low_y = min([y for _, _, y in points] + [machine.bandwidth * low_x]) / 2.0
    width, height, left, bottom = 900.0, 420.0, 96.0, 376.0
    chart = Chart(width, height)

    def across(x: float) -> float:
        return left + (width - left - 20.0) * log10(x / low_x) / log10(high_x / low_x)

    def up(y: float) -> float:
        return bottom - (bottom - 22.0) * log10(y / low_y) / log10(high_y / low_y)

    for power in _powers(low_x, high_x * 1.001):
        chart.path([(across(power), 22.0), (across(power), bottom)], "line", thick=1.0)
        chart.text(across(power), bottom + 15.0, f"{power:g}", fill="quiet", anchor="middle")
    for power in _powers(low_y, high_y):
        chart.path([(left, up(power)), (width - 20.0, up(power))], "line", thick=1.0)
        chart.text(left - 8.0, up(power) + 3.5, f"{power / 1e9:g} GFLOP/s", fill="quiet", anchor="end")
    below = "operations for each byte of memory traffic"
    chart.text((left + width) / 2, bottom + 34.0, below, fill="quiet", anchor="middle")
    cached = [machine.cache] if any(step.bound == "cache" for step in found.steps) else []
    for bandwidth in (machine.bandwidth, *cached):
        start = max(low_y, bandwidth * low_x)
        edge = across(start / bandwidth), up(start)
        ends = [(across(machine.flops / bandwidth), up(machine.flops)), (width - 20.0, up(machine.flops))]
        chart.path([edge, *ends], "back", thick=1.6)
        chart.text(edge[0] + 6.0, edge[1] - 8.0, "memory" if bandwidth == machine.bandwidth else "cache", fill="back")
    chart.text(width - 20.0, 10.0, f"the limits: {found.limits()}", fill="back", anchor="end")
    dots = [(across(x), up(y)) for _, x, y in points]
    slowest = sorted(range(len(points)), key=lambda i: -points[i][0].seconds)
    longest = points[slowest[0]][0].seconds if slowest else 1.0
    sizes = [3.5 + 8.0 * (step.seconds / longest) ** 0.5 for step, *_ in points]
    for i in slowest:  # the shortest on top
        step, name = points[i][0], points[i][0].kernel.name
        about = f"{name}: {time_text(step.seconds)}, {step.attained:.0%} of what is possible"
        chart.point(*dots[i], _kind(name, sections), f"r{name}", "", about, sizes[i])
    chart.keep_free([(x - size, x + size, y) for (x, y), size in zip(dots, sizes)])
    named: dict[str, int] = {}  # of steps with the same name, the slowest
    for i in slowest:
        named.setdefault(_step_name(points[i][0].kernel, sections), i)
    for name, i in list(named.items())[:NAMED]:
        chart.name(*dots[i], name, sizes[i])
    end = legend(chart, left, 10.0, _phases(sections))
    chart.text(end, 10.0, "a larger dot takes more of the time", fill="quiet")
    return chart


def _phases(sections: Mapping[str, Section]) -> list[tuple[str, str, str]]:
    """The phases of a program, for a legend."""
    phases = {section.phase for section in sections.values()}
    return [(*KINDS[phase], phase) for phase in PHASES if phase in phases]


def _computed(kernel: KernelCost) -> str:
    return ", ".join([operation_name(each.node) for each in kernel.nodes])


def _step_name(kernel: KernelCost, sections: Mapping[str, Section]) -> str:
    """A step in words: its layer, and what it computes last."""
    layer = sections[kernel.name].layer if kernel.name in sections else ""
    return f"{layer}: {operation_name(kernel.nodes[-1].node)}" if layer and kernel.nodes else kernel.name


def _powers(low: float, high: float) -> list[float]:
    """The powers of ten between two numbers."""
    return [10.0**power for power in range(ceil(log10(low) - 1e-9), ceil(log10(high)))]
