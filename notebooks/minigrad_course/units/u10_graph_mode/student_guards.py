"""`guard`: a student's guard in place of all guards of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from inspect import unwrap
from typing import Any

from minigrad.compile.tracing import reachable
from minigrad.compile.tracing.guards import MISSING, SIMPLE, AttributeGuard, CellGuard, Guard, join
from minigrad.core.override import overriding

from ...feedback import Misused, written
from ...swapping import Swapped

Holds = Callable[[], Any]


@contextmanager
def guard(function: Callable[[dict[str, Any]], Holds]) -> Iterator[Swapped]:
    """Let `function(values)` make the guard of each new trace.

    `values` is a dictionary of the plain values that the traced function reads by name: numbers, texts, lists of them.
    It always holds the values of now.  `function` returns a function without parameters, which is called before each
    run and returns whether the trace may be used.  The trace keeps this guard after the block.

    >>> def careless(values):
    ...     return lambda: True
    >>> class settings:
    ...     scale = 1.0
    >>> @mg.jit
    ... def scaled(x):
    ...     return x * settings.scale
    >>> with guard(careless) as mine:
    ...     first = scaled(mg.ones(()))
    ...     settings.scale = 5.0
    ...     first.item(), scaled(mg.ones(())).item()
    (1.0, 1.0)
    >>> mine
    <careless in the engine, called once>
    """
    swapped = Swapped(function.__name__)
    guards_of = unwrap(reachable.guards_of)

    def guards(*roots: Any, more: Any = ()) -> reachable.Guards:
        found = guards_of(*roots, more=more)
        found[:] = [StudentGuard(found, function, swapped)]
        return found  # type: ignore[no-any-return]

    with overriding(reachable.guards_of, guards):
        yield swapped


class StudentGuard(Guard):
    """The one guard of a trace: it calls the student's function, and says in words what changed."""

    def __init__(self, own: Iterable[Guard], function: Callable[[dict[str, Any]], Holds], swapped: Swapped) -> None:
        self.swapped = swapped
        self.places = [each for each in own if isinstance(each, AttributeGuard | CellGuard)]
        super().__init__(swapped.name, None)
        self.before = deepcopy(self.values)
        self.student = function(self.values)
        self.traced = False
        if not callable(self.student):
            problem = f"returned {written(self.student)}, not a function"
            raise Misused(self.name, problem, "define a function inside, and return it without calling it")

    def read(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The plain values that can be read by name now."""
        names = [(place, name) for place in self.places for name in place.values]
        found = [(join(place.name, name), place.read(()).get(name, MISSING)) for place, name in names]
        return {name: value for name, value in found if is_plain(value) and "__" not in name}

    def change(self, arguments: Sequence[Any] = ()) -> str | None:
        """The reason for a new trace, in words; None if the trace may be used.

        The first call, at the end of the trace, is the engine's own check.
        """
        now = self.read(())
        self.values.clear()
        self.values.update(now)
        if not self.traced:
            self.traced = True
            return self._difference()
        self.swapped.calls += 1
        if self.student():
            return None
        return self._difference() or f"{self.name} returned False, though nothing has changed"

    def _difference(self) -> str | None:
        for name in {**self.before, **self.values}:
            was, now = (each.get(name, MISSING) for each in (self.before, self.values))
            if repr(was) != repr(now):
                return f"{name} was {_short(was)} and is {_short(now)}"
        return None


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text, a bool or None, or a list, tuple or dictionary of such values."""
    if type(value) in (list, tuple, dict):
        return all(map(is_plain, value.values() if isinstance(value, dict) else value))
    return type(value) in SIMPLE


def _short(value: Any) -> str:
    return "missing" if value is MISSING else written(value)
