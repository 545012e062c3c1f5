"""`mg.viz.timeline`: where the time of a call goes: eager mode above the program on one axis, and what models predict.

Times differ from run to run, so only the picture and the tables contain them, not the text that a notebook compares.
With `runs=0` nothing is measured: the axis is the model's, and the picture is the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..compile.fusion.count import Count
from ..compile.look.placement import System
from ..compile.look.ran import recorded
from ..compile.look.record import BUSY, EAGERLY, RECORDED_RUNS, Making, Record, in_turns, record_of_call
from ..compile.look.roofline import Measured
from ..compile.nodes.graph import Graph
from ..compile.running.plan import CHECK, Check
from ..compile.running.profiler import profile as recorder
from ..compile.running.program import Program
from ..compile.running.steps import COPIES, attrs_of
from ..compile.save.read import LoadedProgram
from ..core.primitive import P
from ..support.errors import ConversionError, MinigradError
from ..support.table import bytes_text, bytes_unit, counted, time_text, time_unit
from ..support.words import shown as shown_value
from ..support.words import whole
from .bodies import BRANCHES
from .compiled import FunctionCall, Shown, check_computes, eager_record_of, jitted_once, programs_of, put_back
from .drawing import KINDS
from .exhibit import Data, Exhibit
from .lanes import INDICES, NAMES, PYTHON, Band, Bar, Lane, Work, between, chart_of, colour_phases, legend_of
from .naming import answered, call_of
from .phases import BACKWARD, Section
from .predictions import measured, on_devices, on_workers
from .scene import excerpt
from .sites import places_of
from .titles import Titles, listed, word_of

FIRST, WORKERS = 2, 8  # of the model: shown first, and at most
BYTES = "B"  # the unit of the axis, if nothing was measured
ALONE = "The gradient runs alone: no Python of a backward pass."


def timeline(
    what: Any, *args: Any, runs: int = RECORDED_RUNS, workers: int | None = None, devices: str | Sequence[str] = (),
    system: System | None = None, **kwargs: Any,
) -> Timeline:
    """Show where the time of a call goes: eagerly and as a program, with Python between the kernels, on one axis.

    The quickest call of all `runs` is shown.  A run makes many short calls, for 25 ms.  What they change by name, as
    the parameters of a training step or a list of losses, is put back, and what they print is not shown; other side
    effects of the function happen in each call.  If the last call of a jitted function kept values for its gradient,
    that program and the gradient's are timed.  A finished `mg.profile()` can be given instead of a function (its own
    `.save("run.json")` writes a trace for ui.perfetto.dev).

    Dashed lanes are models: `workers=2` adds the program on two workers, and `devices=` its graph, node by node, on
    these devices (with the limits of a `system`).  `runs=0` shows the models alone.

    >>> x = mg.ones((8, 8))
    >>> mg.viz.timeline(lambda x: mg.tanh(x @ x).sum(), x)
    <timeline: 3 launches eagerly, 2 as a program>
    >>> mg.viz.timeline(lambda x, y: (x @ x).sum() + (y @ y).sum(), x, x + 1, runs=0)
    <timeline: 5 launches on 2 workers, by the model, 1.99 times as fast as one worker>
    """
    devices = [devices] if isinstance(devices, str) else [*devices]
    if whole(runs, 0) is None or whole(1 if workers is None else workers, 1) is None:
        raise MinigradError(f"timeline: {runs=}, {workers=}", expect="runs=0 or more, workers=1 or more")
    if not isinstance(system, System | None):
        raise ConversionError(f"timeline: system is a System, not {shown_value(system)}")
    if isinstance(what, recorder):
        return timeline_of([Record("recorded", max([event.end for event in what.events], default=0.0), what.events)])
    call = jitted_once("timeline", what, args, kwargs)
    placed = on_devices(call, devices, system) if devices else []
    records, why = ([], "") if isinstance(what, (Program, Graph)) or not runs else _records(call, runs)
    needed = not (records or placed) or any(record.program is not None for record in records)
    programs = programs_of(call, "timeline") if needed else []
    if programs:
        check_computes(programs[0])
    return timeline_of(records, why, workers, programs, placed)


# What is measured -----------------------------------------------------------------------------------------------------


def _records(call: FunctionCall, runs: int) -> tuple[list[Record], str]:
    """The records of eager mode, of the program and of its gradient; and why one of them is missing."""
    makings, why, gradient = list[Making](), "", False
    if isinstance(call.what, LoadedProgram):
        return in_turns([record_of_call(call.run, lambda: call.what.program, runs)]), why
    with put_back(call):
        try:
            gradient = len(call.ran().parts) > 1
            makings = [_begun(recorded(*call, runs))]
        except MinigradError as error:
            why = f"It does not run as a program: {error.first_line}"
        try:
            makings.insert(0, _begun(eager_record_of(call, gradient, runs)))
        except MinigradError as error:
            if not makings:
                raise
            why = f"It does not run eagerly: {error.first_line}"
        records = in_turns(makings)
    while (gradient_of := records[-1].gradient) is not None:
        records.append(gradient_of)
    return records, why


def _begun(making: Making) -> Making:
    """The record that is made, after the first call, which may fail."""
    next(making)
    return making


def timeline_of(
    records: Sequence[Record], why: str = "", workers: int | None = None, programs: Sequence[Shown] = (),
    placed: Sequence[Band] = (),
) -> Timeline:
    """The timeline of measured calls: a band for each, and below them what models predict of the programs.

    `why` is the reason why a record is missing.  `programs` are those of the records, with the names of their values.
    Without records, models alone are shown: bands that are `placed`, or the programs on several workers, in bytes.

    >>> from minigrad.compile.running.profiler import Event
    >>> timeline_of([Record("eagerly", 1e-5, [Event("add", "main", 1e-6, 4e-6, Count(8, 4, 1, 1))])])
    <timeline: 1 launch eagerly>
    """
    known = {each.program: Titles(each) for each in programs}
    bands, plans = list[Band](), list[tuple[str, Any, Any]]()  # and programs that workers run: schedules and steps
    begin = 0.0
    for before, record in zip([None, *records], records):
        title, steps = record.way, dict[str, Work]()
        if before and before.gradient:
            title, begin = "in its gradient", begin + before.seconds
        elif record.gradient is not None:
            title += " that keeps values"
        if (program := record.program) is not None:
            roof = dict[str, Measured]()  # how near each step is to the limits of this machine
            try:
                roof = {step.kernel.name: step for step in record.roofline().steps}
            except MinigradError as error:
                why = why or "No share of the machine's limits is shown: " + error.first_line
            steps = works_of(known[program], roof)
            plans.append((title, measured(program.schedule, record.events), steps))
        bands.append(_band(title, record, begin, _works(record, steps, [*known.values()])))
    if not records:
        plans = [(each.title, each.program.schedule, works_of(known[each.program])) for each in programs]
    first = min(workers or FIRST, WORKERS)
    models = [on_workers(*plan, n + 1) for plan in plans for n in range(WORKERS) if workers or not records]
    about = ", ".join([
        f"{counted(count, 'launch', 'launches') if not i else count} {band.title}"
        for i, (count, band) in enumerate(zip([record.count.launches for record in records], bands))])
    if not records:
        best = min(placed or [models[first - 1]], key=lambda band: band.end)
        launches = counted(sum([titles.cost.program.launches for titles in known.values()]), "launch", "launches")
        about = best.title if placed else f"{launches} on {counted(first, 'worker')}"
        about += f", {best.says.partition(';')[0]}"
    busy = f"{BUSY.capitalize()}: a call may take less time." * any(record.busy for record in records)
    unit = "s" if records or placed else BYTES
    says = [
        _compared(records), "Workers are a model: steps and checks, in measured times." * bool(models), busy,
        f"{why}." * bool(why),
    ] if records else [
        "Nothing was measured: these are times of a model.",
        "Bytes are memory traffic that takes as long." * (unit == BYTES),
    ]
    shown = [*bands, *models, *placed]
    colour_phases(shown)
    return Timeline(f"timeline: {about}", shown, " ".join(filter(None, says)), unit, first)


def _compared(records: Sequence[Record]) -> str:
    """The whole times beside each other, and the parts that differ, in a sentence.

    In eager mode, an operation checks its indices in Python, which no record tells from other Python.
    """
    eager, *programs = records
    if eager.way != EAGERLY or not sum([each.seconds for each in programs]):
        return ""
    if len(programs) > 1:
        busy = eager.in_launches / (sum([each.in_launches for each in programs]) or 1.0)
        return f"Launches take {busy:,.1f} times as long in eager mode. {ALONE}"
    ratio = eager.seconds / programs[0].seconds
    first = f"is {ratio:,.1f} times as fast as" if ratio >= 1 else f"takes {1 / ratio:,.1f} times as long as"
    checks = " and checks of indices" * bool(programs[0].parts["checks of indices"])
    times = {f"Python{checks}": [each.seconds - each.in_launches for each in records],
             "launches": [each.in_launches for each in records]}
    parts = [f"{time_text(abs(before - now))} {'less' if before > now else 'more'} in {part}"
             for part, (before, now) in times.items()]
    return f"The program {first} eager mode: {', '.join(parts)}."


def _band(title: str, record: Record, begin: float, works: Iterable[Work]) -> Band:
    """The band of a measured call that begins at a time: a lane for each thread."""
    around = {event.name.rpartition("/")[0] for event in record.events} - {""}
    found = list[tuple[str, Bar]]()
    for event, work in zip(record.events, works):
        if event.cost == Count() and work.kind != INDICES:  # a view, or a loop whose steps have bars of their own
            continue
        if event.name in around:
            event, label = event._replace(begin=event.end), f"{work.label}: rounds kept for the gradient"
            rows = (("copied", "in each round of the loop, between its steps"),)
            work = work._replace(name=f"{event.name}: kept", label=label, kind="other", rows=rows, best=0.0)
        found.append((event.thread, Bar(begin + event.begin, begin + max(event.begin, event.end), work)))
    order = dict.fromkeys([thread for thread, _ in found]) or [""]
    found.sort(key=lambda each: each[1].begin)
    whole, (python, busy, checks) = record.seconds, record.parts.values()
    gaps = between([bar for _, bar in found], begin, begin + whole)
    lanes = [Lane(f"thread {number}" * (number > 1), [bar for own, bar in found if own == thread], gaps * (number == 1))
             for number, thread in enumerate(order, 1)]
    launches = counted(record.count.launches, "launch", "launches")
    rest = f", {time_text(checks)} in checks of indices" * bool(checks)
    # Where launches, with the time to note them, fill the call, it is not known.
    rest += f", {100 * python / whole:.0f} % Python" if 200 * python > whole else ""
    rest += " and its checks" * (record.way == EAGERLY and not checks)
    says = f"{time_text(whole)}, of which {time_text(busy)} in {launches}{rest}"
    return Band(title, lanes, says)


# What runs ------------------------------------------------------------------------------------------------------------


def _works(record: Record, steps: Mapping[str, Work], parts: Sequence[Titles]) -> Iterator[Work]:
    """What each event of a record is: a step of the program, one of a loop in it, or a kernel of eager mode.

    `parts` are the titles of the program and its gradient, if there are any.
    """
    rounds = Counter[str]()
    for event, site, place in zip_longest(record.events, record.sites, places_of(record.sites, parts)):
        if event.name in steps:
            work = steps[event.name]
            turn = f"{work.turn} {rounds[event.name]}" * bool(work.turn)
            rounds[event.name] += 1
            yield work._replace(cost=event.cost, turn=turn)
            continue
        outer, _, name = event.name.rpartition("/")
        made, kind = name if hasattr(P, name) else name.rpartition("_")[0] or name, _kind(name)
        work = Work(event.name, kind=kind, cost=event.cost)
        if site:
            # Outside layers, it is a part of what the code calls.
            outer = place.whole or outer or (call_of(site) or "") * (site.of < 0 and not place.layer)
            outer = outer.replace("gradient of ", "∂").replace("_", " ")
            ran = site.program.plan.steps if site.run >= 0 else ()
            rows = [_checked(step, site) for step in ran if step.name == name and kind == INDICES]
            work = work._replace(
                section=Section(place.phase, place.layer), rows=tuple(rows),
                made=next(iter(site.frames), None), turn="".join(place.turn[1:]))
        label = word_of(outer, made) if outer else name
        yield work._replace(label=NAMES[INDICES] if kind == INDICES else (place and place.title) or label)


def _kind(name: str) -> str:
    if name.startswith(("to_device", COPIES)):
        return "other"
    if name.startswith(CHECK):
        return INDICES
    return "kernel" if name.startswith("kernel_") else "library"


def _checked(step: Check, called: Any) -> tuple[str, str]:
    """What a check of indices checks, and for what is `called`."""
    return "checks", f"that indices for {call_of(called) or step.op} are below {step.size:,}"


def works_of(titles: Titles, roof: Mapping[str, Measured] = {}) -> dict[str, Work]:
    """What each step of a program is, by its name; with its best time, if the `roof` is known."""
    program, found = titles.shown.program, dict[str, Work]()
    counts = {kernel.name: kernel.program for kernel in titles.cost.kernels}  # checks cost nothing
    several = len({node.device for node in program.graph.nodes}) > 1
    steps, plan = {step.name: step for step in program.plan.steps}, program.schedule.steps
    before = {step.name: "; ".join(dict.fromkeys([titles.of(plan[number].name) for number in step.after]))
              for step in plan}
    for name, section in titles.sections.items():
        nodes, limit, best = titles.computed.get(name, []), roof.get(name), 0.0
        label = titles.of(name) + "".join([f" on {node.device}" for node in nodes[-1:] if several])
        rows = [("computes", listed(map(titles.operation, nodes), 12))] * bool(nodes)
        if limit is not None and limit.bound != "launch":  # the time of a launch depends on what runs beside it
            best = limit.best
            said = f"{time_text(best)}, by {limit.bound}" + "; this step is faster" * (best > limit.seconds)
            rows.append(("limit of this machine", said))
        rows += [("waits for", before.get(name) or "nothing")] * (name in before)  # copies come last
        main = [node for node in nodes if titles.place(node)[0] == section.phase] or nodes
        made, step = next((node.where for node in reversed(main) if node.where), None), steps.get(name)
        if isinstance(step, Check):
            made = step.where
            rows = [_checked(step, step), *rows]
        found[name] = Work(
            name, label, section, _kind(name), counts.get(name, Count()), tuple(rows), made, best)
        for part, function in attrs_of(step).items():
            inner = getattr(function, "program", None)
            if isinstance(inner, Program) and function.tally.last != 0:  # a branch that did not run has no bars
                found |= _inside(found[name], answered(made, part == "then") * (part in BRANCHES), inner, found)
    return found


def _inside(outer: Work, branch: str, program: Program, known: Mapping[str, Work]) -> dict[str, Work]:
    """The steps of a loop or branch.  One that has the name of another's, which is known, has no words of its own."""
    found, (phase, layer), part = {}, outer.section, branch or outer.label
    for work in works_of(Titles(Shown("", program))).values():
        own = work.label.replace(f"{part}: ", "")  # a call in a module has its name
        own += " in each round" * (work.name == COPIES and not branch)
        turn = "round" * (not branch and phase != BACKWARD and "/" not in work.name)  # a gradient begins with the last
        if own == part:  # as a whole layer, of which this is a part
            own = listed(dict(work.rows).get("computes", own).split(", "))
        name = f"{outer.name}/{work.name}"
        found[name] = work._replace(  # it waits for steps that have other names here
            name=name, label=f"{part}: {own}", section=Section(phase, layer or branch), rows=work.rows[:-1],
            turn=turn)
        if name in known or own == part:
            found[name] = Work(name, outer.label, outer.section, work.kind, made=outer.made, turn=turn)
    return found


