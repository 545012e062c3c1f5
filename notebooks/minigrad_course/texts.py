"""The texts of a unit: `texts.en.toml` in its folder, which a teacher edits.  A translation is a file beside it.

A translation may be unfinished: what `texts.de.toml` lacks is shown in English.

The table `[tasks.NAME]` belongs to the task of that name, and `[kinds.CLASS]` to a kind of tasks.  What is said there
becomes an attribute of the class.
The file is read when its unit is used, and once.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.support.errors import DeclarationError
from minigrad.support.table import counted

LANGUAGE = "MINIGRAD_LANGUAGE"  # the variable of the environment that chooses the language
ATTRIBUTES = {  # where the names differ
    "text": "template", "right": "right_value", "wrong": "wrong_values", "mistakes": "written_mistakes",
}
TEXT, NUMBER, TABLE = (str,), (int, float), (dict,)
KINDS: dict[str, tuple[type, ...]] = {
    "text": TEXT, "outcome": TEXT, "otherwise": TEXT, "why": TEXT, "example": TEXT, "kind": TEXT, "program": TEXT,
    "formula": TEXT,
    "points": NUMBER, "minutes": NUMBER, "seconds": NUMBER, "tolerance": NUMBER, "hints": TABLE, "advice": TABLE,
    "options": TABLE, "signs": TABLE, "draws": TABLE, "wrong": (list,), "mistakes": (list,),
}
PARTS = ("tasks", "kinds")  # tables of tasks, and of kinds of tasks by their classes
ROWS = {
    "wrong": "a wrong answer should be [answer, hint]", "errors": "a row of an error is [kind, pattern, hint]",
    "mistakes": "a mistake should be [expression, hint], or [what is right, what is written, hint]",
}
WORDS = {str: "a text", int: "a number", dict: "a table", list: "a list"}


PROSE = {"text", "otherwise", "why", "title", "question", "belief", "idea"}  # keys that a translation should have
TABLES = {"hints", "advice", "options", "signs", "outcomes", "words"}  # and tables of which it should have all keys


class Texts(NamedTuple):
    """A file of texts: where it is, its lines, and what they say.  A translation lacks the keys that are `missing`."""

    path: Path
    lines: tuple[str, ...]
    data: dict[str, Any]
    missing: tuple[str, ...] = ()

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The tables of the tasks, by the tasks' names."""
        return self.data.get("tasks", {})

    def place(self, cls: type) -> tuple[str, str] | None:
        """Where the table of a task's class is, or of a kind of tasks; None where it has none."""
        places = ("tasks", vars(cls).get("name", "")), ("kinds", cls.__name__)
        return next((place for place in places if place[1] in self.data.get(place[0], {})), None)

    def problem(self, what: str, *keys: str) -> DeclarationError:
        """An error that names the line of a key; of its table, where the key is missing."""
        return DeclarationError(f"{self.path.parent.name}/{self.path.name}, line {line_of(self.lines, keys)}: {what}")


def line_of(lines: tuple[str, ...], keys: tuple[str, ...]) -> int:
    """The number of the line with a key; that of its table, where the key is missing.

    >>> line_of(("[tasks.rise]", "minutes = 3"), ("tasks", "rise", "minutes"))
    2
    """
    table: tuple[str, ...] = ()
    found, depth = 1, 0
    for number, line in enumerate(lines, 1):
        header, key = re.match(r"\[+([\w.]+)\]+", line), re.match(r"([\w-]+) *=", line)
        table = tuple(header[1].split(".")) if header else table
        here = (*table, key[1]) if key else table
        if (header or key) and here == keys[: len(here)] and len(here) > depth:
            found, depth = number, len(here)
    return found


def texts_of(folder: Path) -> Texts | None:
    """The texts in a folder, in the chosen language or else in English; None where there are none."""
    return texts_in(folder, os.environ.get(LANGUAGE, "en"))


@cache
def texts_in(folder: Path, language: str) -> Texts | None:
    """The texts in a folder in a language, which is English where there are no others."""
    english, other = (folder / f"texts.{each}.toml" for each in ("en", language))
    if not english.exists():
        return None
    return _read(english) if other == english or not other.exists() else translated(_read(english), _read(other))


