"""Numbers as people like to read them: a tensor in one line or as a few squares, whatever its size."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

FEW = 4  # numbers that are shown one by one
FLAT, TILE, LEVELS = (6, 10), (8, 8), 7  # squares of a heat map, and of a matrix of a stack; shades of a colour
CORNER = 4  # rows and columns of a larger tensor; dots for others take the place of one column


class Summary(NamedTuple):
    """What is said of a tensor: its numbers, if they are few, and what there is among them."""

    shape: tuple[int, ...]
    few: tuple[Any, ...] | None
    least: float
    most: float
    nans: int
    infinities: int
    corner: str  # the first numbers, in lines
    cells: str  # its heat map, see `cells_of`

    @classmethod
    def of(cls, value: Any) -> Summary:
        """The summary of an array.

        >>> Summary.of(np.array([1.0, 2.0, float("nan")])).short()
        '[1, 2, nan]  1 nan'
        """
        array = np.asarray(value)
        few = tuple(array.reshape(-1).tolist()) if array.size <= FEW else None
        numbers = array if array.dtype.kind in "biuf" else np.empty(0)
        finite, nans = numbers[np.isfinite(numbers)], int(np.isnan(numbers).sum())
        least, most = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
        return cls(array.shape, few, least, most, nans, numbers.size - finite.size - nans,
                   _corner(array), cells_of(array))

    def short(self) -> str:
        """One line: the numbers, or where they lie."""
        if 0 in self.shape:
            return "no numbers"
        if self.few is not None:
            words = ", ".join(map(short, self.few))
            text = f"[{words}]" if self.shape else words
        else:
            text = "nothing finite" if math.isnan(self.least) else f"{short(self.least)} … {short(self.most)}"
        return text + self.warning()

    def line(self) -> str:
        """What stands in a box beside the heat map: the numbers, if they are few, else the shape."""
        return self.short() if self.few is not None else shape_text(self) + self.warning()

    def in_words(self) -> str:
        """What a sentence says of it: a shape alone could be taken for a number."""
        return self.line() if self.few is not None else f"an array of shape {self.line()}"

    def warning(self) -> str:
        """What is not finite, if anything is."""
        found = [f"{count} {what}" for count, what in ((self.nans, "nan"), (self.infinities, "inf")) if count]
        return "  " + ", ".join(found) if found and self.shape != () else ""


def _corner(array: Any) -> str:
    """The first numbers of the last two dimensions, in lines, with dots for others; of a single number, nothing."""
    if array.size <= 1 or array.dtype.kind not in "biuf":
        return ""
    flat = np.atleast_2d(array[(0,) * (array.ndim - 2)])
    dots = ["…"] if flat.shape[1] > CORNER else []
    rows = [[*map(short, row[: CORNER - len(dots)].tolist()), *dots] for row in flat[:CORNER]]
    if flat.shape[0] > CORNER or math.prod(array.shape[:-2]) > 1:
        rows.append(["…"] * len(rows[0]))
    return "\n".join(map(" ".join, rows))


def short(number: Any) -> str:
    """A number with three digits that matter.

    >>> short(0.123456), short(1234567.0), short(2), short(True), short(3.0)
    ('0.123', '1.23e+06', '2', 'True', '3')
    """
    if not isinstance(number, float):
        return str(number)
    return f"{number + 0.0:.3g}".replace("-", "−")


def norm_of(array: Any) -> float:
    """The norm of an array's numbers."""
    return float(np.linalg.norm(np.asarray(array, np.float64)))


def shape_text(array: Any) -> str:
    """The shape of an array, or of what has a shape; one size alone would look like a value.

    >>> shape_text(np.ones((2, 3))), shape_text(np.ones(6)), shape_text(1.0)
    ('2 × 3', '(6,)', 'scalar')
    """
    shape = np.shape(array)
    return str(shape) if len(shape) == 1 else " × ".join(map(str, shape)) or "scalar"


# Heat maps ------------------------------------------------------------------------------------------------------------


def blocks_of(matrix: Any, rows: int, columns: int) -> Any:
    """A matrix that is small enough to look at: of blocks of numbers, the means.

    >>> blocks_of(np.arange(4.0).reshape(1, 4), 12, 2).tolist(), blocks_of(np.ones((100, 15)), 12, 16).shape
    ([[0.5, 2.5]], (12, 15))
    """
    for axis, most in ((0, rows), (1, columns)):
        if matrix.shape[axis] > most:
            matrix = np.stack([part.mean(axis, np.float64) for part in np.array_split(matrix, most, axis)], axis)
    return np.asarray(matrix, np.float64)


def cells_of(array: Any) -> str:
    """The heat map of a tensor as text; of four axes, as of pictures or kernels, the first matrices.

    A square is the mean of a block of numbers, and has one letter: "A" to "G" are positive numbers, "a" to "g" negative
    ones, "." is zero, "!" is not finite, a space is empty, and "/" ends a row.  The colours come from `svg`, or from
    the page.

    >>> cells_of(np.array([[1.0, -0.5], [0.0, np.nan]])), cells_of(np.float32(3))
    ('Gc/.!', '')
    """
    array = np.asarray(array)
    if array.size < 2 or array.dtype.kind not in "biuf":
        return ""
    deep = array.ndim > 3 and min(array.shape[-2:]) > 1
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
    return (".ABCDEFG" if share > 0 else ".abcdefg")[level]
