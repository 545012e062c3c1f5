"""A budget: how much of something an answer may use.

A task with a budget first compares the results of an answer, then calls `within` with its limits, the most important
first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..support.table import bytes_text
from .feedback import Wrong


class Limit(NamedTuple):
    """The most that an answer may use of something, and the hint for an answer that uses more."""

    what: str  # as in "7.1 MB kept at once"
    used: int
    most: int
    hint: str | None = None
    amount: Callable[[Any], str] = bytes_text  # an amount in words

    def __str__(self) -> str:
        return f"{self.amount(self.used)} {self.what}, of {self.amount(self.most)}"


def within(task: str, limits: Sequence[Limit]) -> str:
    """Raise `Wrong` for the first limit that an answer exceeds; otherwise return what it uses, in words.

    >>> within("plan", [Limit("kept at once", 7_100_000, 9_000_000), Limit("blocks computed again", 4, 4, amount=str)])
    '7.1 MB kept at once, of 9 MB; 4 blocks computed again, of 4'
    """
    for limit in limits:
        if limit.used > limit.most:
            got, most = limit.amount(limit.used), limit.amount(limit.most)
            raise Wrong(task, f"too much: {limit.what}\n  Expected: at most {most}\n  Got: {got}", limit.hint)
    return "; ".join(map(str, limits))
