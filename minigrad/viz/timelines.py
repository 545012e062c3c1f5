"""`mg.viz.timeline`: where the time of a call goes: eager mode above the program on one axis, and what models predict.

Times differ from run to run, so only the picture and the tables contain them, not the text that a notebook compares.
With `runs=0` nothing is measured: the axis is the model's, and the picture is the same on every machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compile.fusion.count import Count
from ..compile.look.cost import Cost, KernelCost
from ..compile.look.placement import Placement, System
from ..compile.look.record import RUNS, Record
from ..compile.look.roofline import Machine, compared
from ..compile.look.watching import Call
from ..compile.nodes.graph import Graph
from ..compile.running.profiler import Event, trace_of
from ..compile.running.profiler import profile as recorder
from ..compile.running.program import Program
from ..compile.save.read import LoadedProgram
from ..core.tensor import Tensor
from ..support.errors import ConversionError, MinigradError
from ..support.source import in_library, line_of
from ..support.table import as_table, bytes_text, counted, time_text
from ..support.words import shown
from .charts import KINDS, Chart
from .compiled import Shown, eager_record_of, jitted_once, programs_of, records_of
from .drawing import Drawing, themed
from .exhibit import Exhibit
from .lanes import STROKES, Band, Bar, Lane, Work, chart_of, finite, legend_of, merged
from .naming import layer_name, operation_name
from .phases import BACKWARD, FORWARD, UPDATE, Section
from .predictions import Predicted, at_the_roof, facts_of, gain_of, on_devices, on_workers
from .scene import excerpt_at

MOST = 4_000  # bars of a lane in a page: of more, the shortest that follow each other are one
ROWS = 300  # of a table in a page
WALKS = "/minigrad/autodiff/reverse.py", "/minigrad/autodiff/quick_steps.py"  # the code of the backward pass
HEAD = ("step", "what", "time", "of all", "calls", "bytes", "operations", "of the roof", "bound by")
VIEW = "timeline"
BYTES, SECONDS = "B", "s"  # the units of the axis
OUTSIDE = "outside of all modules"
EAGERLY, PROGRAM, GRADIENT = "eagerly", "as a program", "in its gradient"


def timeline(
    what: Any, *args: Any, runs: int = RUNS, workers: int | None = None, devices: str | Sequence[str] = (),
    system: System | None = None, others: Mapping[str, Placement] | None = None, **kwargs: Any,
) -> Timeline:
    """Show where the time of a call goes: eagerly and as a program, with Python between the kernels, on one axis.

    The quickest of `runs` is shown; side effects of the function happen in every run.  If the last call of a jitted
    function kept values for its gradient, that program and the gradient's are timed.  A finished `mg.profile()` can be
    given instead of a function.  `.save("run.json")` writes a trace for ui.perfetto.dev.

    Dashed lanes are models: the program on several `workers`, and node by node on `devices` (with the limits of a
    `system`, and with placements of your own, `others`, by name).  `runs=0` shows the models alone.

    >>> x = mg.ones((8, 8))
    >>> mg.viz.timeline(lambda x: mg.tanh(x @ x).sum(), x)
    <timeline: 3 launches eagerly, 2 as a program>
    >>> mg.viz.timeline(lambda x, y: (x @ x).sum() + (y @ y).sum(), x, x + 1, runs=0)
    <timeline of 5 launches in 3 levels: by the model, 2 workers are 1.99 times as fast as one>
    """
    devices, others = [devices] if isinstance(devices, str) else [*map(str, devices)], others or {}
    _check(runs, workers, system, others)
    if isinstance(what, recorder):
        return timeline_of([_recorded(what)])
    if isinstance(what, Tensor) or not (callable(what) or isinstance(what, (Program, Graph, LoadedProgram))):
        programs_of(what, args, kwargs, VIEW)  # raises the error
    placed = on_devices(what, args, kwargs, devices, system, others) if devices or others else []
    if isinstance(what, (Program, Graph)) or not runs:
        return _placed(placed) if placed else _predicted(programs_of(jitted_once(what), args, kwargs, VIEW), workers)
    found = timeline_of(*_records(what, args, kwargs, runs), workers)
    found.bands += placed
    return found


def _check(runs: int, workers: int | None, system: Any, others: Any) -> None:
    """Refuse arguments that show nothing."""
    wrong = f"{runs} runs cannot be made" if runs < 0 else f"{workers} workers run nothing"
    if runs < 0 or (workers is not None and workers < 1):
        raise MinigradError(f"timeline: {wrong}", expect="runs=0 or more, workers=1 or more")
    if not (system is None or isinstance(system, System)):
        raise ConversionError(f"timeline: system is a System, not {shown(system)}")
    if not (isinstance(others, Mapping) and all(isinstance(each, Mapping) for each in others.values())):
        raise ConversionError(f"timeline: others are dictionaries from nodes to devices, by name, not {shown(others)}")


# What is measured -----------------------------------------------------------------------------------------------------


def _records(what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], runs: int) -> tuple[list[Record], str]:
    """The records of eager mode, of the program and of its gradient; and why one of them is missing."""
    if isinstance(what, LoadedProgram):
        return records_of(what, args, kwargs, runs), ""
    records, why = list[Record](), ""
    try:
        records = records_of(what, args, kwargs, runs)
    except MinigradError as error:
        why = f"It does not run as a program: {_first_line(error)}"
    try:
        records.insert(0, eager_record_of(what, args, kwargs, len(records) > 1, runs))
    except MinigradError as error:
        if not records:
            raise
        why = f"It does not run eagerly: {_first_line(error)}"
    return records, why


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _recorded(run: recorder) -> Record:
    """What a finished `mg.profile()` noted, as a record."""
    start = min([event.begin for event in run.events], default=0.0)
    events = [event._replace(begin=event.begin - start, end=event.end - start) for event in run.events]
    return Record("recorded", max([event.end for event in events], default=0.0), events)


def timeline_of(records: Sequence[Record], why: str = "", workers: int | None = None) -> Timeline:
    """The timeline of measured calls: a band for each, and below them what models predict of the programs.

    `why` is the reason why a record is missing.

    >>> timeline_of([Record("eagerly", 1e-5, [Event("add", "main", 1e-6, 4e-6, Count(8, 4, 1, 1))])])
    <timeline: 1 launch eagerly>
    """
    machine, busy = _limits(records)
    bands, events, now = list[Band](), list[Event](), 0.0
    for way, record in zip(_ways(records), records):
        begin = now if way == GRADIENT else 0.0
        now = begin + record.seconds
        bands.append(_band(way, record, begin, machine))
        events += [e._replace(thread=f"{way}: {e.thread}", begin=begin + e.begin, end=begin + e.end)
                   for e in record.events]
    counts = [sum([event.launches for event in record.events]) for record in records]
    about = ", ".join([f"{counted(count, 'launch', 'launches') if not i else count} {band.title}"
                       for i, (count, band) in enumerate(zip(counts, bands))])
    words = [f"{band.title}: {', '.join([bar.work.name for bar in band.bars]) or 'no kernel'}" for band in bands]
    says = _compared(bands, records) + "".join([f" {each}." for each in (why, busy) if each])
    found = Timeline(f"timeline: {about}", [*bands], says, "\n".join(words), SECONDS, events=events)
    programs = [Predicted(band.title, record.program.schedule, {bar.work.name: bar.work for bar in band.bars},
                          record.program.schedule.work / (record.in_launches or 1e-6))
                for record, band in zip(records, bands) if record.program is not None]
    found.predict(programs, workers)
    found.bands += [at_the_roof(band.title, band.bars) for band in bands if band.title != EAGERLY] if machine else []
    return found


def _ways(records: Sequence[Record]) -> Iterator[str]:
    """What each record is called."""
    several = sum([record.way == PROGRAM for record in records]) > 1
    names = iter([f"{PROGRAM} that keeps values", *[GRADIENT] * len(records)])
    return (next(names) if several and record.way == PROGRAM else record.way for record in records)


def _compared(bands: Sequence[Band], records: Sequence[Record]) -> str:
    """The whole times beside each other, in a sentence."""
    said = "; ".join([f"{band.title} {band.says}" for band in bands])
    if len(records) > 1 and records[0].way == EAGERLY and (whole := sum([each.seconds for each in records[1:]])):
        times = records[0].seconds / whole
        said += f": {times:,.0f} times as long eagerly" if times >= 10 else f": {times:.2g} times as long eagerly"
    return f"{said[:1].upper()}{said[1:]}."


def _limits(records: Sequence[Record]) -> tuple[Machine | None, str]:
    """The limits of this machine, or why they are not known."""
    for record in records:
        if record.program is not None:
            try:
                return record.roofline().machine, ""
            except MinigradError as error:
                return None, f"No share of the roof is shown: {_first_line(error)}"
    return None, ""


def _band(way: str, record: Record, begin: float, machine: Machine | None) -> Band:
    """The band of a record, whose call begins at a time: a lane for each thread, and one for transfers on their way."""
    around = {event.name.rpartition("/")[0] for event in record.events} - {""}
    done = [(event, work) for event, work in zip(record.events, _works(record)) if event.name not in around]
    if len({work.section.phase for _, work in done} - {""}) < 2:  # phases say nothing
        done = [(event, work._replace(section=Section("", work.section.layer))) for event, work in done]
    threads: dict[str, list[Bar]] = {}
    for event, work in done:
        threads.setdefault(event.thread, []).append(Bar(begin + event.begin, begin + event.end, work))
    threads = {thread: finite(bars) for thread, bars in threads.items()} or {"": []}
    bounded = _bounded([bar for bars in threads.values() for bar in bars], machine)
    whole, busy = [seconds if math.isfinite(seconds) else 0.0 for seconds in (record.seconds, record.in_launches)]
    lanes = [
        Lane(f"thread {number}" if number > 1 else "", [bar._replace(work=bounded[bar.work]) for bar in bars],
             (begin, begin + whole) if number == 1 else (0.0, 0.0))
        for number, bars in enumerate(threads.values(), 1)
    ]
    launches = counted(sum([event.launches for event in record.events]), "launch", "launches")
    share = f", {100 * (1 - busy / whole):.0f} % Python" if whole else ""
    says = f"{time_text(whole)}, of which {time_text(busy)} in {launches}{share}"
    return Band(way, [*lanes, *_transfers(lanes[0].bars)], says)


def _bounded(bars: Sequence[Bar], machine: Machine | None) -> dict[Work, Work]:
    """Each work, with what bounds it on this machine: for its shortest time, as a roofline has it."""
    least: dict[Work, float] = {}
    for bar in bars:
        least[bar.work] = min(least.get(bar.work, bar.end - bar.begin), bar.end - bar.begin)
    found = {}
    for work, seconds in least.items():
        if machine is None or not work.cost.launches:
            found[work] = work
        else:
            step = compared(KernelCost(work.name, "", [], work.cost), seconds, machine)
            found[work] = work._replace(best=step.best, bound=step.bound)
    return found


def _transfers(bars: Sequence[Bar]) -> Iterator[Lane]:
    """Lanes of what is on its way between ranks: from the begin of an all-reduce to the end of the step that waits."""
    started, lanes = dict[str, Bar](), list[list[Bar]]()
    for bar in bars:
        name, _, number = bar.work.name.rpartition("_")
        if name == "start_allreduce":
            started[number] = bar
        elif name == "wait" and number in started:
            first = started.pop(number)
            work = Work(f"on its way: {first.work.name}", f"on its way {number}", kind="other")
            free = next((lane for lane in lanes if lane[-1].end <= first.begin), None)
            if free is None:
                lanes.append(free := [])
            free.append(Bar(first.begin, bar.end, work))
    return (Lane("on its way", lane) for lane in lanes)


# What runs ------------------------------------------------------------------------------------------------------------


def _works(record: Record) -> Iterator[Work]:
    """What each event of a record is: a step of the program, one of a loop in it, or a kernel of eager mode."""
    steps = works_of(record.program) if record.program is not None else {}
    calls = iter(record.calls)
    for event in record.events:
        inside = "/" in event.name
        if event.name in steps:
            yield steps[event.name]._replace(cost=event.cost)
        elif record.calls and not inside:
            yield _of_call(event, next(calls, None))
        else:
            outer, _, name = event.name.rpartition("/")
            section = steps[outer].section if outer in steps else Section(_phase_of(outer) if outer else "", "")
            yield Work(event.name, name, section, _kind(name, event.launches), event.cost)


def _kind(name: str, launches: int) -> str:
    return "quiet" if not launches else "kernel" if name.startswith("kernel_") else "library"


def works_of(program: Program) -> dict[str, Work]:
    """What each step of a program is, by its name."""
    about, facts = Shown("", program, {}), facts_of(program.schedule)
    sections, devices, found = about.sections, about.devices, {}
    several = len({*devices.values()}) > 1
    checks = [KernelCost(step.name, "check", [], Count()) for step in program.schedule.steps if step.kind == "check"]
    for each in (*checks, *Cost(program).kernels):
        section = sections.get(each.name, Section("", ""))
        rows, near = facts.get(each.name, ([], []))
        computes = ", ".join([operation_name(node.node) for node in each.nodes[:12]])
        rows = [("computes", computes)] * bool(computes) + [("on", devices.get(each.name, ""))] * several + rows
        made = next((node.node.where for node in reversed(each.nodes) if node.node.where is not None), None)
        moves = each.name.startswith("to_device")
        kind = "other" if moves else _kind("kernel_" * (each.kind == "kernel"), each.program.launches)
        line = None if made is None else (*line_of(made), made)
        label = label_of(each, section) + f" on {devices.get(each.name, '')}" * several
        found[each.name] = Work(each.name, label, section, kind, each.program, tuple(rows), line, tuple(near))
    return found


def label_of(kernel: KernelCost, section: Section) -> str:
    """A step in words: its layer, and what it computes last."""
    last = operation_name(kernel.nodes[-1].node) if kernel.nodes else kernel.name
    return f"{section.layer}: {last}" if section.layer else last


def _of_call(event: Event, call: Call | None) -> Work:
    """A kernel of eager mode: its phase by the functions that led to it, its layer, and the user's line."""
    if call is None:
        return Work(event.name, event.name, cost=event.cost)
    files = [code.co_filename.replace("\\", "/") for code, _ in call.frames]
    if any(file.endswith(WALKS) for file in files):
        section = Section(BACKWARD, "")
    elif any("/minigrad/optim/" in file for file in files):
        section = Section(UPDATE, "")
    else:
        section = Section(FORWARD, layer_name(call.scope[:2]))
    label = f"{section.layer}: {event.name}" if section.layer else event.name
    user = [(code.co_filename, line) for code, line in call.frames[:1] if not in_library(code.co_filename)]
    return Work(event.name, label, section, "library", event.cost, line=(*user[0], None) if user else None)


