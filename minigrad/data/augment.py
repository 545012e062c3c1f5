"""Random changes to items that keep their meaning, for `DataLoader(..., augment=...)`.

Each is called with an item and a NumPy generator.  If an item is a tuple, such as (picture, label), the first part is
changed.  The last two dimensions of pictures are rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..support.errors import ConversionError

Change = Callable[[Any, np.random.Generator], Any]


class Augmentation:
    """A random change: subclasses define `change`, which returns the changed array."""

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        if isinstance(item, tuple):
            return (self.change(item[0], rng), *item[1:])
        return self.change(item, rng)

    def change(self, x: Any, rng: np.random.Generator) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no change method")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


class Compose(Augmentation):
    """Several changes, applied one after the other.

    >>> mg.data.Compose(mg.data.Shift(1), mg.data.Noise(0.1))
    Compose((Shift(1), Noise(0.1)))
    """

    def __init__(self, *changes: Change) -> None:
        self.changes = changes

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        for change in self.changes:
            item = change(item, rng)
        return item


class Shift(Augmentation):
    """Move a picture by up to `most` rows and columns; the new parts are 0.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sums = [mg.data.Shift(1)(np.eye(3), rng).sum().item() for _ in range(100)]
    >>> sorted(set(sums))
    [1.0, 2.0, 3.0]
    """

    def __init__(self, most: int) -> None:
        self.most = most

    def change(self, x: Any, rng: np.random.Generator) -> Any:
        out = np.zeros_like(x)
        into, source = zip(*[_overlap(int(by)) for by in rng.integers(-self.most, self.most + 1, 2)])
        out[(..., *into)] = x[(..., *source)]
        return out


class Flip(Augmentation):
    """With probability `p`, mirror a picture: its columns in reverse order."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ConversionError(f"Flip: a probability is between 0 and 1, not {p}")
        self.p = p

    def change(self, x: Any, rng: np.random.Generator) -> Any:
        return x[..., ::-1] if rng.random() < self.p else x


class Noise(Augmentation):
    """Adds normal random numbers with this standard deviation."""

    def __init__(self, std: float) -> None:
        self.std = std

    def change(self, x: Any, rng: np.random.Generator) -> Any:
        return x + rng.standard_normal(x.shape, dtype=np.float32) * np.float32(self.std)


def _overlap(by: int) -> tuple[slice, slice]:
    """Where a row that is moved `by` places goes, and which part of it remains."""
    return slice(max(by, 0), min(by, 0) or None), slice(max(-by, 0), min(-by, 0) or None)
