"""The names that other libraries use, and what to write here.  Errors show them as hints; none of them is an alias.

`torch.txt` is the table of PyTorch's names, from which `minigrad.compat` makes functions too, and `synonyms.txt` has
those of NumPy and JAX, and keywords.  They are read when the first hint is needed.  The page
`lectures/reference/coming_from.md` shows them all, and a test evaluates everything that they say to write.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

TABLE = os.path.splitext(__file__)[0] + ".txt"
TORCH = os.path.join(os.path.dirname(__file__), "torch.txt")
# How a hint spells the names of a room in `torch.txt`, and PyTorch's first arguments.
SPELLED = {"torch": "torch", "x": "x", "F": "torch", "nn": "torch.nn", "model": "model", "optim": "torch.optim"}
EXAMPLES = {"input": "x", "self": "x", "other": "y", "mat2": "w", "tensor": "b"}


class Row(NamedTuple):
    """A row of `torch.txt`: names with one signature (or none) and one expression, empty for what is absent."""

    rooms: tuple[str, ...]
    kind: str  # "", "@", "class" or "layer"
    names: tuple[str, ...]
    signature: str | None
    inputs: str  # of a layer
    expression: str
    hint: str

    def advice(self, name: str) -> str:
        """The hint for one of the names: that of the row, or the expression, if it uses only public names."""
        if self.hint or self.kind in ("class", "layer"):
            return self.hint
        examples = {**EXAMPLES, "self": "model"} if "model" in self.rooms else EXAMPLES
        text = self.expression.replace("{}", name.rstrip("_"))
        words = {*re.findall(r"(?<![\w.\"])[A-Za-z_]\w*", text)}
        if not words & {"mg", *examples} or words - {"mg", *examples} or re.search(rf"\bmg\.{name}\b", text):
            return ""  # not what a user would write, or minigrad has the name
        return re.sub(r"\b(" + "|".join(examples) + r")\b", lambda m: examples[m[0]], text)


@cache
def rows() -> tuple[Row, ...]:
    """The rows of `torch.txt`."""
    found, rooms = [], tuple[str, ...]()
    with open(TORCH, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("["):
                rooms = tuple(line.strip("[]").split())
            elif line and line[0] != "#":
                found.append(_row(rooms, line))
    return tuple(found)


def _row(rooms: tuple[str, ...], line: str) -> Row:
    line, _, hint = line.partition("  # ")
    left, _, expression = f"{line} ".partition(" = ")
    head, paren, signature = left.strip().removesuffix(" =").partition("(")
    kind = "@" if head[0] == "@" else head.split()[0] if head.startswith(("class ", "layer ")) else ""
    inputs = ""
    if kind == "layer":
        signature, _, inputs = signature[:-1].partition(")(")
        signature += ")"
    names = tuple(head.removeprefix(kind).split())
    return Row(rooms, kind, names, signature[:-1] if paren else None, inputs, expression.strip(), hint.strip())


def _of_torch() -> Iterator[Synonym]:
    for row in rows():
        for name in row.names:
            here, _, why = row.advice(name).partition("  # ")
            for place in dict.fromkeys(SPELLED.get(room, "") for room in row.rooms):
                if here and place and "." not in name:
                    yield Synonym(("torch",), f"{place}.{name}", here, why)


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
    """The lines of both tables."""
    found = list(_of_torch())
    for words, why in _lines():
        libraries, foreign, here = words[:18], *words[18:].strip().split(None, 1)
        if not foreign.endswith("*"):
            found.append(Synonym(tuple(libraries.split()), foreign, here.strip(), why.strip()))
    return tuple(found)


def absent_names() -> Iterator[tuple[str, str]]:
    """The names that tensors (`x`) and modules (`model`) lack: all that is read when minigrad is imported."""
    for words, _ in _lines():
        place, dot, name = words[18:].partition(" ")[0].partition(".")
        if place in ("x", "model") and dot:
            yield from [(place, each) for each in (words.split()[2:] if name == "*" else [name])]


def _lines() -> Iterator[tuple[str, str]]:
    with open(TABLE, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if not line.startswith("#"):
                words, _, why = line.partition("  #")
                yield words, why


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