# The view -------------------------------------------------------------------------------------------------------------


@dataclass(repr=False)
class Timeline(Exhibit):
    """Bands of lanes on one axis, the measured ones first."""

    script = "timeline"
    title: str
    bands: list[Band]
    says: str
    unit: str
    workers: int = 1

    def in_words(self) -> str:
        """The steps of each way; without measurements, what models predict."""
        measured = [f"{band.title}: {', '.join([bar.work.name for bar in band.bars]) or 'no kernel'}"
                    for band in self.bands if not band.model]
        return "\n".join(measured or [f"{band.title}: {band.says}" for band in self.bands])

    def to_svg(self) -> str:
        """All lanes that are shown at first, from the begin to the end."""
        return chart_of(
            [band for band in self.bands if band.workers in (0, self.workers)],
            bytes_unit if self.unit == BYTES else time_unit,
        ).to_svg(self.said())

    def data(self) -> Data:
        """Everything that is shown, as plain data: each work once, and their numbers."""
        works = dict[Work, int]()
        bands = [self._drawn(band, works) for band in self.bands]
        return {
            "about": self.title, "says": self.says, "unit": self.unit, "bands": bands,
            "works": [self._facts(work) for work in works], "workers": self.workers,
            "kinds": KINDS, "legend": legend_of(self.bands),
        }

    def _drawn(self, band: Band, works: dict[Work, int]) -> Data:
        """A band as plain data; each bar has the number of its work."""
        lanes = [[lane.name, *[[
            [self._at(bar.begin), self._at(bar.end), works.setdefault(bar.work, len(works)), *[1] * bar.critical]
            for bar in bars] for bars in (lane.bars, lane.python)]] for lane in band.lanes]
        return {
            "title": band.title, "says": band.says, "model": band.model, "workers": band.workers, "lanes": lanes,
            "end": self._at(band.end), "brackets": [
                [(self._at(begin), self._at(end), name) for begin, end, name in level] for level in band.brackets],
        }

    def _at(self, value: float) -> float:
        """A place on the axis: microseconds, or bytes."""
        return round(value * (1.0 if self.unit == BYTES else 1e6), 3)

    def _facts(self, work: Work) -> Data:
        """What a click on a bar shows, as plain data."""
        cost, section = work.cost, work.section
        label = work.label.removeprefix(f"{section.layer}: ")
        facts = [("step", work.name)] * bool(work.name) + [("part of", section.title)] * bool(section.title)
        if cost != Count():
            facts += [("bytes", bytes_text(cost.bytes)), ("operations", f"{cost.flops:,}")]
        return {
            "name": work.name, "label": label, "row": ": ".join(dict.fromkeys(filter(None, [section.layer, label]))),
            "section": label if work.kind in (INDICES, PYTHON.kind) else section.title or "all else",
            "kind": work.colours,
            "cost": [cost.launches, cost.bytes, cost.flops], "best": self._at(work.best),
            "rows": [*facts, *work.rows],
            "code": excerpt(work.made),
        }