def _phase_of(name: str) -> str:
    """The phase of a program of eager mode, by the name of its step."""
    begins = {"gradient of ": BACKWARD, "update of ": UPDATE}
    return next((phase for begin, phase in begins.items() if name.startswith(begin)), FORWARD)


def _predicted(programs: Sequence[Shown], workers: int | None) -> Timeline:
    """The timeline of programs that are not measured: models alone, in bytes of traffic."""
    plan, launches = programs[0].program.schedule, Cost(programs[0].program).program.launches
    about = f"timeline of {counted(launches, 'launch', 'launches')} in {counted(len(plan.levels), 'level')}"
    says = "Nothing was measured: the axis is the time of a model, in bytes of memory traffic that take as long."
    words = "\n\n".join([str(each.program.schedule) for each in programs])
    found = Timeline(about, [], says, words, BYTES)
    found.predict([Predicted(each.title, each.program.schedule, works_of(each.program)) for each in programs], workers)
    if found.most > 1:
        found.title += f": by the model, {gain_of(plan).says}"
    return found


def _placed(bands: list[Band]) -> Timeline:
    """The timeline of a graph on several devices, by the model alone."""
    now, best = bands[0].end, min(bands, key=lambda band: band.end)
    gain = now / best.end if best.end else 1.0
    says = "none is faster than as it is" if gain < 1.005 else f"{best.title!r} is {gain:.2f} times as fast"
    about = f"timeline of {counted(len(bands), 'placement')}: by the model, {says}"
    return Timeline(about, bands, "Nothing was measured: these are times of a model.", "", SECONDS)


