"""The texts of a unit: `texts.en.toml` in its folder, which a teacher edits.  A translation is a file beside it.

The table `[tasks.NAME]` belongs to the task of that name.  What is said there becomes an attribute of the task's class.
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

LANGUAGE = "MINIGRAD_LANGUAGE"  # the variable of the environment that chooses the language
ATTRIBUTES = {"text": "template", "right": "right_value", "wrong": "wrong_values"}  # where the names differ
TEXT, NUMBER, TABLE = (str,), (int, float), (dict,)
KINDS: dict[str, tuple[type, ...]] = {
    "text": TEXT, "outcome": TEXT, "otherwise": TEXT, "why": TEXT, "example": TEXT, "kind": TEXT, "program": TEXT,
    "points": NUMBER, "minutes": NUMBER, "seconds": NUMBER, "tolerance": NUMBER, "hints": TABLE, "advice": TABLE,
    "options": TABLE, "wrong": (list,),
}
WORDS = {str: "a text", int: "a number", dict: "a table", list: "a list"}


class Texts(NamedTuple):
    """A file of texts: where it is, its lines, and what they say."""

    path: Path
    lines: tuple[str, ...]
    data: dict[str, Any]

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The tables of the tasks, by the tasks' names."""
        return self.data.get("tasks", {})

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
    return _texts_of(folder, os.environ.get(LANGUAGE, "en"))


@cache
def _texts_of(folder: Path, language: str) -> Texts | None:
    for path in (folder / f"texts.{language}.toml", folder / "texts.en.toml"):
        if path.exists():
            return _read(path)
    return None


def _read(path: Path) -> Texts:
    text = path.read_text(encoding="utf-8")
    try:
        texts = Texts(path, tuple(text.splitlines()), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:  # which names the line
        raise DeclarationError(f"{path.parent.name}/{path.name}: {error}") from None
    for name, task in texts.tasks.items():
        for key, value in task.items():
            _check(texts, name, key, value)
    return texts


def _check(texts: Texts, task: str, key: str, value: Any) -> None:
    """Whether the value of a key has the kind that its name promises."""
    where = ("tasks", task, key)
    kinds = KINDS.get(key)
    if kinds is not None and not isinstance(value, kinds):
        raise texts.problem(f"{key} should be {WORDS[kinds[0]]}, not {value!r}", *where)
    if key == "wrong":
        for row in value:
            if not (isinstance(row, list) and len(row) == 2 and isinstance(row[1], str)):
                raise texts.problem(f"a wrong answer should be [answer, hint], not {row!r}", *where)
    if kinds is TABLE:
        for name, words in value.items():
            if not isinstance(words, str):
                raise texts.problem(f"{name} should be a text, not {words!r}", *where, name)


def attributes(cls: type, declared: set[str]) -> dict[str, Any]:
    """The attributes of a task's class that the file in the folder of its module declares."""
    texts, name = _file_of(cls), vars(cls).get("name", "")
    if texts is None or name not in texts.tasks:
        return {}
    found = {}
    for key, value in texts.tasks[name].items():
        attribute = ATTRIBUTES.get(key, key)
        if key == "kind":
            continue
        if attribute not in declared:
            near = get_close_matches(key, [*KINDS, "right"], 1)
            raise texts.problem(f"a task has no {key}" + (f": {near[0]}?" if near else ""), "tasks", name, key)
        if attribute in vars(cls) and key not in ("hints", "wrong"):
            raise texts.problem(f"{cls.__name__} in {cls.__module__} has {attribute} too", "tasks", name, key)
        found[attribute] = value
    return found


def problem(cls: type, what: str, *keys: str) -> DeclarationError:
    """An error in the declaration of a task, with the line of its texts if it has some."""
    texts, name = _file_of(cls), vars(cls).get("name", "")
    if texts is not None and name in texts.tasks:
        return texts.problem(f"{name}: {what}", "tasks", name, *keys)
    return DeclarationError(f"{cls.__name__}: {what}")


def _file_of(cls: type) -> Texts | None:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return texts_of(Path(file).parent) if file else None


def filled(template: str, of: Any) -> str:
    """A text with attributes in the place of their names in braces; other braces stay.

    >>> filled("{real:g} + {imag}j, {or} more", 3 + 4j)
    '3 + 4.0j, {or} more'
    """
    def value(found: re.Match[str]) -> str:
        return format(getattr(of, found[1]), found[2] or "") if hasattr(of, found[1]) else found[0]

    return re.sub(r"\{(\w+)(?::([^{}]*))?\}", value, template)
