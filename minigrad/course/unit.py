"""A unit of the course: its question, outcomes, misconceptions and tasks.

A unit is declared once, for the notebooks, the checks, and the tests of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from .tasks import Task


class Misconception(NamedTuple):
    """A wrong belief that many people have: its source, and the task or cell that corrects it."""

    belief: str
    source: str  # an address, or a title and page
    met_in: str  # the name of a task, or the id of a cell


class Seed(NamedTuple):
    """An idea that the course must cover, and the task or cell where a student predicts, computes or changes it."""

    idea: str  # as `lectures/ideas.py` has it: "000: JAX"
    met_in: str


@dataclass
class Unit:
    """A unit of the course.  Its lecture, notebook and exercise have the same number and name."""

    number: int
    name: str
    title: str
    question: str  # the first question, with a surprising answer
    minutes: int
    outcomes: dict[str, str]  # what a student can do afterwards; tasks refer to the keys
    prerequisites: tuple[str, ...] = ()  # units, such as "00_start"
    misconceptions: tuple[Misconception, ...] = ()
    seeds: tuple[Seed, ...] = ()
    tasks: dict[str, type[Task]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The number and name: `00_start`."""
        return f"{self.number:02}_{self.name}"

    @property
    def heading(self) -> str:
        """The number and title: `00 · What a gradient is`."""
        return f"{self.number:02} · {self.title}"

    @property
    def points(self) -> int:
        """The points of all tasks together."""
        return sum(task.points for task in self.tasks.values())

    def task(self, cls: type[Task]) -> type[Task]:
        """Add a task to the unit: a decorator of the class."""
        self.tasks[cls.name] = cls
        return cls


class Annex(Unit):
    """A part of the course with tasks that is not a unit: its name and title have no number, which is for the order."""

    @property
    def key(self) -> str:
        return self.name

    @property
    def heading(self) -> str:
        return self.title


def units() -> dict[str, Unit]:
    """All units by their keys, in order.

    >>> list(units())[0]
    '00_start'
    """
    from . import units as package

    found = [import_module(f"{package.__name__}.{each.name}").UNIT for each in iter_modules(package.__path__)]
    return {unit.key: unit for unit in sorted(found, key=lambda unit: unit.number)}


def parts() -> dict[str, Unit]:
    """Everything that has tasks: the units, and after them the museum.

    >>> list(parts())[-1]
    'museum'
    """
    annex: Unit = import_module(f"{__package__}.museum").MUSEUM
    return units() | {annex.key: annex}


def task_names() -> list[str]:
    """The names of the tasks of all parts."""
    return [name for part in parts().values() for name in part.tasks]
