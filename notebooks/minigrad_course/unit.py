"""A unit of the course: its question, outcomes, misconceptions and tasks.

A unit is declared once, for the notebooks, the checks, and the tests of both: in `texts.en.toml` what is text, and in
Python what computes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from typing import Any, NamedTuple

from minigrad.support.errors import DeclarationError

from .predicting import Choice, Printed
from .tasks import Bet, Prediction, Question, Task, ValueTask
from .texts import PARTS, Texts, texts_of

KINDS: dict[str, type[Task]] = {each.__name__: each for each in (Bet, Prediction, Question, ValueTask)}
OPTIONAL = {"further", "prerequisites", "misconceptions", "seeds", "words"}
ABOUT = {"title", "question", "minutes", "outcomes"} | OPTIONAL
FORMS: dict[str, type[Task]] = {"options": Choice, "program": Printed}  # by the key that only they have


class Misconception(NamedTuple):
    """A wrong belief that many people have: its source, and the task or cell that corrects it."""

    belief: str
    source: str  # an address, or a title and page
    met_in: str  # the name of a task, or the id of a cell


class Seed(NamedTuple):
    """An idea that the course must cover, and the task or cell where a student predicts, computes or changes it."""

    idea: str  # as `lectures/site/ideas.py` has it: "000: JAX"
    met_in: str


@dataclass
class Unit:
    """A unit of the course.  Its lecture, notebook and exercise have the same number and name."""

    number: int
    name: str
    title: str
    question: str  # the first question, with a surprising answer
    minutes: int  # of page, demo and exercise, which `authoring.minutes` counts
    outcomes: dict[str, str]  # what a student can do afterwards; tasks refer to the keys
    prerequisites: tuple[str, ...] = ()  # units, such as "00_start"
    misconceptions: tuple[Misconception, ...] = ()
    seeds: tuple[Seed, ...] = ()
    further: int = 0  # minutes of what stands below "Further", and is not among those of the unit
    tasks: dict[str, type[Task]] = field(default_factory=dict)
    texts: Texts | None = None
    words: dict[str, str] = field(default_factory=dict)  # hints that several places of the unit's code give

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
        """The points of the unit's tasks together; those below "Further" come on top."""
        return sum(task.points for task in self.tasks.values() if not task.further)

    @property
    def takes(self) -> str:
        """How long the unit takes: `115 minutes`, `115 minutes (and 55 for more)`."""
        return f"{self.minutes} minutes" + (f" (and {self.further} for more)" if self.further else "")

    def task(self, cls: type[Task]) -> type[Task]:
        """Add a task to the unit: a decorator of the class.  Tasks have the order of the texts."""
        self.tasks[cls.name] = cls
        order = [] if self.texts is None else list(self.texts.tasks)
        self.tasks = dict(sorted(self.tasks.items(), key=lambda task: order.index(task[0]) if task[0] in order else 99))
        return cls

    def kind(self, cls: type[Task]) -> type[Task]:
        """Make the tasks whose texts name this class as their `kind`: a decorator of a kind that the unit has alone."""
        self._make(cls.__name__, cls, cls.__module__)
        return cls

    def _make(self, kind: str, base: type[Task], module: str) -> None:
        """Tasks that are data alone: classes with nothing but a name, whose texts hold the rest."""
        for name, words in self.texts.tasks.items() if self.texts is not None else ():
            if words.get("kind") == kind:
                forms = [form for key, form in FORMS.items() if key in words]
                self.task(type(name.title().replace("_", ""), (*forms, base), {"name": name, "__module__": module}))


class Annex(Unit):
    """A part of the course with tasks that is not a unit: its name and title have no number, which is for the order."""

    @property
    def key(self) -> str:
        return self.name

    @property
    def heading(self) -> str:
        return self.title


def unit(file: str, module: str) -> Unit:
    """The unit that the texts in the folder of a file describe, with its tasks that are data alone.

    The unit of `units/u00_start` has the number 0 and the name `start`.
    """
    folder = Path(file).parent
    texts = texts_of(folder)
    if texts is None:
        raise DeclarationError(f"{folder.name} has no texts.en.toml")
    number, _, name = folder.name.removeprefix("u").partition("_")
    about = {key: value for key, value in texts.data.items() if key not in PARTS}
    for key in about.keys() ^ ABOUT:
        if key not in OPTIONAL:
            raise texts.problem(f"{key} is {'missing' if key in ABOUT else 'not a part of a unit'}", key)
    made = Unit(int(number), name, texts=texts, **{
        **about, "prerequisites": tuple(about.get("prerequisites", ())),
        "misconceptions": _rows(texts, "misconceptions", Misconception), "seeds": _rows(texts, "seeds", Seed)})
    for kind, base in KINDS.items():
        made._make(kind, base, module)
    return made


def _rows(texts: Texts, key: str, kind: Callable[..., Any]) -> tuple[Any, ...]:
    try:
        return tuple([kind(**row) for row in texts.data.get(key, ())])
    except TypeError as error:
        raise texts.problem(f"{key}: {str(error).partition(' ')[2]}", key) from None


class Parts(Mapping[str, Unit]):
    """Parts of the course by their keys, from places such as `package.module:NAME`.

    The module of a part is imported when the part is used.  A notebook uses one unit, and the import of all units would
    take a browser seconds.
    """

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __getitem__(self, key: str) -> Unit:
        part: Unit = resolve_name(self.places[key])
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def used(self) -> list[Unit]:
        """The parts that have been used."""
        places = [place.split(":") for place in self.places.values()]
        found = [getattr(sys.modules.get(module), name, None) for module, name in places]
        return [part for part in found if part is not None]


@cache
def units() -> Parts:
    """All units by their keys, in order.

    >>> list(units())[0]
    '00_start'
    """
    folder = str(Path(__file__).with_name("units"))
    return Parts({each.name[1:]: f"{__package__}.units.{each.name}:UNIT" for each in iter_modules([folder])})


@cache
def parts() -> Parts:
    """Everything that has tasks: the units, and after them the project and the museum.

    >>> list(parts())[-1]
    'museum'
    """
    others = {"project": f"{__package__}.project:PROJECT", "museum": f"{__package__}.museum:MUSEUM"}
    return Parts(units().places | others)


def task_of(name: str) -> type[Task] | None:
    """The task of that name; the parts that have been used come first, because the import of others takes a while."""
    return next((part.tasks[name] for part in chain(parts().used(), parts().values()) if name in part.tasks), None)


def task_names() -> list[str]:
    """The names of the tasks of all parts."""
    return [name for part in parts().values() for name in part.tasks]


def names_in_use() -> set[str]:
    """The names of the tasks of the parts that have been used."""
    return {name for part in parts().used() for name in part.tasks}
