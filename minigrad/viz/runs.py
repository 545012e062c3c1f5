"""Training runs over each other: a chart for each number, with a curve for each run and every step of it.

The pages are moments of the runs: at each, a dot on every curve, the values in words and in a table, and the weights
that were logged last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..support.table import as_table
from .curves import curve_name, curves
from .drawing import SERIES, Axes, Drawing
from .flipbook import Block, Flipbook, Knob, Page
from .images import heat_map
from .logs import ACROSS, FIRST, HIGH, PARAMETERS, SECOND, SIDE, Log, Seen, Weights
from .numbers import short
from .svg import number, sized

STOPS, NUMBERS = 48, 5  # the most moments, and charts
WIDE = 500.0  # the width of the curves beside pictures
WHOLE = WIDE + 30 + SECOND + ACROSS  # the width of all
ALONE, ROOM = 330.0, 480.0  # heights: of one chart, and of all of them, which a window of 900 pixels shows
EDGE, APART, NAMED = 14.0, 10.0, 20.0  # the room for half of a number beside a chart, between charts, for names
HEAD = ("", "first", "last", "least", "most")
AXES = {"as it fits": None, "linear": False, "logarithmic": True}  # whether the axis of a chart is logarithmic
Runs = Mapping[str, Log]  # by name; the pictures are those of the first
Curves = dict[str, np.ndarray]  # by name: (step, value) of each of its steps
KEY = ("blue > 0, orange < 0, red not finite; each by its largest", "large ones: means of blocks",
       "with 4 axes or more: the first matrices")


def runs_book(runs: Runs, title: str, live: bool = False) -> Flipbook:
    """A page for each moment, for each kind of axis; the last moment is shown first.  If `live`, it is the only one."""
    charts, weights = by_name(runs, NUMBERS), next(iter(runs.values())).weights
    steps = sorted({step for log in runs.values() for step in log.steps}) or [0]
    stops = sorted({*steps[:: -(-len(steps) // STOPS)], *weights, steps[-1]})[-1 if live else 0 :]
    rows = rows_of(runs)
    words = as_table(HEAD, rows, left=1) if rows else "nothing logged yet"
    axes = tuple(AXES)[: 1 if live else None]
    seen = [weights.get(max([at for at in weights if at <= step], default=0), Weights()) for step in stops]
    wide = WIDE if weights else WHOLE
    pages = [
        [Page(made, _said(charts, step), all_numbers(rows) + all_weights(now), count=f"step {step:,} / {stops[-1]:,}")
         for made, step, now in zip(moments(charts, stops, map(weights_drawn, seen), wide=wide, log=AXES[axis]),
                                       stops, seen)]
        for axis in axes
    ]
    return Flipbook(title, pages, (Knob("axis", axes, choice=True),), start=len(stops) - 1, words=words)


def all_numbers(rows: Sequence[Sequence[str]], when: str = "") -> tuple[tuple[str, Block], ...]:
    """The table of all numbers, if there are some."""
    return ((f"all numbers, over all steps{when}", ("table", {"head": HEAD, "rows": rows})),) * bool(rows)


def rows_of(runs: Runs) -> list[list[str]]:
    """Of each number and each run: the first, the last, the least and the largest value."""
    rows = []
    for name, series in by_name(runs).items():
        for run, points in series.items():
            if values := points[:, 1].tolist():
                known = [v for v in values if v == v] or values[:1]
                ends = map(short, (values[0], values[-1], min(known), max(known)))
                rows.append([f"{name}, {run}" if len(runs) > 1 else name, *ends])
    return rows


def by_name(runs: Runs, most: int | None = None) -> dict[str, Curves]:
    """What was logged: for each of some names, the points of each run by step."""
    names = [*dict.fromkeys(name for log in runs.values() for name in log.numbers)][:most]
    return {
        name: {run: np.array(sorted(log.numbers.get(name, {}).items()), float).reshape(-1, 2)
               for run, log in runs.items()}
        for name in names
    }


def _said(charts: Mapping[str, Curves], step: int) -> str:
    """The value at each dot of the charts."""
    dots = []
    for title, series in charts.items():
        found = [(f" in {name}" * (len(series) > 1), points[points[:, 0] <= step]) for name, points in series.items()]
        here = [short(value) + f" (at step {at:,.0f})" * (at < step) + name
                for name, points in found for at, value in points[-1:].tolist()]
        dots += [f"{title} {', '.join(here)}"] if here else []
    return f"After step {step:,}{': ' * bool(dots)}{'; '.join(dots)}."


# What is drawn --------------------------------------------------------------------------------------------------------


def moments(
    charts: Mapping[str, Curves], stops: Sequence[int], beside: Iterable[Drawing], *, wide: float,
    log: bool | None = None, log_across: bool = False, along: str = "step", known: Mapping[str, Sequence[int]] = {},
) -> Iterator[Drawing]:
    """For each moment: the curves of all steps on the left, and what is drawn `beside` them.

    The curves are the same for all moments, and are drawn once, `wide`, below their names.  `along` names the axes.  At
    each of the `stops`, the numbers up to that step are `known`, or those up to another step, for the charts in it.
    """
    drawn = [*beside]
    tall = max([each.height for each in drawn])
    base, axes, names = Drawing(wide, 60), [], [*dict.fromkeys(name for series in charts.values() for name in series)]
    ends = [at for series in charts.values() for points in series.values() for at in points[:, 0].tolist()] or [0.0]
    height = min(ALONE, ROOM / max(len(charts), 1) - APART)
    y, each = NAMED * (len(names) > 1), (wide - Axes.LEFT) / max(len(names), 1)
    for i, name in enumerate(names if y else ()):
        curve_name(base, Axes.LEFT + i * each, 12, name, i, each)
    for title, series in charts.items():
        axes.append(curves(base, (0.0, y, wide - EDGE, height), series, title, (min(ends), max(ends)), log=log,
                           log_across=log_across, named=False))
        y += height + APART
    base.text(wide - EDGE, y, along, fill="quiet", anchor="end")
    last = [known.get(title, stops) for title in charts]
    for chart, own in zip(axes, last):  # the pointer over it leads to the nearest moment
        shares = " ".join([number(1000 * (chart.across.at(at) - chart.x) / chart.width) for at in own])
        with base.piece(f'data-stops="{shares}"'):
            base.rect(chart.x, chart.y, chart.width, chart.height, "transparent", "none", round=0)
    for moment, pictures in enumerate(drawn):
        drawing = Drawing(pictures.width, max(y + 4, tall))
        drawing.pieces = list(base.pieces)
        for chart, own, series in zip(axes, last, charts.values()):
            for i, points in enumerate(series.values()):  # a dot at the end of each curve that has begun
                for end in map(chart.at, *points[points[:, 0] <= own[moment]][-1:].T):
                    if chart.y - 1 <= end[1] <= chart.y + chart.height + 1:
                        drawing.dot(*end, fill="now" if len(series) == 1 else SERIES[i % len(SERIES)])
        if pictures.pieces:
            drawing.pieces += ['<g class="mg-beside">', *pictures.pieces, "</g>"]
        yield drawing


def all_weights(weights: Weights) -> tuple[tuple[str, Block], ...]:
    """A table with the norms of all weights and gradients, if some have no picture."""
    found = weights.gradients
    rows = [[name, short(each.norm), short(found[name].norm) if name in found else "none"]
            for name, each in weights.values.items()]
    table = "table", {"head": ["", "norm", "of ∂"], "rows": rows}
    return (("all parameters and their gradients ∂", table),) * (len(rows) > PARAMETERS)


def weights_drawn(weights: Weights, when: str = "at") -> Drawing:
    """The weights of a moment and their gradients, on the right of the curves.  Single numbers have no picture."""
    drawing, x = Drawing(WHOLE, 60), WIDE + 30
    if not weights.values:
        return drawing
    first = [*weights.values.items()][:PARAMETERS]
    cells = [each.cells for _, each in first]
    some = f", {PARAMETERS} of {len(weights.values)}" * (len(weights.values) > PARAMETERS)
    drawing.heading(x, 12, f"parameters {when} step {weights.step:,}{some}")
    key = KEY[: 2 + (" " in "".join(cells))] if any(cells) else ()
    if key:
        drawing.heading(x + SECOND, 12, "gradients ∂" if weights.gradients else "no gradient yet")
    for line, text in enumerate(key):
        drawing.text(x, 28 + 13 * line, text, fill="quiet")
    y = 22.0 + 14 * len(key)
    for name, value in first:
        gradient, shape = weights.gradients.get(name), f"{value.shape}, " * (value.single is None)
        lines = shape + value.about, f"∂ {gradient.about}" if gradient else "no gradient"
        y = described(drawing, x, y, name, lines, {FIRST: value, SECOND: gradient})
    drawing.height = y
    return drawing


def described(
    drawing: Drawing, x: float, y: float, name: str, lines: Sequence[str], maps: Mapping[float, Seen | None]
) -> float:
    """Draw the name of an array, lines about it, and heat maps beside them: its own and its gradient's.

    Returns where the next one begins.
    """
    drawing.text(x, y + 10, name, bold=True, room=FIRST - 8)
    for line, text in enumerate(lines):
        drawing.text(x, y + 24 + 14 * line, text, fill="quiet", room=FIRST - 8)
    high = 18.0 + 14 * len(lines)
    for at, each in maps.items():
        if each and each.cells:
            _, tall, side = sized(each.cells, (ACROSS, HIGH, SIDE))
            heat_map(drawing, x + at, y + 2, each.cells, side, f"{'∂' * (at == SECOND)}{name}: {each.about}")
            high = max(high, 10 + tall)
    return y + high
