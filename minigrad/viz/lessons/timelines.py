"""`mg.viz.timeline`: how a function spends its time, eagerly and as a program: in Python and in kernels.

Times differ from run to run, so only the picture and the tables contain them, not the text that a notebook compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ...compile.look.record import Record
from ...compile.look.watching import Call
from ...compile.save.read import LoadedProgram
from ...support.errors import MinigradError
from ...support.table import counted, time_text
from ..charts import KINDS, fitting, legend
from ..compiled import eager_record_of, records_of
from ..drawing import Drawing, round_numbers
from ..exhibit import check_function
from ..flipbook import Block, Flipbook, Page
from ..naming import layer_name
from ..phases import BACKWARD, FORWARD, PHASES, UPDATE, Section
from ..profiles import sections_in
from ..svg import LINE, text_width

MANY = 60  # kernels of one run: of more, those of one part of the program that follow each other share a page
WIDTH, LANE, GAP, TOP = 860.0, 46.0, 56.0, 46.0
WALKS = "/minigrad/autodiff/reverse.py", "/minigrad/autodiff/quick_steps.py"  # the code of the backward pass
SMALL = 3.0  # a run so many times as short as the longest is also drawn larger


class Span(NamedTuple):
    """A kernel or a library call: its begin and end, in microseconds since the run began.  Checks launch nothing."""

    name: str
    begin: float
    end: float
    section: Section = Section("", "")
    launches: int = 1


class Run(NamedTuple):
    """The quickest of some runs: the way of running, the total time, and the kernels."""

    way: str
    total: float
    spans: list[Span]

    @property
    def kernels(self) -> float:
        """The time in kernels and library calls, in microseconds."""
        return sum(span.end - span.begin for span in self.spans if span.launches)

    @property
    def launches(self) -> int:
        """How many kernels and library calls ran."""
        return sum(span.launches for span in self.spans)

    @property
    def groups(self) -> list[list[Span]]:
        """The kernels, each alone, or in a long run those of one part of the program that follow each other."""
        if len(self.spans) <= MANY:
            return [[span] for span in self.spans]
        return [list(group) for _, group in groupby(self.spans, lambda span: span.section)]


def timeline(function: Callable[..., Any], *args: Any, runs: int = 7, **kwargs: Any) -> Flipbook:
    """Time a function, eagerly and as a program of `mg.jit`, and show the time in Python and in kernels.

    Eager mode runs as it does for you: composed functions are programs there, too, unless `mg.eager_programs` is off.
    If the last call of a jitted function kept values for its gradient, that program and the gradient's are timed.  The
    quickest of `runs` is shown; side effects of the function happen in every run.

    >>> x = mg.ones((8, 8))
    >>> mg.viz.timeline(lambda x: mg.tanh(x @ x).sum(), x)
    <timeline: 3 launches eagerly, 2 as a program>
    """
    check_function("timeline", function, "mg.viz.timeline(lambda: x @ w)")
    if runs < 1:
        raise MinigradError(f"timeline: {runs} runs show nothing", expect="runs=1 or more")
    try:
        records, why = records_of(function, args, kwargs, runs), ""
    except MinigradError as error:
        records, why = [], f"It does not run as a program: {str(error).splitlines()[0]}"
        if isinstance(function, LoadedProgram):
            raise
    ways: list[Run] = []
    if not isinstance(function, LoadedProgram):
        ways.append(_eager(eager_record_of(function, args, kwargs, len(records) > 1, runs)))
    names = ["as a program"] if len(records) < 2 else ["as a program that keeps values", *["in its gradient"] * 9]
    ways += [_program(name, record) for name, record in zip(names, records)]
    return timeline_of(ways, why)


def timeline_of(ways: Sequence[Run], why: str = "") -> Flipbook:
    """The timeline of measured runs; `why` is the reason why one run is missing.

    >>> timeline_of([Run("eagerly", 10.0, [Span("add", 1.0, 4.0)])])
    <timeline: 1 launch eagerly>
    """
    counts = [f"{_many(ways[0])} {ways[0].way}", *[f"{run.launches} {run.way}" for run in ways[1:]]]
    pages = [Page(_drawn(ways, None), _summed(ways, why), _blocks(ways, why))]
    for w, run in enumerate(ways):
        pages += [_page(ways, w, i) for i in range(len(run.groups))]
    words = "\n".join(f"{run.way}: {', '.join(span.name for span in run.spans) or 'no kernel'}" for run in ways)
    return Flipbook("timeline: " + ", ".join(counts), [pages], cover=0, unit="part", words=words)


def _eager(record: Record) -> Run:
    """The run of eager mode: kernels with the layers that were running, and the programs of composed functions."""
    kernels = iter([_section(call) for call in record.calls])
    sections = [
        _section_of_program(event.name) if "/" in event.name else next(kernels, Section("", ""))
        for event in record.events
    ]
    return _run(record.way, record, sections)


def _program(way: str, record: Record) -> Run:
    sections = sections_in(record)
    return _run(way, record, [sections.get(event.name, Section("", "")) for event in record.events])


def _run(way: str, record: Record, sections: Sequence[Section]) -> Run:
    spans = [
        Span(event.name, event.begin * 1e6, event.end * 1e6, section, event.launches)
        for event, section in zip(record.events, sections)
    ]
    return Run(way, record.seconds * 1e6, spans)


def _section(call: Call) -> Section:
    """The phase of a call, by the functions that led to it, and the layer whose forward pass was running."""
    files = [code.co_filename.replace("\\", "/") for code, _ in call.frames]
    if any(file.endswith(WALKS) for file in files):
        return Section(BACKWARD, "")
    if any("/minigrad/optim/" in file for file in files):
        return Section(UPDATE, "")
    return Section(FORWARD, layer_name(call.scope[:2]))


def _section_of_program(name: str) -> Section:
    """The phase of a program of eager mode, by the name of its step."""
    begins = {"gradient of ": BACKWARD, "update of ": UPDATE}
    return Section(next((phase for begin, phase in begins.items() if name.startswith(begin)), FORWARD), "")


def _many(run: Run) -> str:
    return counted(run.launches, "launch", "launches")


def _share(run: Run) -> str:
    return f"{100 * (1 - run.kernels / run.total):.0f} %" if run.total else "–"


def _summed(ways: Sequence[Run], why: str) -> str:
    said = [f"{run.way} {_time(run.total)}, of which {_time(run.kernels)} in {_many(run)}" for run in ways]
    text = "; ".join(said)
    if len(ways) > 1 and ways[1].total:
        text += f": {ways[0].total / ways[1].total:.2g} times as long eagerly"
    return f"{text[0].upper()}{text[1:]}.{' ' + why if why else ''}"


def _blocks(ways: Sequence[Run], why: str) -> tuple[tuple[str, Block], ...]:
    rows = [[run.way, _time(run.total), _time(run.kernels), _share(run)] for run in ways]
    found: list[tuple[str, Block]] = [("", ("table", {"head": ["", "in all", "kernels", "Python"], "rows": rows}))]
    for run in ways:
        taken: dict[str, list[float]] = {}
        for span in run.spans:
            taken.setdefault(span.name, []).append(span.end - span.begin)
        listed = sorted(taken.items(), key=lambda item: -sum(item[1]))[:8]
        rows = [[name, str(len(times)), _time(sum(times))] for name, times in listed]
        found.append((run.way, ("table", {"head": ["what", "calls", "time"], "rows": rows})))
    return tuple(found)


def _page(ways: Sequence[Run], which: int, at: int) -> Page:
    run = ways[which]
    group = run.groups[at]
    before = run.groups[at - 1][-1].end if at else 0.0
    gap = max(0.0, group[0].begin - before)
    took = _time(sum(span.end - span.begin for span in group))
    if len(group) == 1:
        name, kernels = group[0].name, "the kernel"
        says = f"{run.way}, call {at + 1}: {name} ran for {took}, after {_time(gap)} of Python."
    else:
        name, kernels = group[0].section.title or "outside of all modules", f"the {len(group)} kernels"
        whole = _time(group[-1].end - group[0].begin)
        says = f"{run.way}, {name}: {counted(len(group), 'kernel')} in {whole}, of which {took} in kernels."
    rows = [["Python before it", _time(gap)], [kernels, took],
            ["done after", _time(group[-1].end)], ["in all", _time(run.total)]]
    return Page(_drawn(ways, (which, at)), says, (("times", ("table", {"head": None, "rows": rows})),))


def _time(microseconds: float) -> str:
    return time_text(microseconds / 1e6)


def _drawn(ways: Sequence[Run], here: tuple[int, int] | None) -> Drawing:
    """A lane for each run on one scale: Python grey, the kernels in colour.  A short run also has a larger lane."""
    longest = max([run.total for run in ways], default=1.0) or 1.0
    lanes = [(w, run, WIDTH / longest) for w, run in enumerate(ways)]
    for w, run in enumerate(ways):
        if 0 < run.total * SMALL < longest:
            lanes.append((w, run, WIDTH / run.total))
    drawing = Drawing(WIDTH, TOP + len(lanes) * (LANE + GAP) - 4)
    begin, phases = len(drawing.pieces), {span.section.phase for run in ways for span in run.spans} - {""}
    kinds = [(KINDS[phase][0], phase) for phase in PHASES if phase in phases and len(phases) > 1]
    samples = [(colour, colour, text) for colour, text in kinds or [("there", "kernels")]]
    transfers = [list(_transfers(run.spans)) for run in ways]
    moved = [("now", "now", "on its way between ranks")] * any(transfers)
    legend(drawing, 0.0, 9.0, [*samples, ("quiet", "tint", "Python"), *moved])
    firsts = [1 + sum(len(run.groups) for run in ways[:w]) for w in range(len(ways))]
    for number, (_, run, scale) in enumerate(lanes):
        y = TOP + number * (LANE + GAP)
        larger = number >= len(ways)
        note = f", {scale * longest / WIDTH:.0f} times as large" if larger else f": {_time(run.total)}"
        note += "" if larger else f", {_share(run)} Python"
        drawing.text(0, y - 7, f"{run.way}{note}", bold=True)
        drawing.rect(0, y, run.total * scale, LANE, "tint", "quiet", round=2, about="Python")
        _axis(drawing, run.total if larger else longest, y + LANE + 1, larger or number == len(ways) - 1)
    drawing.merge(begin)
    for number, (w, run, scale) in enumerate(lanes):
        y = TOP + number * (LANE + GAP)
        for i, group in enumerate(run.groups):
            begin = len(drawing.pieces)
            x, wide = group[0].begin * scale, (group[-1].end - group[0].begin) * scale
            name = (group[0].section.layer or group[0].section.phase) if len(group) > 1 else group[0].name
            about = f"{group[0].section.title or name}: {_time(group[-1].end - group[0].begin)}"
            colour = KINDS[group[0].section.phase][0] if group[0].section.phase and len(phases) > 1 else "there"
            if len(group) > 1:
                drawing.rect(x, y, wide, LANE, colour, colour, thick=0.5, round=1, opacity=0.3, about=about,
                             go=f"page:{firsts[w] + i}")
            for left, right in _joined(group, 0.8 / scale):
                drawing.rect(left * scale, y + 0.5, max((right - left) * scale, 0.8), LANE - 1, colour, "paper",
                             thick=0.4, round=1, about=about, go=f"page:{firsts[w] + i}")
            if here == (w, i):
                drawing.rect(x - 1, y - 2, wide + 2, LANE + 4, "none", "now", thick=3.0, round=2)
            name = fitting(name, wide - 8, bold=True)
            room = text_width(name, LINE, bold=True) + 8
            if name and wide > room:
                drawing.rect(x + (wide - room) / 2, y + LANE / 2 - 8, room, 16, colour, "none")
                drawing.text(x + wide / 2, y + LANE / 2 + 4, name, anchor="middle", fill="paper", bold=True)
            drawing.merge(begin)
        for row, (name, left, right) in enumerate(transfers[w]):
            about = f"{name}: on its way for {_time(right - left)}"
            drawing.rect(left * scale, y + LANE - 5 - row % 3 * 6, max((right - left) * scale, 0.8), 4, "now", "paper",
                         thick=0.4, about=about)
    return drawing


def _transfers(spans: Sequence[Span]) -> Iterator[tuple[str, float, float]]:
    """The begin of each all-reduce that a program starts, and the end of the step that waits for it."""
    started: dict[str, Span] = {}
    for span in spans:
        name, _, number = span.name.rpartition("_")
        if name == "start_allreduce":
            started[number] = span
        elif name == "wait" and number in started:
            yield started[number].name, started[number].begin, span.end


def _joined(group: Sequence[Span], gap: float) -> Iterator[tuple[float, float]]:
    """The begins and ends of kernels; those with a smaller gap between them are one."""
    begin, end = group[0].begin, group[0].end
    for span in group[1:]:
        if span.begin - end > gap:
            yield begin, end
            begin = span.begin
        end = span.end
    yield begin, end


def _axis(drawing: Drawing, longest: float, y: float, named: bool) -> None:
    """Times below a lane."""
    unit, name = (1e3, "milliseconds") if longest >= 1e4 else (1.0, "microseconds")
    for tick in round_numbers(0.0, longest / unit, 8) if named else ():
        x = tick * unit * WIDTH / longest
        drawing.path([(x, y), (x, y + 4)], "quiet", thick=1)
        if 4 < x < WIDTH - 100:
            drawing.text(x, y + 15, f"{tick:g}", fill="quiet", anchor="middle")
    if named:
        drawing.text(WIDTH, y + 15, name, fill="quiet", anchor="end")
