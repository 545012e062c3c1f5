"""Unit 07: wrong answers that are written as formulas of a task's numbers."""

from __future__ import annotations

import math
from typing import Any

from ...tasks import Mistake, ValueTask


def by_formula(*hints: tuple[str, str]) -> tuple[Mistake, ...]:
    """Known mistakes from formulas with `*` and `+` of a task's attributes, one for each number; and their hints.

    >>> [known.name for known in by_formula(("0 2*full", "h is kept once"))[:1]]
    ['0 2*full']
    """
    made = [Mistake(text, hint, lambda task, text=text: _found(task, text), None) for text, hint in hints]
    return (*made, *ValueTask.mistakes)


def _found(task: Any, text: str) -> Any:
    found = [sum([math.prod([_number(task, each) for each in term.split("*")]) for term in formula.split("+")])
             for formula in text.split()]
    return found if len(found) > 1 else found[0]


def _number(task: Any, text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else getattr(task, text)
