"""Numbers as people like to read them: a tensor in one line, whatever its size."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .cells import cells_of

FEW = 4  # numbers that are shown one by one
ROWS, COLUMNS = 4, 3  # of the corner of a larger tensor
CHUNK = 1 << 20  # numbers of a large tensor that are looked at at once, where some are not finite


class Summary(NamedTuple):
    """What is said of a tensor: its numbers, if they are few, and what there is among them."""

    shape: tuple[int, ...]
    dtype: str
    few: tuple[Any, ...] | None
    least: float
    most: float
    mean: float
    norm: float
    nans: int
    infinities: int
    corner: tuple[tuple[str, ...], ...] = ()
    cells: str = ""  # its heat map, see `cells.cells_of`

    @classmethod
    def of(cls, value: Any) -> Summary:
        """The summary of an array.

        >>> Summary.of(np.array([1.0, 2.0, float("nan")])).short()
        '[1, 2, nan]  1 nan'
        """
        array = np.asarray(value)
        few = tuple(array.reshape(-1).tolist()) if array.size <= FEW else None
        least, most, mean, norm, nans, infinities = _measured(array)
        seen = _corner(array), cells_of(array)
        return cls(array.shape, str(array.dtype), few, least, most, mean, norm, nans, infinities, *seen)

    def short(self) -> str:
        """One line: the numbers, or where they lie."""
        if 0 in self.shape:
            return "no numbers"
        if self.few is None and math.isnan(self.least):
            return "nothing finite" + self.warning()
        if self.few is None:
            text = f"{short(self.least)} … {short(self.most)}"
        elif self.shape == ():
            text = short(self.few[0])
        else:
            text = "[" + ", ".join(map(short, self.few)) + "]"
        return text + self.warning()

    def line(self) -> str:
        """What stands in a box beside the heat map: the numbers, if they are few, else the shape."""
        text = self.short() if self.few is not None else " × ".join(map(str, self.shape))
        return text if self.few is not None else text + self.warning()

    def size(self) -> str:
        """Its norm."""
        return f"‖·‖ = {short(self.norm)}" + self.warning()

    def sign(self) -> str:
        """Whether its numbers are positive, negative, all zero, or some of each."""
        if 0 in self.shape:
            return "no numbers"
        if self.nans or math.isnan(self.most):
            return "not a number"
        if not (self.most or self.least) and not self.infinities:
            return "zero"
        return "positive" if self.least >= 0 else "negative" if self.most <= 0 else "mixed"

    def warning(self) -> str:
        """What is not finite, if anything is."""
        found = [f"{count} {what}" for count, what in ((self.nans, "nan"), (self.infinities, "inf")) if count]
        return "  " + ", ".join(found) if found and self.shape != () else ""


def _measured(array: Any) -> tuple[float, float, float, float, int, int]:
    """Least, most, mean and norm of the finite numbers, and how many are nan and infinite.

    A large tensor is not copied: what is done in one pass over it is.
    """
    if array.dtype.kind not in "biuf" or not array.size:
        return math.nan, math.nan, math.nan, 0.0, 0, 0
    least, most = float(array.min()), float(array.max())  # both are nan where any is
    if math.isfinite(least) and math.isfinite(most):
        chunks, nans, infinities = [array], 0, 0
        if array.size <= CHUNK:
            chunks = [array.astype(np.float64)]
    else:
        flat = array.reshape(-1)
        parts = [flat[i : i + CHUNK].astype(np.float64) for i in range(0, flat.size, CHUNK)]
        nans = sum(int(np.isnan(part).sum()) for part in parts)
        infinities = sum(int(np.isinf(part).sum()) for part in parts)
        chunks = [part for part in (part[np.isfinite(part)] for part in parts) if part.size]
        least = min([float(part.min()) for part in chunks], default=math.nan)
        most = max([float(part.max()) for part in chunks], default=math.nan)
    count = sum(part.size for part in chunks)
    mean = sum(float(part.sum(dtype=np.float64)) for part in chunks) / count if count else math.nan
    largest = max(abs(least), abs(most)) if count else 0.0
    return least, most, mean, largest * _relative_norm(chunks, largest), nans, infinities


def _relative_norm(chunks: list[Any], largest: float) -> float:
    """The norm of numbers over the largest of them, of which no square overflows."""
    if not largest:
        return 0.0
    total = 0.0
    for part in chunks:
        flat = part.reshape(-1)
        for i in range(0, flat.size, CHUNK):
            scaled = flat[i : i + CHUNK] / largest
            total += float(np.square(scaled, dtype=np.float64).sum())
    return math.sqrt(total)


def _corner(array: Any) -> tuple[tuple[str, ...], ...]:
    """The first numbers of the last two dimensions, as text, and dots where there are more; of few numbers, nothing."""
    if array.size <= 1 or array.ndim == 0 or array.dtype.kind not in "biuf":
        return ()
    flat = array[(0,) * (array.ndim - 2)] if array.ndim > 2 else array.reshape((-1, array.shape[-1]))
    wide = flat.shape[1] > COLUMNS
    rows = [(*map(short, row[:COLUMNS].tolist()), *(["…"] if wide else [])) for row in flat[:ROWS]]
    if flat.shape[0] > ROWS or math.prod(array.shape[:-2]) > 1:
        rows.append(("…",) * len(rows[0]))
    return tuple(rows)


def short(number: Any) -> str:
    """A number with three digits that matter.

    >>> short(0.123456), short(1234567.0), short(2), short(True), short(3.0)
    ('0.123', '1.23e+06', '2', 'True', '3')
    """
    if isinstance(number, (bool, int)) or not isinstance(number, float):
        return str(number)
    return f"{number + 0.0:.3g}".replace("-", "−") if math.isfinite(number) else str(number)
