"""Curves over the steps of a training, in which every step is seen.

Where there are more steps than columns of pixels, a column shows its least, its mean and its largest value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .drawing import DASHES, SERIES, Axes, Drawing, Ends, Points
from .svg import TITLE, number, text_width

WIDE = 1.5  # the width of a column
LEGEND = 150.0  # the room beside a chart for the name of a curve, with a sample of its line
MANY, BOTTOM = 30, 0.2  # times the least value; the lowest part of a chart, where curves lie flat
MORE = 0.8  # how much thicker than the curve below a curve without noise is, so that each of several is seen
TURNS, FEWEST = 0.1, 2  # a curve that turns at a smaller part of its steps, or so seldom, has no noise


def columns_of(points: np.ndarray, most: int) -> list[list[float]]:
    """A curve in at most `most` columns of as many steps each: their mean, the least value, the mean, the largest.

    Each finite value counts in one column.

    >>> columns_of(np.array([(0, 1.0), (1, 5.0), (2, 2.0), (3, 4.0)]), 2)
    [[0.5, 1.0, 3.0, 5.0], [2.5, 2.0, 3.0, 4.0]]
    """
    known = points[np.isfinite(points[:, 1])]
    parts = [part.T for part in np.array_split(known, most) if len(part)]
    with np.errstate(over="ignore", invalid="ignore"):  # the sum of the largest numbers is infinite
        columns = [(at.mean(), values.min(), values.mean(), values.max()) for at, values in parts]
    return np.array(columns).tolist()


def curves(
    drawing: Drawing, place: tuple[float, float, float, float], series: Mapping[str, Points | np.ndarray], title: str,
    ends: Ends | None = None, *, log: bool | None = None, log_across: bool = False, named: bool = True,
) -> Axes:
    """Some curves over steps; their names on the right if they are `named` here.

    `ends` are the steps that there is to be room for; by default, those of the curves.
    If `log` is not given, the axis is logarithmic where a linear one would hide a curve; a percentage has a linear one.
    A mark at the top is a step with a value that is not finite.
    """
    x, y, width, height = place
    arrays = {name: np.array(points, np.float64).reshape(-1, 2) for name, points in series.items()}
    every = np.concatenate([*arrays.values(), np.zeros((0, 2))])
    finite = every[np.isfinite(every[:, 1])]
    steps, values = (np.array([*column] or [0.0, 1.0]) for column in (every[:, 0], finite[:, 1]))
    across, high, low = ends or (steps.min(), steps.max()), float(values.max()), float(values.min())
    hides = log is None and not title.endswith("(%)") and _hides(arrays.values(), low, high)
    log = high > 0 and bool(log or hides)
    up = (values[values > 0].min(), high) if log else ends_of(values)
    title += "; ▼ not finite" * (len(finite) < len(every))
    title += ", logarithmic" * log + "; without what is 0 or less" * (log and low <= 0)
    with drawing.piece():
        drawing.heading(x + Axes.LEFT, y + 12, title, width - 1.5 * Axes.LEFT)
        chart = Axes(drawing, (x, y + 20, width, height - 20), across, up, log=log, log_across=log_across, whole=True)
        for i, (name, points) in enumerate(arrays.items()):
            columns = columns_of(points, int(chart.width / WIDE))
            colour, exact, many = SERIES[i % len(SERIES)], not is_rough(points), len(arrays)
            chart.band([(at, least, most) for at, least, _, most in columns if least > 0 or not log], colour, 0.2)
            line = [(at, mean) for at, _, mean, _ in columns]
            fold = f' data-fold="{chart.height / (chart.up.high - chart.up.low) / math.log(10):.3f}"' * bool(log)
            with drawing.piece('data-exact="" ' * exact + 'class="mg-curve"' + fold):
                chart.curve(line, colour, dashes=DASHES[i % len(DASHES)], thick=1.6 + exact * MORE * i)
            strange = {round(chart.across.at(step)) for step in points[~np.isfinite(points[:, 1]), 0].tolist()}
            if strange:  # steps without a finite value
                places = "".join([f"M{x - 4} {number(chart.y)}h8l-4 8z" for x in sorted(strange)])
                drawing.shape(places, "bad" if many == 1 else colour)
            each = round(np.isfinite(points[:, 1]).sum() / len(columns)) if columns else 1
            if many > 1 and named:
                curve_name(drawing, x + width + 8, y + 34 + 16 * i, name, i)
            elif each > 1 and many == 1:
                said = f"line: mean of {each} steps, shade: least to largest"
                rest = width - Axes.LEFT - text_width(title, TITLE, bold=True)
                drawing.text(x + width, y + 12, said, fill="quiet", anchor="end", room=max(rest - 8, 1))
    return chart


def ends_of(values: Any) -> Ends:
    """The ends of an axis: the least and the largest finite number, with some room beyond them.

    >>> ends_of(np.array([0.0, 100.0]))
    (-6.0, 106.0)
    """
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    return low - 0.06 * (high - low), high + 0.06 * (high - low)


def _hides(curves: Iterable[np.ndarray], low: float, high: float) -> bool:
    """Whether half of a curve would lie at the bottom of a linear axis between two ends that differ many times.

    Of values that fall in a straight line, only the last ones are there.  On a logarithmic axis they would be a cliff.
    """
    halves = [np.quantile(known, 0.5, method="lower")
              for each in curves if len(known := each[np.isfinite(each[:, 1]), 1])]
    return bool(high > MANY * low > 0 and min(halves) < low + BOTTOM * (high - low))


def is_rough(points: np.ndarray) -> bool:
    """Whether a curve goes up and down: it can be smoothed.  Of a schedule, a smoothed curve would be false.

    >>> [is_rough(np.array([*enumerate(values)])) for values in ([4.0, 2.0, 3.0, 1.0, 2.0], [1.0, 2.0, 2.0, 1.0])]
    [True, False]
    """
    with np.errstate(over="ignore"):  # a step between the largest numbers is infinite
        steps = np.diff(points[np.isfinite(points[:, 1]), 1])
    turns = np.count_nonzero(np.diff(np.sign(steps[steps != 0])))
    return bool(turns > max(TURNS * len(steps), FEWEST))


def curve_name(drawing: Drawing, x: float, level: float, name: str, i: int, room: float = LEGEND) -> None:
    """The name of curve number `i`, with a sample of its line."""
    colour = SERIES[i % len(SERIES)]
    with drawing.piece('class="mg-legend"'):
        drawing.path([(x, level - 4), (x + 18, level - 4)], colour, dashes=DASHES[i % len(DASHES)], thick=2)
        drawing.text(x + 23, level, name, fill="quiet", room=room - 30)
