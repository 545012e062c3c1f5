"""A scene as SVG.

The same graph always gives the same text.  No element has an id, so that a page can contain many pictures, and all text
of the user is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import groupby, pairwise

from ..support.table import counted, escape
from .colours import LIGHT, themed
from .layout import PORT, Arrangement, Frame, Layout, Rectangle, Route
from .mirror import mirrored
from .numbers import LEVELS
from .phases import FORWARD
from .scene import Box, Path, Scene

THERE, BACK, QUIET, WRONG = LIGHT["there"], LIGHT["back"], LIGHT["quiet"], LIGHT["bad"]
PAPER, FRAME, LINES, INK = LIGHT["paper"], LIGHT["tint"], LIGHT["line"], LIGHT["ink"]
# kind of box -> its border, its fill, how round its corners are, the dashes of its border
LOOKS = {
    "operation": (THERE, LIGHT["there-fill"], 5.0, ""),
    "view": (THERE, PAPER, 5.0, ""),
    "gradient": (BACK, LIGHT["back-fill"], 5.0, ""),
    "parameter": (LIGHT["good"], LIGHT["leaf-fill"], 99.0, ""),
    "input": (THERE, LIGHT["input-fill"], 99.0, ""),
    "constant": (QUIET, PAPER, 99.0, "3 2"),
    "group": (THERE, LIGHT["there-fill"], 5.0, ""),
    "awaited": (BACK, PAPER, 5.0, "4 3"),  # a gradient that has not come
    "outside": (QUIET, PAPER, 5.0, "3 2"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"
TITLE, LINE = 12.0, 10.0  # sizes of type
SIDE, TOP, LEADING = 11.0, 6.0, 1.3
BORDER = 8.0  # around the picture
NARROW, WIDE = "fijlrt.,:;|'()[]I! ", "mwMW@×…→∂"
KINDS = {  # in the order of a sentence, and how a reader finds them in the picture
    "input": "round", "parameter": "green", "constant": "dashed", "operation": "blue", "view": "unfilled",
    "gradient operation": "orange", "group": "⊞ opens them", "neighbour": "dashed",
}
NAMES = {"gradient": "gradient operation", "outside": "neighbour"}  # of kinds, in words
Notes = Mapping[int, tuple[str, str]]  # the number or the heat map on arrows, by the number of the edge
LEVEL = 40.0  # the length of an edge's curve that is bent, at most
HEAT = 64.0, 27.0, 8.0  # of a heat map in a box: its width, its height and the side of a square, at most
SPACES, TIMES = 34.0, 2.6  # a frame is as wide as its name, at a page's size, beside arrows to its middle
ROOM = 60.0  # for the line beside a heat map
CLOSE = 22.0, PORT  # where they carry nothing: of layers, and of arrows
NOTE = 40.0, 14.0, 6.0  # of a note, and the side of a square in it, at most
NOTED = 30.0, 44.0  # the distances of layers and of arrows where the arrows carry numbers


def draw(
    scene: Scene, notes: Notes | None = None, layout: Layout | None = None
) -> str:
    """The scene as an SVG element.

    `notes` are the numbers or the heat maps on arrows, by the number of the edge; a gradient's arrow without one is
    pale.  The `layout` may be that of a scene with the same boxes and more numbers.
    """
    layout = layout or laid_out(scene)
    frame = -BORDER, -BORDER, layout.width + 2 * BORDER, layout.height + 2 * BORDER
    return picture(" ".join(map(number, frame)), described(scene), inside(scene, layout, notes))


def inside(
    scene: Scene, layout: Layout, notes: Notes | None = None,
    seen: Collection[int] | None = None,
) -> list[str]:
    """The frames, arrows and boxes of a scene as SVG; or only the boxes that are `seen` and the arrows between them."""
    places = {} if notes is None else note_places(layout, notes)
    bare = set() if notes is None else {*range(len(scene.edges))} - notes.keys()
    seen = range(len(scene.boxes)) if seen is None else seen
    edges = [key for key, edge in enumerate(scene.edges) if edge.source in seen and edge.target in seen]
    return [
        *[_frame(frame) for frame in layout.frames],
        f'<g fill="none" stroke="currentColor" color="{THERE}" stroke-opacity="0.75" stroke-width="1.2">',
        *[_edge(scene, key, layout.routes[key], key in bare) for key in edges],
        "</g>",
        *map(_title, layout.frames),
        f'<g stroke-width="1.2" text-anchor="middle" font-size="{number(LINE)}" fill="{QUIET}">',
        *[_box(i, box, place) for i, (box, place) in enumerate(zip(scene.boxes, layout.boxes)) if i in seen],
        *[_note(key, *(notes or {})[key], *place) for key, place in places.items()],
        "</g>",
    ]


def picture(frame: str, title: str, parts: Iterable[str]) -> str:
    """An SVG element that has this view box, and a sentence for readers who cannot see the picture."""
    x, y, width, height = frame.split()
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{frame}" width="{width}" height="{height}" role="img" '
        f'font-family="{FONT}" class="mg-picture" style="max-width:100%;height:auto">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect x="{x}" y="{y}" width="100%" height="100%" fill="{PAPER}"/>\n{inside}</svg>\n'
    )


NUMBERS = re.compile(r'<g class="mg-heat">.*?</g></g>|(?<= class="mg-number">)[^<]*')


def lean(svg: str) -> str:
    """A picture in the colours of a page, without the numbers that the page adds itself."""
    return themed(NUMBERS.sub("", svg))


def laid_out(scene: Scene) -> Layout:
    """The layout of a scene: from the top down."""
    numbers = any(box.shown is not None for box in scene.boxes)
    sizes = [size_of(box) for box in scene.boxes]
    for i, box in enumerate(scene.boxes):
        if box.mirrors is not None:  # a node and its gradient have one size
            (w, h), (v, g) = sizes[i], sizes[box.mirrors]
            sizes[box.mirrors] = (max(w, v), max(h, g))
    count = sum(box.mirrors is None for box in scene.boxes)
    edges = [(e.source, e.target) for e in scene.edges if e.source < count and e.target < count]
    scopes = [box.scope for box in scene.boxes[:count]]
    layout = Arrangement(sizes[:count], edges, scopes, NOTED if numbers else CLOSE, _named)
    return layout if count == len(scene.boxes) else mirrored(layout, scene)


def _named(path: Path) -> float:
    """The width of a frame that has room for its name."""
    return SPACES + TIMES * text_width(path[-1], LINE) if path else 0.0


def described(scene: Scene, legend: bool = False) -> str:
    """A sentence for readers who cannot see the picture; with a `legend`, for readers who can.

    >>> described(Scene((), ()))
    'an empty graph'
    """
    if not scene.boxes:
        return "an empty graph"
    found = Counter([NAMES.get(box.kind, box.kind) for box in scene.boxes])
    looks = {kind: f" ({look})" * legend for kind, look in KINDS.items() if found[kind]}
    return "a graph of " + ", ".join([counted(found[kind], kind) + look for kind, look in looks.items()])


def size_of(box: Box) -> tuple[float, float]:
    """The width and height of a box, which depend on its text."""
    widths = [text_width(title_of(box), TITLE, bold=True), *[text_width(line, LINE) for line in box.lines]]
    side = SIDE + (6.0 if LOOKS[box.kind][2] > 50 else 0.0)
    height = 2 * TOP + LEADING * (TITLE + LINE * len(box.lines)) - 2.0
    if box.shown is not None:
        widths = [max(widths) + 6.0, ROOM if box.cells else ROOM / 2]
    return max(44.0, round(max(widths) + 2 * side + _beside(box), 1)), round(height, 1)


def _beside(box: Box) -> float:
    """How much wider a box is for its heat map at the left.  The sign that opens it is at its corner, over no text."""
    return sized(box.cells)[0] + 6.0 if box.cells else 0.0


def sized(cells: str, room: tuple[float, float, float] = HEAT) -> tuple[float, float, float]:
    """The width and the height of a heat map in some room, and the side of a square."""
    rows, (width, height, most) = cells.split("/"), room
    side = min(most, height / len(rows), width / max(len(rows[0]), 1))
    return side * len(rows[0]), side * len(rows), side


def title_of(box: Box) -> str:
    """The first line of a box."""
    return box.title if box.count == 1 else f"{box.title}  ×{box.count}"


@lru_cache(10_000)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """The approximate width of a text, that of a wide font.  (Fonts differ between machines; the picture must not.)"""
    units = sum(0.34 if c in NARROW else 0.95 if c in WIDE else 0.68 if c.isupper() else 0.58 for c in text)
    return units * size * (1.17 if bold else 1.0)


@lru_cache(50_000)
def number(x: float) -> str:
    """A coordinate as short text.

    >>> number(2.0), number(-0.04), number(1.26)
    ('2', '0', '1.3')
    """
    return f"{round(x, 1) + 0.0:g}"


def _frame(frame: Frame) -> str:
    r = frame.place
    return (
        f'<g class="mg-frame">'
        f'<rect x="{number(r.x)}" y="{number(r.y)}" width="{number(r.width)}" height="{number(r.height)}" rx="6" '
        f'fill="{_shade(frame)}" stroke="{LINES}"/></g>'
    )


def _shade(frame: Frame) -> str:
    return FRAME if len(frame.path) % 2 else PAPER


def _title(frame: Frame) -> str:
    """The name of a frame, over the arrows."""
    r, left = frame.place, number(frame.place.x + 8)
    return (
        f'<g class="mg-frame"><rect x="{left}" y="{number(r.y + 4.0)}" '
        f'width="{number(text_width(frame.path[-1], LINE))}" height="13" fill="{_shade(frame)}"/>'
        f'<text x="{left}" y="{number(r.y + 14.0)}" font-size="{number(LINE)}" '
        f'fill="{QUIET}" font-style="italic">{escape(frame.path[-1])}</text></g>'
    )


def _edge(scene: Scene, key: int, route: Route, bare: bool) -> str:
    source, target = scene.boxes[scene.edges[key].source], scene.boxes[scene.edges[key].target]
    seed = source.mirrors is None and target.mirrors is not None
    dashes = ' stroke-dasharray="4 3"' if seed else ""
    look = BACK if target.mirrors is not None else QUIET if target.kind == "view" else ""
    colour = f' color="{look}"' if look else ""
    leaves = len(route) > 2 and source.scope[:1] == (FORWARD,) != target.scope[:1]  # what backward reads
    faint = ' opacity="0.4"' if leaves or (bare and target.mirrors is not None) else ""
    return (
        f'<g class="mg-edge" data-edge="{key}"{colour}{faint}>'
        f'<path d="{path_of(route)}{_head(route)}"{dashes}/></g>'
    )


def path_of(route: Route) -> str:
    """The line of an edge in SVG's words: a curve where it changes its place, and straight runs.

    >>> path_of(((0.0, 0.0), (0.0, 20.0), (30.0, 40.0)))
    'M0 0L0 20L30 40'
    >>> path_of(((0.0, 0.0), (30.0, 20.0)))
    'M0 0C0 10 30 10 30 20'
    """
    drawn = ["M" + " ".join(map(number, route[0]))]
    for i, ((x, y), (u, v)) in enumerate(pairwise(route)):
        bend = max(-LEVEL, min(LEVEL, (v - y) / 2))
        bent = not i % 2 and number(u - x) != "0"
        through = [x, y + bend, u, v - bend] if bent else []
        drawn.append("LC"[bent] + " ".join(map(number, [*through, u, v])))
    return "".join(drawn)


def _head(route: Route) -> str:
    """The tip of an arrow, from the end of its line on."""
    before, end = [y for _, y in route[-2:]]
    if end == before:
        return "m-6 -3.4l6 3.4l-6 3.4"
    return "m-3.4 -6l3.4 6l3.4 -6" if end > before else "m-3.4 6l3.4 -6l3.4 6"


def _box(key: int, box: Box, r: Rectangle) -> str:
    border, fill, round_, dashes = LOOKS[box.kind]
    thick = ' stroke-width="2.4"' if box.result else ""
    shape = (
        f'x="{number(r.x)}" y="{number(r.y)}" width="{number(r.width)}" height="{number(r.height)}" '
        f'rx="{number(min(round_, r.height / 2))}" fill="{fill}" stroke="{border}"{thick}'
        + (f' stroke-dasharray="{dashes}"' if dashes else "")
    )
    beside = _beside(box)
    moved = f' style="--beside:{number(beside)}px"' if beside else ""  # a page may take the heat map away
    parts = [f'<g class="mg-box mg-{box.kind}" data-box="{key}"{moved}>']
    if box.kind == "group":  # drawn as a pile
        parts.append(
            f'<rect x="{number(r.x + 3)}" y="{number(r.y + 3)}" width="{number(r.width)}" '
            f'height="{number(r.height)}" rx="{number(round_)}" fill="{fill}" stroke="{border}" stroke-width="1"/>'
        )
    parts.append(f"<rect {shape}/>")
    middle, y = number(r.x + (r.width + beside) / 2), r.y + TOP + TITLE - 1.5
    if box.cells:
        left = r.x + (8.0 if round_ > 50 else 5.0)
        _, high, side = sized(box.cells)
        top = r.y + (r.height - high) / 2
        parts.append(f'<g class="mg-heat">{squares(box.cells, left, top, side)}</g>')
    title = f' font-size="{number(TITLE)}" fill="{INK}" font-weight="600"'
    parts.append(f'<text x="{middle}" y="{number(y)}"{title}>{escape(title_of(box))}</text>')
    look = ' class="mg-number"' if box.shown is not None else ""
    for line in box.lines:
        y += LINE * LEADING
        parts.append(f'<text x="{middle}" y="{number(y)}"{look}>{escape(line)}</text>')
    return "".join(parts) + "</g>"


@lru_cache(4_096)  # one heat map is in many pictures
def squares(cells: str, x: float, y: float, side: float) -> str:
    """A heat map whose upper left corner is here.  The squares of one colour are one path."""
    rows = cells.split("/")
    paths: dict[str, list[str]] = {}
    for row, line in enumerate(rows):
        column = 0
        for letter, run in groupby(line):
            wide = len(list(run))
            if letter != ".":
                corner = f"{number(x + column * side)} {number(y + row * side)}"
                high, across = number(side), number(wide * side)
                paths.setdefault(letter, []).append(f"M{corner}h{across}v{high}h-{across}z")
            column += wide
    place = f'x="{number(x)}" y="{number(y)}" width="{number(len(rows[0]) * side)}" height="{number(len(rows) * side)}"'
    drawn = [f'<rect {place} fill="{PAPER}" stroke="{LINES}" stroke-width="0.8"/>']
    for letter, places in sorted(paths.items()):
        colour = {"!": WRONG, " ": LINES}.get(letter) or (THERE if letter.isupper() else BACK)
        strong = ord(letter) % 32 / LEVELS if letter.isalpha() else 1.0  # "A" and "a" are 1
        drawn.append(f'<path d="{"".join(places)}" fill="{colour}" fill-opacity="{strong:.2f}"/>')
    return f'<g>{"".join(drawn)}</g>'


def _note_size(text: str, cells: str) -> tuple[float, float, float]:
    """The width and the height of a note, and the side of a square of its heat map."""
    return sized(cells, NOTE) if cells else (text_width(text, LINE) + 8.0, NOTE[1], 0.0)


def _note(key: int, text: str, cells: str, x: float, y: float) -> str:
    """A number or a heat map on an arrow."""
    wide, high, side = _note_size(text, cells)
    if cells:
        inside = f'<g class="mg-heat">{squares(cells, -wide / 2, -high / 2, side)}</g>'
    else:
        inside = (
            f'<g class="mg-heat"><g><rect x="{number(-wide / 2)}" y="-7" width="{number(wide)}" height="14" rx="7" '
            f'fill="{PAPER}" stroke="{BACK}" stroke-width="0.7"/>'
            f'<text y="3.5" fill="{INK}">{escape(text)}</text></g></g>'
        )
    return f'<g class="mg-note" data-note="{key}" transform="translate({number(x)} {number(y)})">{inside}</g>'


def note_places(layout: Layout, notes: Notes) -> dict[int, tuple[float, float]]:
    """Where notes stand: on their arrows, and neither on boxes nor on each other where that is possible.

    Those on short arrows come first, because they have the fewest places.
    """
    taken, places = [*layout.boxes], dict[int, tuple[float, float]]()
    for key in sorted(notes, key=lambda key: len(layout.routes[key])):
        width, height, _ = _note_size(*notes[key])
        rooms = {Rectangle(x - width / 2, y - height / 2, width, height): (x, y) for x, y in _along(layout.routes[key])}
        room = min(rooms, key=lambda room: any(map(room.touches, taken)))  # the first one
        taken.append(room)
        places[key] = rooms[room]
    return places


def _along(route: Route) -> list[tuple[float, float]]:
    """Points on an edge, the best ones for a note first."""
    found = []
    ends = list(pairwise(route))
    for share in (0.42, 0.3, 0.54, 0.2, 0.66, 0.75):
        for i, ((x, y), (u, v)) in enumerate(ends):
            bent = 3 * share**2 - 2 * share**3
            found.append((x + (u - x) * (share if i % 2 or y == v else bent), y + (v - y) * share))
    return found
