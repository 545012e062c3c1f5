"""Numbers as people like to read them: a tensor in one line, whatever its size."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

FEW = 4  # numbers that are shown one by one


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

    @classmethod
    def of(cls, value: Any) -> Summary:
        """The summary of an array.

        >>> Summary.of(np.array([1.0, 2.0, float("nan")])).short()
        '[1, 2, nan]  1 nan'
        """
        array = np.asarray(value)
        few = tuple(array.reshape(-1).tolist()) if array.size <= FEW else None
        numbers = array.astype(np.float64) if array.dtype.kind in "biuf" else np.zeros(array.shape)
        finite = numbers[np.isfinite(numbers)]
        some = finite.size > 0
        return cls(
            array.shape, str(array.dtype), few, float(finite.min()) if some else math.nan,
            float(finite.max()) if some else math.nan, float(finite.mean()) if some else math.nan,
            float(np.sqrt(np.square(finite).sum())), int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum()),
        )  # fmt: skip

    def short(self) -> str:
        """One line: the numbers, or where they lie."""
        if self.few is None:
            text = f"{short(self.least)} … {short(self.most)}"
        elif self.shape == ():
            text = short(self.few[0])
        else:
            text = "[" + ", ".join(map(short, self.few)) + "]"
        return text + self.warning()

    def size(self) -> str:
        """Its norm."""
        return f"‖·‖ = {short(self.norm)}" + self.warning()

    def sign(self) -> str:
        """Whether its numbers are positive, negative, all zero, or some of each."""
        if not (self.most or self.least):
            return "zero"
        return "positive" if self.least >= 0 else "negative" if self.most <= 0 else "mixed"

    def warning(self) -> str:
        """What is not finite, if anything is."""
        found = [f"{count} {what}" for count, what in ((self.nans, "nan"), (self.infinities, "inf")) if count]
        return "  " + ", ".join(found) if found and self.shape != () else ""


def short(number: Any) -> str:
    """A number with three digits that matter.

    >>> short(0.123456), short(1234567.0), short(2), short(True), short(3.0)
    ('0.123', '1.23e+06', '2', 'True', '3')
    """
    if isinstance(number, (bool, int)) or not isinstance(number, float):
        return str(number)
    return f"{number:.3g}".replace("-", "−") if math.isfinite(number) else str(number)
