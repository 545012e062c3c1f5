"""Progress bars, by tqdm: drawn in terminals and notebooks, and a single line at the end in files and logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..core.tensor import Tensor
from ..support.packages import needed
from ..support.waiting import is_drawn
from ..support.words import a_type
from .metrics import Metric

T = TypeVar("T")
OFTEN = 0.1  # seconds between two updates: reading a number may wait for a GPU


class Progress(Iterable[T]):
    """The result of `progress`: goes through the batches, and shows numbers beside the bar."""

    def __init__(self, batches: Iterable[T], label: str = "", total: int | None = None, quiet: bool = False) -> None:
        self.batches, self.label, self.quiet = batches, label, quiet
        self.total = len(batches) if total is None and hasattr(batches, "__len__") else total  # type: ignore[arg-type]
        self.numbers: dict[str, Any] = {}
        self.done = 0
        self._bar: Any = None
        self._looked = 0.0

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError(f"{a_type(self.batches)} has no length: give total=")
        return self.total

    def __iter__(self) -> Iterator[T]:
        begun, self.done, self.numbers = time.monotonic(), 0, {}
        self._bar = _bar(self.label, self.total) if not self.quiet and is_drawn() else None
        try:
            for batch in self.batches:
                yield batch
                self.done += 1
                if self._bar is not None:
                    self._bar.update()
        finally:
            if self._bar is not None:
                self._bar.set_postfix_str(self._text())
                self._bar.close()
            elif not self.quiet:
                of = "" if self.total is None else f"/{self.total}"
                took = f"{self.done}{of} in {time.monotonic() - begun:.1f} s"
                print("  ".join(filter(None, [self.label, took, self._text()])), file=sys.stderr)

    def show(self, **numbers: Any) -> None:
        """Show numbers, tensors of one element, or metrics.  They are read when the bar is drawn."""
        self.numbers |= numbers
        if self._bar is not None and time.monotonic() - self._looked > OFTEN:
            self._bar.set_postfix_str(self._text(), refresh=False)
            self._looked = time.monotonic()

    def _text(self) -> str:
        return ", ".join(f"{name} {_short(value)}" for name, value in self.numbers.items())


def progress(batches: Iterable[T], label: str = "", total: int | None = None, quiet: bool = False) -> Progress[T]:
    """Go through batches with a progress bar; `show` puts numbers beside it.

    >>> for x in (bar := mg.train.progress([1.0, 2.0, 4.0], "epoch 1", quiet=True)):
    ...     bar.show(loss=1 / x)
    >>> bar.done, bar.numbers
    (3, {'loss': 0.25})
    """
    return Progress(batches, label, total, quiet)


def _short(value: Any) -> str:
    if isinstance(value, Metric):
        value = value.value
    if isinstance(value, Tensor):
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _bar(label: str, total: int | None) -> Any:
    tqdm = needed("tqdm.auto", "a progress bar", "; or progress(..., quiet=True)").tqdm
    return tqdm(desc=label, total=total, dynamic_ncols=True)