# The view -------------------------------------------------------------------------------------------------------------


@dataclass(repr=False)
class Timeline(Exhibit):
    """Bands of lanes on one axis, the measured ones first.

    `front` is a picture with its title that is the same on every machine: a stored notebook shows it instead.
    """

    script = "timeline"
    title: str
    bands: list[Band]
    says: str
    words: str
    unit: str
    workers: int = 1
    most: int = 1
    events: list[Event] = field(default_factory=list)
    front: tuple[Drawing, str] | None = None

    def predict(self, programs: Sequence[Predicted], workers: int | None) -> None:
        """Add the programs on several workers, and set the number of workers that is shown first."""
        gains = [gain_of(program.plan) for program in programs]
        self.most = max([gain.most for gain in gains], default=1)
        self.workers = min(workers or max([gain.worth for gain in gains], default=1), self.most)
        for program in programs:
            self.bands += on_workers(program, self.most)

    def said(self) -> str:
        """The launches of each way; without measurements, what more workers gain."""
        return self.title if self.front is None else self.front[1]

    def text(self) -> str:
        """The steps of each way, and what models say of devices: no measured time."""
        if self.front is not None:
            return self.front[1]
        return "\n".join([self.words, *[f"{band.title}: {band.says}" for band in self.bands if band.placed]]).strip()

    def to_svg(self) -> str:
        """All lanes that are shown at first, from the begin to the end."""
        return self._picture().to_svg(self.said())

    def _picture(self) -> Drawing:
        return self.chart() if self.front is None else self.front[0]

    def chart(self) -> Chart:
        """The lanes as a picture."""
        shown = [band for band in self.bands if not band.shown_for or self.workers in band.shown_for]
        return chart_of(shown, self._named)

    def _named(self, value: float) -> str:
        return bytes_text(value) if self.unit == BYTES else time_text(value)

    def _forms(self) -> dict[str, Callable[[], str | bytes]]:
        return {**super()._forms(), ".json": self._trace}

    def _trace(self) -> str:
        return json.dumps(trace_of(self.events))

    def rows(self, band: Band, layers: bool = False) -> list[tuple[str, ...]]:
        """The table of a band, what takes longest first: a row for each step, or for each phase and layer."""
        together: dict[str, list[Bar]] = {}
        for bar in band.bars:
            key = bar.work.section.title or OUTSIDE if layers else bar.work.name
            together.setdefault(key, []).append(bar)
        whole = sum([bar.end - bar.begin for bar in band.bars]) or 1.0
        times = {key: sum([bar.end - bar.begin for bar in bars]) for key, bars in together.items()}
        return [self._row(key, together[key], times[key], whole) for key in sorted(times, key=lambda key: -times[key])]

    def _row(self, key: str, bars: Sequence[Bar], time: float, whole: float) -> tuple[str, ...]:
        count = sum([bar.work.cost for bar in bars], Count())
        bounds = {bar.work.bound for bar in bars} - {""}
        roof = f"{sum([bar.work.best for bar in bars]) / time:.0%}" if bounds and time else ""
        labels = {bar.work.label for bar in bars} - {key}
        what = labels.pop() if len(labels) == 1 else ""
        moved = (bytes_text(count.bytes), f"{count.flops:,}") if count.launches else ("", "")
        share = f"{time / whole:.0%}"
        return key, what, self._named(time), share, f"{len(bars):,}", *moved, roof, ", ".join(sorted(bounds))

    def table(self, which: int = 0, layers: bool = False) -> str:
        """The table of a band as text."""
        return as_table(HEAD, self.rows(self.bands[which], layers), left=2)

    def data(self) -> dict[str, Any]:
        """Everything that is shown, as plain data: each work and each line of code once, and their numbers."""
        works, lines = dict[Work, int](), dict[tuple[str, int, Any], int]()
        bands = [self._drawn(band, works) for band in self.bands]
        facts = [self._facts(work, lines) for work in works]
        return {
            "about": self.title, "says": self.says, "unit": self.unit, "bands": bands, "works": facts, "head": HEAD,
            "lines": [excerpt_at(*key) for key in lines], "most": self.most, "workers": self.workers, "kinds": KINDS,
            "strokes": STROKES, "tables": self._tables(), "legend": legend_of(self.bands), "outside": OUTSIDE,
            "front": None if self.front is None else self.front[0].to_svg(self.front[1], themed),
            "files": {"run.json": self._trace()} if self.events else {},
        }

    def _drawn(self, band: Band, works: dict[Work, int]) -> dict[str, Any]:
        """A band as plain data.  Of a long lane, the shortest bars that follow each other are one."""
        says, lanes = band.says, []
        for lane in band.lanes:
            bars = lane.bars if len(lane.bars) <= MOST else merged(lane.bars, 2.0 * band.end / MOST)
            if len(bars) < len(lane.bars):
                says += f"; {len(lane.bars):,} steps are drawn as {len(bars):,} bars"
            placed = [[self._at(bar.begin), self._at(bar.end), works.setdefault(bar.work, len(works)),
                       *[1] * bar.critical] for bar in bars]
            lanes.append([lane.name, [*map(self._at, lane.python)], placed])
        return {"title": band.title, "says": says, "model": band.model, "for": band.shown_for, "lanes": lanes}

    def _at(self, value: float) -> float:
        """A place on the axis: microseconds, or bytes."""
        return round(value * (1.0 if self.unit == BYTES else 1e6), 3)

    def _tables(self) -> list[dict[str, Any]]:
        """The tables of the page, those of programs first: by step, and by layer where there are several."""
        some = [band for band in self.bands if not band.model] or self.bands[:1]
        found = []
        for band in sorted(some, key=lambda band: band.title == EAGERLY):
            steps, layers = self.rows(band)[:ROWS], self.rows(band, layers=True)
            found.append({"name": f"{band.title}, by step", "rows": steps, "layers": False})
            if len(layers) > 1:
                found.append({"name": f"{band.title}, by layer", "rows": layers[:ROWS], "layers": True})
        return found

    def _facts(self, work: Work, lines: dict[tuple[str, int, Any], int]) -> dict[str, Any]:
        """What a click on a bar shows, as plain data."""
        cost = [work.cost.launches, work.cost.bytes, work.cost.flops]
        line = None if work.line is None else lines.setdefault(work.line, len(lines))
        return {
            "name": work.name, "label": work.label, "section": work.section.title, "phase": work.section.phase,
            "kind": work.colours, "cost": cost, "rows": work.rows, "line": line, "near": work.near,
            "best": self._at(work.best), "bound": work.bound,
        }
