"""The API reference, made from signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Any, NamedTuple

import minigrad as mg
import minigrad.compile
import minigrad.io
import minigrad.viz
import minigrad_course

from . import build_reference
from .frames import Section
from .markup import Lecture, as_page, slug

# Title, prefix of the names, module or class.
ROOMS: tuple[tuple[str, str, Any], ...] = (
    ("", "mg.", mg),
    ("Methods of tensors", "Tensor.", mg.Tensor),
    ("Linear algebra", "mg.linalg.", mg.linalg),
    ("Random numbers", "mg.random.", mg.random),
    ("Layers", "mg.nn.", mg.nn),
    ("Methods of modules", "Module.", mg.nn.Module),
    ("First values of weights", "mg.nn.init.", mg.nn.init),
    ("Optimizers", "mg.optim.", mg.optim),
    ("Schedules of learning rates", "mg.optim.lr_scheduler.", mg.optim.lr_scheduler),
    ("Training", "mg.train.", mg.train),
    ("Data", "mg.data.", mg.data),
    ("Files", "mg.io.", minigrad.io),
    ("Devices", "mg.devices.", mg.devices),
    ("Seeing", "mg.viz.", minigrad.viz),
    ("The course", "course.", minigrad_course),
)
# The functions of `mg`, by the module that defines them.
TOPICS = {
    "minigrad.ops.creation": "Creation",
    **{f"minigrad.{room}": title for room, title in build_reference.ROOMS.items() if "," not in title},
    "minigrad.ops.windows": "Views",
    "minigrad.autodiff": "Derivatives",
    "minigrad.control": "Branches and loops",
    "minigrad.compile": "Graphs and programs",
    "minigrad.ops.effects": "Looking into a program",
    "minigrad": "Modes, types and devices",
}
LAZY = ("graph", "jit", "kernel", "load_program", "profile", "script", "trace")


class Entry(NamedTuple):
    """A function, class or method."""

    name: str
    signature: str
    text: str

    @property
    def summary(self) -> str:
        """The first paragraph, on a line and without marks."""
        return " ".join(self.text.split("\n\n")[0].split()).replace("`", "")


def members(place: Any) -> Iterable[tuple[str, Any]]:
    """The public members of a module or class that have a docstring."""
    names = set(vars(place)) | (set(LAZY) if place is mg else set())
    for name in sorted(getattr(place, "__all__", names), key=str.lower):
        if name.startswith("_"):
            continue
        found = getattr(place, name)
        ours = (getattr(found, "__module__", "") or "").startswith("minigrad")
        error = inspect.isclass(found) and issubclass(found, BaseException)
        if ours and callable(found) and not error and inspect.getdoc(found):
            yield name, found


def signature(found: Any) -> str:
    """The parameters, without their types."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    bare = [_bare(each) for each in parameters if each.name != "self"]
    try:
        return str(inspect.Signature(bare))
    except ValueError:
        return "(...)"


class _Dots:
    def __repr__(self) -> str:
        return "..."


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter without its type; a default that only marks a missing argument is three dots."""
    default = _Dots() if type(parameter.default) is object else parameter.default
    return parameter.replace(annotation=parameter.empty, default=default)


@cache
def entries() -> dict[str, list[Entry]]:
    """All entries, by the titles of their rooms."""
    listed: dict[str, list[Entry]] = {title: [] for title in TOPICS.values()}
    for title, prefix, place in ROOMS:
        for name, found in members(place):
            entry = Entry(prefix + name, signature(found), inspect.getdoc(found) or "")
            listed.setdefault(topic(found) if place is mg else title, []).append(entry)
    return {title: found for title, found in listed.items() if found}


def topic(function: Any) -> str:
    """The heading of a function of the first room."""
    module = function.__module__
    while module not in TOPICS:
        module = module.rpartition(".")[0]
    return TOPICS[module]


def api_page() -> tuple[str, list[Section]]:
    """All rooms as a page, and its contents."""
    found = entries()
    count = sum(map(len, found.values()))
    parts = [
        f"<h1>API</h1><p>{count} functions, classes and methods. Each entry is the docstring; its "
        "example is run as a test. <kbd>/</kbd> searches, and each name is a link to its entry.</p>"
    ]
    sections = []
    for title, listed in found.items():
        room = slug(title)
        names = " ".join(f'<a href="#{each.name}"><code>{_short(each.name)}</code></a>' for each in listed)
        parts.append(f'<h2 id="{room}">{title} <small>{len(listed)}</small></h2><p class="names">{names}</p>')
        parts += map(_entry, listed)
        sections += [Section(2, room, title), *(Section(3, each.name, _short(each.name)) for each in listed)]
    return "\n".join(parts), sections


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _entry(entry: Entry) -> str:
    """An entry: its signature as the heading, its docstring as Markdown, its example as it is run."""
    said, mark, example = entry.text.partition(">>> ")
    lines = [said.strip(), "", f"```pycon\n{mark}{example.rstrip()}\n```"] if example else [said.strip()]
    room, _, short = entry.name.rpartition(".")
    heading = f"<span>{room}.</span><b>{escape(short)}</b><span>{escape(entry.signature)}</span>"
    body = as_page(Lecture(entry.name, "\n".join(lines)))
    return (
        f'<section class="entry"><h3 id="{entry.name}"><a href="#{entry.name}"><code>{heading}</code></a></h3>\n'
        f"{body}</section>"
    )


def titles_of(room: str) -> list[str]:
    """The titles of the API page's parts that describe a room of the library.

    >>> titles_of("optim")
    ['Optimizers', 'Schedules of learning rates']
    """
    found = [title for module, title in TOPICS.items() if f"{module}.".startswith(f"minigrad.{room}.")]
    found += [title for title, _, place in ROOMS if f"{getattr(place, '__module__', place.__name__)}.".startswith(
        f"minigrad.{room}.")]
    listed = entries()
    return [title for title in dict.fromkeys(found) if title in listed]
