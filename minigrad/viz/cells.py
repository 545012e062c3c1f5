"""A tensor as a few squares: the mean of each block of its numbers, and the text that a heat map in a box is made from.

The text has one letter for each square: "A" to "G" are positive numbers, "a" to "g" negative ones, "." is zero, "!" is
not finite, a space is empty, and "/" ends a row.  The colours come from `svg`, or from the page.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FLAT, TILE, LEVELS = (6, 10), (8, 8), 7  # squares of a heat map, and of a matrix of a stack; shades of a colour


def blocks_of(matrix: Any, rows: int, columns: int) -> Any:
    """A matrix that is small enough to look at: of blocks of numbers, the means.

    >>> blocks_of(np.arange(4.0).reshape(1, 4), 12, 2).tolist(), blocks_of(np.ones((100, 15)), 12, 16).shape
    ([[0.5, 2.5]], (12, 15))
    """
    for axis, most in ((1, columns), (0, rows)):  # first along memory, which takes a tenth of the time
        if matrix.shape[axis] > most:
            ends = np.linspace(0, matrix.shape[axis], most + 1).astype(int)[:-1]
            sizes = np.diff([*ends, matrix.shape[axis]])
            matrix = np.add.reduceat(matrix, ends, axis, np.float64) / (sizes[:, None] if axis == 0 else sizes)
    return np.asarray(matrix, np.float64)


def cells_of(array: Any) -> str:
    """The heat map of a tensor as text; of a stack of matrices, such as pictures or kernels, the first ones.

    >>> cells_of(np.array([[1.0, -0.5], [0.0, np.nan]])), cells_of(np.float32(3))
    ('Gc/.!', '')
    """
    array = np.asarray(array)
    if array.size < 2 or array.dtype.kind not in "biuf":
        return ""
    deep = array.ndim > 2 and min(array.shape[-2:]) > 1
    parts = array.reshape(-1, *array.shape[-2:])[:3] if deep else [array.reshape(-1, array.shape[-1])]
    tiles = np.concatenate([blocks_of(part, *(TILE if deep else FLAT)) for part in parts])
    rows = len(tiles) // len(parts)
    lines = letters_of(tiles, float(np.abs(tiles[np.isfinite(tiles)]).max(initial=0.0))).split("/")
    return "/".join([" ".join(lines[row::rows]) for row in range(rows)])


def letters_of(matrix: Any, most: float) -> str:
    """A matrix as the text of a heat map, where `most` has the strongest colour.

    >>> letters_of(np.array([[1.0, -2.0], [0.0, 0.5]]), 2.0)
    'Cg/.B'
    """
    return "/".join(["".join([_letter(x / (most or 1.0)) for x in row]) for row in matrix])


def _letter(share: float) -> str:
    if not math.isfinite(share):
        return "!"
    level = min(LEVELS, math.ceil(abs(share) * LEVELS - 0.5))
    return "." if level <= 0 else chr(ord("A" if share > 0 else "a") + level - 1)
