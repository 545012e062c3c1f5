"""Lanes of bars on one axis: what threads, workers and devices do when.  What a model predicts is dashed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..compile.fusion.count import Count
from ..support.source import Where
from .drawing import DASHED, KINDS, Chart, legend, levels_of, round_numbers
from .phases import Section
from .svg import LINE, text_width

WIDTH, LEFT, RIGHT, TOP = 940.0, 92.0, 12.0, 26.0
HEADING, LANE, GAP, AXIS = 22.0, 30.0, 12.0, 24.0  # heights: a heading, a lane, below a band, the numbers of an axis
BRACKET = 16.0  # the height of names above a lane
CLOCK = 1e-9  # seconds between two bars, which the clock does not tell from none
CLOSE = 4.0  # bars of a picture that are together narrower are one
INDICES = "check"  # the kind of a step that launches nothing and takes time all the same
MIXED = "mixed"  # the kind of what belongs to no phase, or to several, beside bars that belong to one
NAMELESS = 6  # times as wide, a bar has no room for a name
NAMES = {"kernel": "kernel", "library": "library call", "other": "copy or transfer", "quiet": "Python",
         INDICES: "a check of indices", MIXED: "in no single phase"}


class Work(NamedTuple):
    """What a bar stands for: a step of a program, or a kernel of eager mode in a `turn` of a loop.

    `made` is where the user's code calls it.  `best` is the least time for its bytes and operations on this machine;
    0 if it is not known, or if a launch alone takes longer.
    """

    name: str
    label: str = ""
    section: Section = Section("", "")
    kind: str = "kernel"
    cost: Count = Count()
    rows: tuple[tuple[str, str], ...] = ()
    made: Where | None = None
    best: float = 0.0
    turn: str = ""

    @property
    def colours(self) -> str:
        """The kind whose colours it has: its phase, if the program has several."""
        return self.section.phase * (self.kind != INDICES) or self.kind


PYTHON = Work("", "Python", kind="quiet", rows=((
    "does", "your code, checks, choices of kernels, new tensors, writes"),))


class Bar(NamedTuple):
    """A piece of work with its begin and its end; `critical` if it is on the critical path."""

    begin: float
    end: float
    work: Work
    critical: bool = False


class Lane(NamedTuple):
    """Bars that do not overlap; in `python`, Python runs between them."""

    name: str
    bars: list[Bar]
    python: Sequence[Bar] = ()


class Band(NamedTuple):
    """Lanes that belong together: one way of running.

    A page shows it for one number of `workers`; without one, always.
    """

    title: str
    lanes: Sequence[Lane]
    says: str = ""
    model: bool = False
    workers: int = 0

    @property
    def bars(self) -> list[Bar]:
        """What runs, in all lanes."""
        return [bar for lane in self.lanes for bar in lane.bars]

    @property
    def brackets(self) -> list[list[tuple[float, float, str]]]:
        """Names above the first lane: the phases, in them the layers, and in these the rounds, each with its ends."""
        return levels_of([(bar.begin, bar.end, (*bar.work.section, bar.work.turn))
                          for lane in self.lanes[:1] for bar in lane.bars])

    @property
    def end(self) -> float:
        """When everything is done."""
        return max([bar.end for lane in self.lanes for bar in [*lane.bars, *lane.python]], default=0.0)


def between(bars: Sequence[Bar], begin: float, end: float) -> list[Bar]:
    """What Python does between two times, where no bar is.

    >>> [bar[:2] for bar in between([Bar(1.0, 2.0, Work("tanh_1"))], 0.0, 5.0)]
    [(0.0, 1.0), (2.0, 5.0)]
    """
    ends = [begin, *accumulate([bar.end for bar in bars], max)]
    return [Bar(a, b, PYTHON) for a, b in zip(ends, [*[bar.begin for bar in bars], end]) if b - a > CLOCK]


def colour_phases(bands: Sequence[Band]) -> None:
    """Give the bars the colours of phases, if there are several phases; else those of kinds."""
    several = len({bar.work.section.phase for band in bands for bar in band.bars} - {""}) > 1

    def coloured(work: Work) -> Work:
        if not several:
            return work._replace(section=Section("", work.section.layer))
        return work if work.section.phase or work.kind == INDICES else work._replace(kind=MIXED)

    for band in bands:
        for lane in band.lanes:
            lane.bars[:] = [bar._replace(work=coloured(bar.work)) for bar in lane.bars]


def merged(bars: Sequence[Bar], least: float) -> list[Bar]:
    """The bars; those that follow each other and are together shorter than `least` are one, like the longest of them.

    So are equal ones that touch each other, if they are too narrow for a name: they would be a comb.

    >>> bars = [Bar(0.0, 1.0, Work("a")), Bar(1.0, 3.0, Work("b"))]
    >>> bars += [Bar(begin, begin + 9.0, Work("c", "c")) for begin in (3.0, 12.0)]
    >>> [(bar.begin, bar.end, bar.work.name, bar.work.label) for bar in merged(bars, 4.0)]
    [(0.0, 3.0, 'b', ''), (3.0, 21.0, 'c', '2 × c')]
    """
    runs: list[list[Bar]] = []
    for bar in bars:
        last = runs[-1][-1] if runs else bar
        equal = bar.begin == last.end and bar.work == last.work and bar.end - last.begin < 2 * NAMELESS * least
        if runs and (equal or bar.end - runs[-1][0].begin < least):
            runs[-1].append(bar)
        else:
            runs.append([bar])
    found = list[Bar]()
    for run in runs:
        work = max(run, key=lambda bar: bar.end - bar.begin).work
        if run[1:] and {bar.work for bar in run} == {work}:
            work = work._replace(label=f"{len(run):,} × {work.label}")
        found.append(run[0]._replace(end=max([bar.end for bar in run]), work=work))
    return found


def chart_of(bands: Sequence[Band], unit_of: Callable[[float], tuple[float, str]]) -> Chart:
    """All bands on one axis, in the unit that the end of the axis has.

    >>> band = Band("as a program", [Lane("", [Bar(0.0, 2.0, Work("tanh_1", "tanh"))])])
    >>> svg = chart_of([band], lambda most: (0.001, "ms")).to_svg("one step")
    >>> ">tanh</text>" in svg, ">2000 ms</text>" in svg
    (True, True)
    """
    most, y = max([band.end for band in bands], default=0.0) or 1.0, TOP
    chart = Chart(WIDTH, TOP + sum(map(_height, bands)) + AXIS)
    legend(chart, 0.0, 12.0, legend_of(bands))
    scale, bottom = (WIDTH - RIGHT - LEFT) / most, chart.height - AXIS
    one, unit = unit_of(most)
    ticks = {LEFT + tick * scale: f"{tick / one:.6g} {unit}" for tick in round_numbers(0.0, most, 6)}
    for x, name in ticks.items():
        chart.text(x, bottom + 13.0, name, fill="quiet", anchor="middle")
    for band in bands:
        begin = 1.1 * text_width(band.title, LINE, bold=True) + 14.0
        chart.text(0.0, y + 15.0, band.title, bold=True)
        chart.text(begin, y + 15.0, band.says, fill="quiet", room=WIDTH - begin)
        for number, spans in enumerate(band.brackets):
            for begin, end, name in spans:
                chart.bar(LEFT + begin * scale, y + HEADING + number * BRACKET, (end - begin) * scale, 13.0,
                          "quiet", "", name)
        y += _height(band)
        for x in ticks:  # not through the words above the lanes
            chart.path([(x, y - GAP - len(band.lanes) * LANE), (x, y)], "line", thick=1.0)
        for number, lane in enumerate(reversed(band.lanes), 1):
            _draw(chart, lane, y - GAP - number * LANE, scale, band.model)
    return chart


def _height(band: Band) -> float:
    return HEADING + len(band.brackets) * BRACKET + len(band.lanes) * LANE + GAP


def legend_of(bands: Sequence[Band]) -> list[tuple[str, str, str]]:
    """The legend: the phases or the kinds of bars, and what else is drawn."""
    used = {bar.work.colours for band in bands for lane in band.lanes for bar in [*lane.python, *lane.bars]}
    found = [(*KINDS[kind], NAMES.get(kind, kind)) for kind in KINDS if kind in used]
    found += [("now", "now", "on the critical path")] * any(bar.critical for band in bands for bar in band.bars)
    return found + [("quiet", "", "dashed: a model")] * any(band.model for band in bands)


def _draw(chart: Chart, lane: Lane, y: float, scale: float, model: bool) -> None:
    """One lane: Python, the bars, and the critical path."""
    chart.text(LEFT - 10.0, y + LANE / 2 + 3.0, lane.name, fill="quiet", anchor="end")
    for bar in [*merged(lane.python, CLOSE / scale), *merged(lane.bars, CLOSE / scale)]:
        x, wide = LEFT + bar.begin * scale, (bar.end - bar.begin) * scale
        chart.bar(x, y, wide, LANE - 4.0, bar.work.colours, "", bar.work.label, dashes=DASHED * model)
        if bar.critical:
            chart.path([(x, y + LANE - 6.0), (x + wide, y + LANE - 6.0)], "now", thick=3.0)