def translated(english: Texts, other: Texts) -> Texts:
    """The English texts with those of a translation in their places; what it lacks stays English, and is `missing`."""
    missing: list[str] = []

    def merged(right: Any, own: Any, *where: str) -> Any:
        if where and where[-1] in ROWS:
            return rows(right, own or [], *where)
        if isinstance(right, list) and own is not None and len(own) != len(right):
            here = counted(len(own), "part")
            raise other.problem(f"{where[-1]} has {here} here, and {len(right)} in English", *where)
        if isinstance(right, list) and all(isinstance(each, dict) for each in right):
            return [merged(*pair, *where) for pair in zip(right, own or [{}] * len(right))]
        if isinstance(right, dict):
            own = own or {}
            for key in own.keys() - right.keys():
                raise other.problem(f"{key} is not in {english.path.name}", *where, key)
            return {key: merged(value, own.get(key), *where, key) for key, value in right.items()}
        is_prose = where[-1] in PROSE or (len(where) > 1 and where[-2] in TABLES)
        if own is None:
            missing.extend([".".join(where)] if is_prose and right else [])
        elif own != right and not (is_prose or where[-1] == "example"):
            raise other.problem(f"{where[-1]} is {own!r} here, and {right!r} in {english.path.name}", *where)
        return right if own is None else own

    def rows(right: list[Any], own: list[Any], *where: str) -> list[Any]:
        hints = {repr(row): hint for *row, hint in own}
        for row in hints.keys() - {repr(row) for *row, _ in right}:
            raise other.problem(f"{english.path.name} has no row {row}", *where)
        missing.extend([".".join([*where, repr(row)]) for *row, _ in right if repr(row) not in hints])
        return [[*row, hints.get(repr(row), hint)] for *row, hint in right]

    data = merged(english.data, other.data)
    return other._replace(data=data, missing=tuple(missing))


def _read(path: Path) -> Texts:
    text = path.read_text(encoding="utf-8")
    try:
        texts = Texts(path, tuple(text.splitlines()), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:  # which names the line
        raise DeclarationError(f"{path.parent.name}/{path.name}: {error}") from None
    for part in PARTS:
        for name, task in texts.data.get(part, {}).items():
            for key, value in task.items():
                _check(texts, (part, name, key), value)
    return texts


def _check(texts: Texts, where: tuple[str, str, str], value: Any) -> None:
    """Whether the value of a key has the kind that its name promises."""
    key = where[-1]
    kinds = KINDS.get(key)
    if kinds is not None and not isinstance(value, kinds):
        raise texts.problem(f"{key} should be {WORDS[kinds[0]]}, not {value!r}", *where)
    for row in value if key in ROWS else ():
        is_text = isinstance(row, list) and all(isinstance(each, str) for each in row[key == "wrong" :])
        if not is_text or not (len(row) == 2 or (key == "mistakes" and len(row) % 2 and len(row) > 2)):
            raise texts.problem(f"{ROWS[key]}, not {row!r}", *where)
    if kinds is TABLE:
        for name, words in value.items():
            kind = list if key == "draws" else str
            if not isinstance(words, kind):
                raise texts.problem(f"{name} should be {WORDS[kind]}, not {words!r}", *where, name)


def attributes(cls: type, declared: set[str]) -> dict[str, Any]:
    """The attributes of a task's class that the file in the folder of its module declares."""
    texts, place = _place_of(cls)
    if texts is None or place is None:
        return {}
    found = {}
    for key, value in texts.data[place[0]][place[1]].items():
        attribute = ATTRIBUTES.get(key, key)
        if key == "kind":
            continue
        if attribute not in declared:
            near = get_close_matches(key, [*KINDS, "right"], 1)
            raise texts.problem(f"a task has no {key}" + (f": {near[0]}?" if near else ""), *place, key)
        if attribute in vars(cls) and key not in ("hints", *ROWS):
            raise texts.problem(f"{cls.__name__} in {cls.__module__} has {attribute} too", *place, key)
        found[attribute] = value
    return found


def problem(cls: type, what: str, *keys: str) -> DeclarationError:
    """An error in the declaration of a task, with the line of its texts if it has some."""
    texts, place = _place_of(cls)
    if texts is not None and place is not None:
        return texts.problem(f"{place[1]}: {what}", *place, *keys)
    return DeclarationError(f"{cls.__name__}: {what}")


def _place_of(cls: type) -> tuple[Texts | None, tuple[str, str] | None]:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    texts = texts_of(Path(file).parent) if file else None
    return texts, None if texts is None else texts.place(cls)
