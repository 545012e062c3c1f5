"""Curves over the steps of a training, in which every step is seen.

Where there are more steps than columns of pixels, a column shows its least, its mean and its largest value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .drawing import DASHES, SERIES, Axes, Drawing
from .numbers import short
from .svg import TITLE, number, text_width

Points = Sequence[tuple[float, float]]  # (step, value)
WIDE = 1.5  # the width of a column
LEGEND = 190.0  # the most room for the name of a curve beside a chart
MARKS = 200  # of steps without a finite value, at most


class Column(NamedTuple):
    """What a column of pixels shows of a curve: the step in its middle, and three values of its steps."""

    at: float
    least: float
    mean: float
    most: float


def columns_of(points: Points | np.ndarray, ends: tuple[float, float], most: int) -> list[Column]:
    """A curve in at most `most` columns of equal width.  Each finite value counts in one of them.

    >>> columns_of([(0, 1.0), (1, 5.0), (2, 2.0), (3, 4.0)], (0, 3), 2)
    [Column(at=0.5, least=1.0, mean=3.0, most=5.0), Column(at=2.5, least=2.0, mean=3.0, most=4.0)]
    """
    array = np.asarray(points, np.float64).reshape(-1, 2)
    array = array[np.isfinite(array[:, 1])]
    if len(array) <= most:
        return [Column(at, value, value, value) for at, value in array.tolist()]
    wide = (ends[1] - ends[0]) / most or 1.0
    place = np.clip((array[:, 0] - ends[0]) // wide, 0, most - 1)
    order = np.argsort(place, kind="stable")
    array, place = array[order], place[order]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    sizes = np.diff([*starts, len(array)])
    at, mean = (np.add.reduceat(array[:, i], starts) / sizes for i in (0, 1))
    rows = np.stack([at, np.minimum.reduceat(array[:, 1], starts), mean, np.maximum.reduceat(array[:, 1], starts)], 1)
    return [Column(*row) for row in rows.tolist()]


def curves(
    drawing: Drawing, place: tuple[float, float, float, float], series: Mapping[str, Points], title: str,
    ends: tuple[float, float] | None = None, within: tuple[float, float] | None = None,
) -> Axes:
    """Some curves over steps, logarithmic where they go through powers of ten, with their names on the right.

    `ends` and `within` are the steps and the values that there is to be room for; by default, those of the curves.
    A mark at the top is a step with a value that is not finite.
    """
    begin = len(drawing.pieces)
    x, y, width, height = place
    arrays = {name: np.array(points, np.float64).reshape(-1, 2) for name, points in series.items()}
    finite = np.concatenate([*arrays.values(), np.zeros((0, 2))])
    finite = finite[np.isfinite(finite[:, 1])]
    steps = finite[:, 0] if len(finite) else np.array([0.0, 1.0])
    values = np.array([*finite[:, 1], *(within or ())] or [0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high > 30 * low
    room = 0.0 if log else 0.06 * (high - low)
    drawing.heading(x + Axes.LEFT, y + 12, title)
    across = ends or (float(steps.min()), float(steps.max()))
    chart = Axes(drawing, (x, y + 20, width, height - 20), across, (low - room, high + room), log=log)
    for i, (name, points) in enumerate(arrays.items()):
        colour, dashes = SERIES[i % len(SERIES)], DASHES[i % len(DASHES)]
        columns = columns_of(points, across, int(chart.width / WIDE))
        chart.band([(c.at, c.least, c.most) for c in columns], colour, 0.25 if len(arrays) == 1 else 0.12)
        chart.curve(_parts(columns, points), colour, dashes=dashes)
        strange = [chart.at(step, low)[0] for step in points[~np.isfinite(points[:, 1]), 0][:MARKS].tolist()]
        if strange:
            drawing.shape("".join(f"M{number(a - 4)} {number(y + 20)}h8l-4 8z" for a in strange), "bad")
        if len(arrays) > 1:
            level = y + 34 + 16 * i
            entry = len(drawing.pieces)
            drawing.path([(x + width + 8, level - 4), (x + width + 26, level - 4)], colour, dashes=dashes, thick=2)
            drawing.text(x + width + 31, level, name, fill="quiet", room=LEGEND)
            drawing.merge(entry, "mg-legend")
        elif within is None and len(finite):
            each = round(len(points) / len(columns))
            said = f"line: mean of {each} steps, shade: their least to their largest" if each > 1 else ""
            drawing.text(x + Axes.LEFT + text_width(title, TITLE, bold=True) + 14, y + 12, said, fill="quiet")
            said = f"{short(points[0, 1])} → {short(points[-1, 1])}, least {short(low)}"
            drawing.text(x + width, y + 12, said, fill="quiet", anchor="end")
    drawing.merge(begin)
    return chart


def _parts(columns: list[Column], points: np.ndarray) -> list[tuple[float, float]]:
    """The means of the columns, with a gap where a step without a finite value lies between two of them."""
    gaps = [(step, math.nan) for step in points[~np.isfinite(points[:, 1]), 0].tolist()]
    return sorted([*[(c.at, c.mean) for c in columns], *gaps], key=lambda point: point[0])


def dots(drawing: Drawing, chart: Axes, series: Mapping[str, Points], step: float) -> None:
    """A dot on each curve at a step."""
    for i, points in enumerate(series.values()):
        found = [p for p in points[-1:] if p[0] == step] or [p for p in points if p[0] == step]
        if found and math.isfinite(found[-1][1]):
            drawing.dot(*chart.at(*found[-1]), fill="now" if i == 0 else SERIES[i % len(SERIES)])
