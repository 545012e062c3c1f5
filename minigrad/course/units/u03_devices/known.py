"""Known wrong answers in short: pairs of a program (or a value) and a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tasks import Mistake, common


def programs(*known: tuple[Callable[..., Any], str]) -> tuple[Mistake, ...]:
    """Wrong programs, each a function of the task and the arguments of a call."""
    return common(**{f"known_{number}": (hint, program) for number, (program, hint) in enumerate(known, 1)})


def wrong_values(*known: tuple[Any, str]) -> tuple[Mistake, ...]:
    """Wrong values."""
    return programs(*[(lambda task, value=value: value, hint) for value, hint in known])
