"""Pictures of matrices: a square for each number, coloured by its sign and size; and curves over steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .cells import largest, matrix_of
from .drawing import DASHES, SERIES, Axes, Drawing
from .numbers import short
from .svg import number

__all__ = ["curves", "heat_map", "largest", "matrix_of", "norm_of", "size_text", "spark"]


def heat_map(drawing: Drawing, x: float, y: float, matrix: Any, side: float, most: float, about: str = "") -> None:
    """A square for each number of a matrix: blue above zero, orange below, the stronger the larger; red if not finite.

    Squares of one colour are one path, of which there are few.
    """
    begin = len(drawing.pieces)
    rows, columns = matrix.shape
    drawing.rect(x - 1, y - 1, columns * side + 2, rows * side + 2, "paper", "line", round=1, thick=0.8, about=about)
    squares: dict[tuple[str, float], list[str]] = {}
    for (i, j), value in np.ndenumerate(matrix):
        if not math.isfinite(value):
            look = "bad", 1.0
        elif value:
            look = "back" if value < 0 else "there", round(0.05 + 0.9 * min(1.0, abs(value) / (most or 1.0)), 1)
        else:
            continue
        place = f"M{number(x + j * side)} {number(y + i * side)}h{number(side)}v{number(side)}h-{number(side)}z"
        squares.setdefault(look, []).append(place)
    for (colour, opacity), places in sorted(squares.items()):
        drawing.shape("".join(places), colour, opacity)
    drawing.merge(begin)


def curves(
    drawing: Drawing, place: tuple[float, float, float, float], series: Mapping[str, Sequence[tuple[float, float]]],
    title: str, here: float | None = None, ends: tuple[float, float] | None = None,
    within: tuple[float, float] | None = None,
) -> None:
    """Some curves over steps, logarithmic where they go through powers of ten, with their names on the right.

    `ends` and `within` are the steps and the values that there is to be room for; by default, those of the curves.
    """
    begin = len(drawing.pieces)
    x, y, width, height = place
    points = [(a, b) for each in series.values() for a, b in each if math.isfinite(b)]
    steps = [a for a, _ in points] or [0.0, 1.0]
    values = [*(b for _, b in points), *(within or ())] or [0.0, 1.0]
    positive = [b for b in values if b > 0]
    log = len(positive) == len(values) and max(values) > 30 * min(values)
    low, high = min(values), max(values)
    room = 0.0 if log else 0.06 * (high - low)
    drawing.heading(x + Axes.LEFT, y + 12, title)
    across, up = ends or (min(steps), max(steps)), (low - room, high + room)
    chart = Axes(drawing, (x, y + 20, width, height - 20), across, up, log=log)
    for i, (name, curve) in enumerate(series.items()):
        colour, dashes = SERIES[i % len(SERIES)], DASHES[i % len(DASHES)]
        chart.curve(curve, colour, dashes=dashes)
        if len(series) > 1:
            level = y + 34 + 14 * i
            drawing.path([(x + width + 8, level - 4), (x + width + 26, level - 4)], colour, dashes=dashes, thick=2)
            drawing.text(x + width + 31, level, name, fill="quiet", room=110)
    drawing.merge(begin)
    if here is not None:
        for i, curve in enumerate(series.values()):
            found = [p for p in curve if p[0] == here]
            if found and math.isfinite(found[-1][1]):
                drawing.dot(*chart.at(*found[-1]), fill="now" if i == 0 else SERIES[i % len(SERIES)])


def spark(values: Sequence[float], width: int = 24) -> str:
    """A curve in a line of text.

    >>> spark([8.0, 4.0, 2.0, 1.0, 1.0])
    '█▄▂▁▁'
    """
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return ""
    picked = [values[int(i * len(values) / min(width, len(values)))] for i in range(min(width, len(values)))]
    low, high = min(finite), max(finite)
    marks = "▁▂▃▄▅▆▇█"
    return "".join(marks[round(7 * (v - low) / ((high - low) or 1.0))] if math.isfinite(v) else "!" for v in picked)


def norm_of(array: Any) -> float:
    """The norm of an array's numbers."""
    flat = np.asarray(array, np.float64).reshape(-1)
    return float(np.sqrt(np.dot(flat, flat)))


def size_text(array: Any) -> str:
    """Shape and norm, for a title."""
    shape = " × ".join(map(str, np.shape(array))) or "scalar"
    return f"{shape}, ‖·‖ {short(norm_of(array))}"
