"""Pictures of matrices: a square for each number, coloured by its sign and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .drawing import Drawing
from .numbers import short
from .svg import number


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
