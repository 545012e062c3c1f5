"""Known wrong answers in short: pairs of a program (or a value) and a hint, and known errors with hints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...feedback import Wrong, place
from ...tasks import Mistake, common


def programs(*known: tuple[Callable[..., Any], str]) -> tuple[Mistake, ...]:
    """Wrong programs, each a function of the task and the arguments of a call."""
    return common(**{f"known_{number}": (hint, program) for number, (program, hint) in enumerate(known, 1)})


def wrong_values(*known: tuple[Any, str]) -> tuple[Mistake, ...]:
    """Wrong values."""
    return programs(*[(lambda task, value=value: value, hint) for value, hint in known])


def hinted(task: str, error: Exception, hints: Mapping[str, str], call: str) -> Exception:
    """The feedback on an error in a student's function, if a part of its text has a hint; else the error itself."""
    first = f"{type(error).__name__}: {error}".partition("\n")[0]
    for part, hint in hints.items():
        if part in first:
            return Wrong(task, "\n".join([f"stopped with {first}", f"  in {call}", *place(error)]), hint)
    return error
