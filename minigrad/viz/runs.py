"""Training runs over each other: a chart for each number, with a curve for each run and every step of it.

The pages are moments of the runs: at each, a dot on every curve, the values in words and in a table, and the weights
that were logged last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..support.table import as_table
from .curves import curve_name, curves, dots
from .drawing import Axes, Drawing
from .flipbook import Block, Flipbook, Knob, Page
from .logs import BESIDE, PARAMETERS, Log, Weights
from .numbers import short
from .svg import number

STOPS, NUMBERS = 48, 5  # the most moments, and charts
WIDE, ALONE, LOW = 620.0, 330.0, 106.0  # the width of the curves; heights: of one chart alone, of one of many
EDGE = 14.0  # the room for half of a number beside a chart
AXES = {"as it fits": None, "linear": False, "logarithmic": True}  # whether the axis of a chart is logarithmic
Runs = Mapping[str, Log]  # by name; the pictures are those of the first
Curves = dict[str, np.ndarray]  # by name: (step, value) of each of its steps
KEY = "blue above 0, orange below, each by its largest; of large ones, means of blocks"


def runs_book(runs: Runs, title: str, live: bool = False) -> Flipbook:
    """A page for each moment, for each kind of axis; the last moment is shown first.  If `live`, it is the only one."""
    stops, every = _stops(runs)[-1:] if live else _stops(runs), _by_name(runs)
    charts = {name: every[name] for name in [*every][:NUMBERS]}
    more = (("without a chart", ("text", ", ".join([*every][NUMBERS:]))),) if len(every) > NUMBERS else ()
    axes, first = tuple(AXES)[: 1 if live else None], next(iter(runs.values()))
    beside = [pictures_at(first, step) for step in stops]
    apart = max(np.diff(stops), default=1)
    most = max([len(points) for log in runs.values() for points in log.numbers.values()], default=0)
    pace = f" The slider goes by up to {apart} steps." * bool(apart > 1 and most > len(stops))
    pages = [
        [Page(drawing, _said(charts, step) + pace, more + all_weights(first, step),
              count=f"step {step:,} / {stops[-1]:,}")
         for drawing, step in zip(moments(charts, stops, beside, log=AXES[axis]), stops)]
        for axis in axes
    ]
    knobs = (Knob("axis", axes, choice=True),)
    return Flipbook(title, pages, knobs, start=len(stops) - 1, words=table_of(runs), smooth=True)


def table_of(runs: Runs) -> str:
    """The numbers as a table; of several runs, each has its name there."""
    rows = []
    for name, series in _by_name(runs).items():
        for run, points in series.items():
            if values := points[:, 1].tolist():
                finite = [v for v in values if math.isfinite(v)] or [math.nan]
                ends = map(short, (values[0], values[-1], min(finite), max(finite)))
                rows.append([f"{name}, {run}" if len(runs) > 1 else name, *ends])
    return as_table(["", "first", "last", "least", "most"], rows, left=1) if rows else "nothing logged yet"


def _by_name(runs: Runs) -> dict[str, Curves]:
    """All that was logged: for each name, the points of each run."""
    names = dict.fromkeys(name for log in runs.values() for name in log.numbers)
    return {name: {run: np.array(sorted(log.numbers.get(name, ())), float).reshape(-1, 2) for run, log in runs.items()}
            for name in names}


def _stops(runs: Runs) -> list[int]:
    """The steps that have a page: those with pictures, some between the first and the last, and the last."""
    steps = sorted({int(step) for log in runs.values() for points in log.numbers.values() for step, _ in points})
    few = steps[:: -(-len(steps) // STOPS) or 1]
    return sorted({*few, *next(iter(runs.values())).weights, max(log.last for log in runs.values())})


def _until(points: np.ndarray, step: float) -> np.ndarray:
    return points[: np.searchsorted(points[:, 0], step, side="right")]


def _said(charts: Mapping[str, Curves], step: int) -> str:
    """The value at each dot of the charts."""
    parts = []
    for title, series in charts.items():
        found = [(f" in {name}" * (len(series) > 1), _until(points, step)) for name, points in series.items()]
        here = [short(points[-1, 1]) + name for name, points in found if len(points)]
        parts += [f"{title} {', '.join(here)}"] if here else []
    return f"After step {step:,}" + (f": {'; '.join(parts)}." if parts else ".")


# What is drawn --------------------------------------------------------------------------------------------------------


def moments(
    charts: Mapping[str, Curves], stops: Sequence[int], beside: Sequence[Drawing], *, log: bool | None = None,
    log_across: bool = False, along: str = "step",
) -> Iterator[Drawing]:
    """For each moment: the curves of all steps on the left, and what is drawn `beside` them.

    The curves are the same for all moments, and are drawn once, below their names.  `along` names the axes.
    """
    base, axes, names = Drawing(WIDE, 60), [], [*dict.fromkeys(name for series in charts.values() for name in series)]
    known = [points for series in charts.values() for points in series.values() if len(points)]
    ends = [float(points[i, 0]) for points in known for i in (0, -1)] or [0.0]
    height = max(LOW, min(ALONE, 552.0 / max(len(charts), 1) - 14.0))
    y, each = 24.0 * (len(names) > 1), (WIDE - Axes.LEFT) / max(len(names), 1)
    for i, name in enumerate(names if y else ()):
        curve_name(base, Axes.LEFT + i * each, 12, name, i, each)
    for title, series in charts.items():
        axes.append(curves(base, (0.0, y, WIDE - EDGE, height), series, title, (min(ends), max(ends)), log=log,
                           log_across=log_across, named=False))
        y += height + 14
    base.text(WIDE - EDGE, y - 5, along, fill="quiet", anchor="end")
    hovers = [_hover(chart, stops) for chart in axes]
    for step, pictures in zip(stops, beside):
        drawing = Drawing(pictures.width, max(y, pictures.height))
        drawing.pieces = list(base.pieces)
        for chart, series in zip(axes, charts.values()):
            dots(drawing, chart, [_until(points, step) for points in series.values()])
        drawing.pieces += [*hovers, *pictures.pieces]
        yield drawing


def _hover(chart: Axes, stops: Sequence[float]) -> str:
    """The part of a chart over which the pointer leads to the nearest moment."""
    shares = " ".join([number(1000 * (chart.at(at, 1.0)[0] - chart.x) / chart.width) for at in stops])
    x, y, width, height = map(number, (chart.x, chart.y, chart.width, chart.height))
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect {place} fill="transparent" stroke="none" data-stops="{shares}"/>'


def _weights(log: Log, step: int) -> dict[str, Weights]:
    """The weights that were logged last until a step."""
    return log.weights.get(max([each for each in log.weights if each <= step], default=0), {})


def all_weights(log: Log, step: int) -> tuple[tuple[str, Block], ...]:
    """A table with the norms of all weights and gradients, if some have no picture."""
    # A long name may break after a dot.
    rows = [[name.replace(".", ".\u200b"), *[about.rpartition("norm ")[2] for about in weights.about]]
            for name, weights in _weights(log, step).items()]
    table = {"head": ["", "norm", "of ∂"], "rows": rows}
    return (("all parameters and their gradients ∂", ("table", table)),) if len(rows) > PARAMETERS else ()


def pictures_at(log: Log, step: int) -> Drawing:
    """The weights of the last moment until a step, and their gradients, on the right of the curves."""
    drawing, x, y = Drawing(WIDE, 60), WIDE + 40, 0.0
    if weights := _weights(log, step):
        with drawing.piece('class="mg-beside"'):
            some = f", {PARAMETERS} of {len(weights)}" * (len(weights) > PARAMETERS)
            known = any(each.pictures[1:] for each in weights.values())
            drawing.heading(x, 12, f"parameters{some}")
            drawing.heading(x + BESIDE, 12, "their gradients" if known else "no gradients yet")
            drawing.text(x, 28, KEY, fill="quiet")
            y = 36.0
            for name, each in [*weights.items()][:PARAMETERS]:
                y += each.draw(drawing, x, y, name)
        drawing.width, drawing.height = x + 2 * BESIDE, y
    return drawing
