"""The map of the course, which is the map of the library: its rooms as floors, and the units on the rooms they read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape

from minigrad.support.table import counted
from minigrad.viz.colours import themed
from minigrad.viz.svg import text_width
from minigrad_course.unit import Unit

from . import api
from .drawn import Sketch
from .frames import LECTURES, Section
from .markup import as_code, slug
from .rooms import COMPILER, ONLOOKERS, PACKAGE, ROOMS, files_of, imports_of, lines_of, purpose_of, size_of, taught

WIDE, NARROW = 860.0, 360.0
IMAGE, GROUP = 'role="img"', 'role="group"'
GAP, BADGE = 8.0, 13.0
SAID = (
    "The rooms of minigrad as the floors of a house. Each room imports only from floors below it. Numbers are the "
    "units of the course whose lecture reads code of the room; bars are lines of code, to scale."
)


@cache
def readers() -> dict[str, dict[str, list[str]]]:
    """For each room the units whose lectures quote its code, in order, and what they quote."""
    found: dict[str, dict[str, list[str]]] = {}
    for source in sorted(LECTURES.glob("[0-9][0-9]_*.md")):
        for room, quoted in taught(source.read_text(encoding="utf-8")).items():
            found.setdefault(room, {})[source.stem] = quoted
    return found


def floors() -> list[list[str]]:
    """The rooms by floors, the lowest first: a room stands on the highest of the rooms that it imports."""
    imports, level = imports_of(), dict[str, int]()
    for room in ROOMS:
        level[room] = 1 + max([level[other] for other in imports[room]], default=-1)
    top = max(level.values()) + 1
    level |= dict.fromkeys(ONLOOKERS, top)
    return [[room for room in level if level[room] == number] for number in range(top + 1)]


def units_of(room: str, known: dict[str, Unit]) -> list[Unit]:
    """The units that read a room's code, in order."""
    return [known[key] for key in readers().get(room, {}) if key in known]


class House(Sketch):
    """The drawing: floors from the top down; a `brief` one leaves out what the rooms are for."""

    def __init__(self, known: dict[str, Unit], width: float, brief: bool = False) -> None:
        super().__init__(width, 0.0)
        self.known, self.narrow, self.brief = known, width == NARROW, brief
        rows = [row for rooms in reversed(floors()) for row in _rows(rooms, 2 if self.narrow else len(rooms))]
        # The bars of all rooms have one scale, in which each fits into its room.
        self.scale = min((self._width(row) - 24) / size_of(room) for row in rows for room in row)
        y = self._roof()
        for row in rows:
            y += self._floor(row, y) + GAP
        self.height = y - GAP

    def _width(self, row: Sequence[str]) -> float:
        """How wide each room of a row is."""
        return (self.width - GAP * (len(row) - 1)) / len(row)

    def _roof(self) -> float:
        """The roof, with the modules above all rooms; its height."""
        height = 40.0 if self.narrow else 64.0
        self.path([(0, height), (self.width / 2, 2), (self.width, height), (0, height)], "line", fill="tint", thick=1.5)
        self.text(self.width / 2, height - 12, "import minigrad as mg", size=15, code=True, anchor="middle")
        return height + GAP

    def _floor(self, rooms: Sequence[str], y: float) -> float:
        """A floor whose upper side is at y; its height."""
        width = self._width(rooms)
        rows = _rows(COMPILER, 3 if self.narrow else 6)
        lines = max(len(self._said(room, width)) for room in rooms)
        height = 44.0 + 18.0 * lines + ("compile" in rooms) * 48.0 * len(rows)
        for number, room in enumerate(rooms):
            x = number * (width + GAP)
            self._room(room, x, y, width, height)
            if room == "compile":
                for i, row in enumerate(rows):
                    self._inner(row, x + GAP, y + 40 + 18 * lines + 48 * i, width - 2 * GAP)
        return height

    def _room(self, room: str, x: float, y: float, width: float, height: float) -> None:
        units = units_of(room, self.known)
        size = size_of(room)
        said = self._said(room, width)
        self._link(room, f"{room}: {counted(size, 'line')}; {_short(room)}")
        self.rect(x, y, width, height, "tint", "line", thick=1.5, round=6)
        self.text(x + 12, y + 25, room, size=19, bold=True, room=width - 20 - 30 * len(units))
        taken = 12 + text_width(room, 19, bold=True) + 30 * len(units)
        lines = f"{size:,} lines"
        if taken + text_width(lines, 14) + 34 < width:
            self.text(x + 22 + text_width(room, 19, bold=True), y + 25, lines, size=14, fill="quiet")
        for number, line in enumerate(said):
            self.text(x + 12, y + 45 + 18 * number, line, size=14, fill="quiet")
        self.rect(x + 12, y + 34 + 18 * len(said), size * self.scale, 4, "there", "none", round=2)
        self.add("</a>")
        self._badges(units, x + width - 8, y + 19)

    def _said(self, room: str, width: float) -> list[str]:
        """The lines that say what a room is for."""
        return [] if self.brief else _wrapped(_short(room), width - 24)

    def _inner(self, rooms: Sequence[str], x: float, y: float, width: float) -> None:
        """A row of rooms of the compiler."""
        each = (width - GAP * (len(rooms) - 1)) / len(rooms)
        for number, room in enumerate(rooms):
            left = x + number * (each + GAP)
            name = f"compile/{room}"
            self._link(name, f"{name}: {counted(size_of(name), 'line')}")
            self.rect(left, y + 6, each, 36, "paper", "line", round=5)
            self.text(left + 8, y + 29, room, size=14, room=each - 12)
            self.add("</a>")
            self._badges(units_of(name, self.known), left + each - 4, y + 24, small=True)

    def _link(self, room: str, said: str) -> None:
        self.add(f'<a href="rooms.html#{slug(room)}" data-room="{slug(room)}" aria-label="{escape(said)}">')
        self.add(f"<title>{escape(said)}</title>")

    def _badges(self, units: Sequence[Unit], right: float, y: float, *, small: bool = False) -> None:
        """The numbers of units, the last one at `right`."""
        radius = BADGE - 2 * small
        for number, unit in enumerate(reversed(units)):
            x = right - radius - number * (2 * radius + 3)
            self.add(f'<a class="unit" href="{unit.key}.html" aria-label="{unit.number:02}: {escape(unit.title)}">')
            self.add(f"<title>{escape(unit.title)}</title>")
            self.dot(x, y, "there-fill", radius, "there")
            self.text(x, y + 5, f"{unit.number:02}", size=15 - 2 * small, bold=True, fill="there", anchor="middle")
            self.add("</a>")


