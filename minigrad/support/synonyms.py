"""The names that other libraries use, and what to write here.  Errors show them as hints; none of them is an alias.

`synonyms.txt` is the table of them.  The page `lectures/reference/coming_from.md` shows the whole table, and a test
evaluates everything that it says to write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

TABLE = os.path.splitext(__file__)[0] + ".txt"


class Synonym(NamedTuple):
    """A line of the table: where the name is missed (a room, `x`, `model` or `=`), and what to write instead."""

    libraries: tuple[str, ...]
    foreign: str
    here: str
    why: str

    @property
    def name(self) -> str:
        return self.foreign.rpartition(".")[2]

    @property
    def place(self) -> str:
        """The place in minigrad where a program that was not changed looks for the name."""
        if self.foreign.endswith("="):
            return "="
        library, _, inner = self.foreign.rpartition(".")[0].removesuffix(".lax").partition(".")
        return library if library in ("x", "model") else ".".join(filter(None, ("minigrad", inner)))


@cache
def synonyms() -> tuple[Synonym, ...]:
    """The lines of the table."""
    found = []
    with open(TABLE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        words, _, why = line.partition("  #")
        libraries, foreign, here = words[:18], *words[18:].strip().split(None, 1)
        found.append(Synonym(tuple(libraries.split()), foreign, here.strip(), why.strip()))
    return tuple(found)


def hint_for(place: str, name: str, fits: Iterable[str] | None = None) -> str | None:
    """What to write for a name of another library that is missed at a place; `fits` lists what may be written.

    >>> hint_for("x", "view"), hint_for("=", "inplace=")
    ('x.reshape((3, 2))', 'leave it out: the result is a new tensor')
    """
    found = [each for each in synonyms() if each.place == place and each.name == name]
    hints = [f"{each.here}: {each.why}" if each.why else each.here for each in found if not fits or each.here in fits]
    return " or ".join(dict.fromkeys(hints)) or None


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most like another; one that differs only in upper and lower case comes first.

    >>> nearest("relU", ["tanh", "relu", "ReLU"]), nearest("concatt", ["concat"]), nearest("q", ["concat"])
    ('relu', 'concat', None)
    """
    from difflib import get_close_matches  # only errors need it

    alike = {each.lower(): each for each in reversed(list(names))}
    near = get_close_matches(name.lower(), alike, 1, 0.75)
    return alike[near[0]] if near else None
