"""Unit 13: known mistakes, each written as an expression and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tasks import Mistake


def values(*known: tuple[str, str]) -> tuple[Mistake, ...]:
    """Wrong values, as expressions of the task, `self`."""
    return tuple([Mistake(text, hint, lambda self, text=text: eval(text, {"self": self}), None)
                  for text, hint in known])


def hints_of(known: Sequence[Mistake]) -> dict[str, str]:
    """The hints by the names of the mistakes: with these, each mistake is one of the task's own."""
    return {each.name: each.hint for each in known}


def rings(*known: tuple[str, str]) -> tuple[Mistake, ...]:
    """Wrong rings: the arguments of the method `ring` of the task."""
    def made(text: str) -> Any:
        return lambda self, *given: self.ring(*given, **eval(f"dict({text})", {"self": self, "np": np}))

    return tuple([Mistake(text, hint, made(text), None) for text, hint in known])