def _rows(rooms: Sequence[str], across: int) -> list[Sequence[str]]:
    """Rooms in rows of a limited length."""
    return [rooms[start : start + across] for start in range(0, len(rooms), across)]


def _short(room: str) -> str:
    """What a room is for, in plain text."""
    return purpose_of(PACKAGE / room / "__init__.py").replace("`", "")


def _wrapped(text: str, room: float) -> list[str]:
    """A text in lines that fit into the room."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, 14) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def picture(known: dict[str, Unit], brief: bool = False) -> str:
    """The map, in two widths, of which a page shows one; pointing at a room lights up what it imports."""
    lit = "".join(
        f'.house:has([data-room="{room}"]:is(:hover, :focus-visible)) '
        f':is({", ".join(f"[data-room={other}]" for other in others)}) > rect:first-of-type '
        "{ stroke: var(--back); stroke-width: 3; }"
        for room, others in imports_of().items() if others
    )
    # A picture with links is a group: readers who do not see it go through the links.
    drawn = "".join(
        f'<div class="{name}">{themed(House(known, width, brief).to_svg(SAID)).replace(IMAGE, GROUP, 1)}</div>'
        for name, width in (("for-wide", WIDE), ("for-narrow", NARROW))
    )
    whole = [unit for key, unit in known.items() if not any(key in keys for keys in readers().values())]
    names = ", ".join(f'<a href="{unit.key}.html">{unit.number:02} {escape(unit.title)}</a>' for unit in whole)
    note = f" Units that read no room's code in their lecture: {names}." if whole else ""
    return (
        f'<figure class="drawn house"><style>{lit}</style>{drawn}<figcaption>Each room imports only from '
        "floors below it: point at a room to see from which. A number is a unit whose lecture reads code of the room; "
        f"bars are lines of code.{note}</figcaption></figure>"
    )


def rooms_page(known: dict[str, Unit]) -> tuple[str, list[Section]]:
    """The map, and below it every room: what it is for, what it imports, who teaches it, and its modules."""
    parts, sections = [ABOUT, picture(known)], []
    for rooms in reversed(floors()):
        for room in rooms:
            sections.append(Section(2, slug(room), room))
            parts.append(_room(room, known))
            for inner in COMPILER if room == "compile" else ():
                sections.append(Section(3, slug(f"compile/{inner}"), inner))
                parts.append(_room(f"compile/{inner}", known, 3))
    return "".join(parts), sections


ABOUT = (
    "<h1>The map: rooms and units</h1><p>minigrad is a house. Each room is a stage in the life of a computation, and "
    "the course goes through the rooms. The build made this page from the sources: their imports, their lines, their "
    "docstrings, and the code that the lectures quote.</p>"
)


def _room(room: str, known: dict[str, Unit], level: int = 2) -> str:
    """A room's section."""
    folder = PACKAGE / room
    imports = [f'<a href="#{slug(each)}">{each}</a>' for each in imports_of().get(room, [])]
    users = [f'<a href="#{slug(each)}">{each}</a>' for each, others in imports_of().items() if room in others]
    units = [
        f'<a href="{unit.key}.html">{unit.number:02} {escape(unit.title.partition(":")[0])}</a> '
        f"({', '.join(f'<code>{escape(name)}</code>' for name in readers()[room][unit.key])})"
        for unit in units_of(room, known)
    ]
    listed = [f'<a href="api.html#{slug(title)}">{title}</a>' for title in api.titles_of(room)]
    facts = [("Read in", units), ("API", listed), ("Imports", imports), ("Imported by", users)]
    rows = "".join(f"<dt>{name}</dt><dd>{', '.join(links)}</dd>" for name, links in facts if links)
    modules = "".join(
        f"<tr><td><code>{path.relative_to(folder).as_posix()}</code></td>"
        f"<td>{as_code(purpose_of(path)) if path.suffix == '.py' else ''}</td><td>{lines_of(path):,}</td></tr>"
        for path in files_of(room) if room != "compile" or path.relative_to(folder).parts[0] not in COMPILER
    )
    return (
        f'<h{level} id="{slug(room)}">{room.rpartition("/")[2]} <small>{size_of(room):,} lines</small></h{level}>'
        f"<p>{as_code(purpose_of(folder / '__init__.py'))}</p><dl>{rows}</dl>"
        f"<details><summary>Modules</summary><div class=\"wide\"><table>{modules}</table></div></details>"
    )
