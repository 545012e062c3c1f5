"""Pictures of matrices: a square for each number, coloured by its sign and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..support.table import escape
from .cells import letters_of
from .drawing import Drawing, cleaned
from .numbers import short
from .svg import squares


def heat_map(drawing: Drawing, x: float, y: float, matrix: Any, side: float, most: float, about: str = "") -> None:
    """A square for each number of a matrix: blue above zero, orange below, stronger if larger; red if not finite."""
    inside = squares(letters_of(matrix, most), x, y, side)
    tip = f"<title>{escape(cleaned(about))}</title>" if about else ""
    drawing.add(f"<g>{tip}{inside}</g>")


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
    return float(np.linalg.norm(np.asarray(array, np.float64).reshape(-1)))


def size_text(array: Any) -> str:
    """Shape and norm, for a title."""
    shape = " × ".join(map(str, np.shape(array))) or "scalar"
    return f"{shape}, ‖·‖ {short(norm_of(array))}"
