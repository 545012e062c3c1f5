"""What the pictures of the museum are drawn with: boxes and arrows, tables, bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from minigrad.viz.drawing import Drawing

from ..boards import LOOKS

WIDE = 620.0
LINE, SMALL, NAME = 17.0, 12.5, 15.0


class Spot(NamedTuple):
    """A box by its middle and its size."""

    x: float
    y: float
    width: float
    height: float

    def side(self, other: Spot) -> tuple[float, float]:
        """The point on the border that faces another box."""
        dx, dy = other.x - self.x, other.y - self.y
        wide, high = self.width / 2 + 2, self.height / 2 + 2
        share = min(wide / abs(dx) if dx else 1e9, high / abs(dy) if dy else 1e9)
        return self.x + dx * share, self.y + dy * share


class Plan(Drawing):
    """Boxes with names, and arrows between them that carry words."""

    def __init__(self, height: float, width: float = WIDE) -> None:
        super().__init__(width, height)
        self.spots: dict[str, Spot] = {}

    def box(
        self, key: str, x: float, y: float, *lines: str, look: str = "plain", width: float = 96.0, name: str = "",
    ) -> None:
        """A box around (x, y): its name, which is its key unless it is given, and smaller lines below."""
        border, fill, ink = LOOKS[look]
        height = 18 + LINE * (1 + len(lines))
        self.spots[key] = Spot(x, y, width, height)
        self.rect(x - width / 2, y - height / 2, width, height, fill, border, thick=2, round=8)
        for i, line in enumerate((name or key, *lines)):
            below = y - height / 2 + 22 + LINE * i
            size = SMALL if i else NAME
            self.text(x, below, line, size=size, bold=not i, anchor="middle", fill=ink)

    def link(
        self, source: str, target: str, words: str = "", colour: str = "there", *, aside: float = 0.0,
        dashes: str = "",
    ) -> None:
        """An arrow from one box to another; `aside` moves both ends across, where two arrows join the same boxes."""
        one, two = self.spots[source], self.spots[target]
        (x0, y0), (x1, y1) = one.side(two), two.side(one)
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1.0)
        dx, dy = -(y1 - y0) / length * aside, (x1 - x0) / length * aside
        ends = [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy)]
        self.path(ends, colour, thick=2.2, arrow=True, dashes=dashes)
        if words:
            self.tag((x0 + x1) / 2 + dx, (y0 + y1) / 2 + dy, words, colour)

    def tag(self, x: float, y: float, words: str, colour: str) -> None:
        """Words on an arrow."""
        width = 14 + 7.6 * len(words)
        self.rect(x - width / 2, y - 11, width, 22, "paper", colour, thick=1.5, round=11)
        self.text(x, y + 4.5, words, size=13, bold=True, anchor="middle", fill=colour)


def table(
    columns: Sequence[str], rows: Mapping[str, Sequence[str]], wrong: Sequence[tuple[int, int]] = (),
    lit: Sequence[tuple[int, int]] = (), *, first: float = 150.0,
) -> Drawing:
    """A table of words.  Cells that are `lit` have a colour, and cells that contradict their row are `wrong`."""
    high, width = 34.0, (WIDE - first) / len(columns)
    drawing = Drawing(WIDE, 26 + high * len(rows))
    for j, name in enumerate(columns):
        drawing.text(first + width * (j + 0.5), 14, name, size=13, bold=True, anchor="middle", fill="quiet")
    for i, (name, cells) in enumerate(rows.items()):
        y = 26 + high * i
        drawing.text(0, y + 21, name, size=13.5, code=True, room=first - 8)
        for j, words in enumerate(cells):
            look = "wrong" if (i, j) in wrong else "plain" if (i, j) in lit else "waiting"
            border, fill, ink = LOOKS[look]
            drawing.rect(first + width * j + 2, y + 2, width - 4, high - 4, fill, border, thick=1.5)
            drawing.text(first + width * (j + 0.5), y + 22, words, size=13, anchor="middle", fill=ink, room=width - 10)
    return drawing


def bars(rows: Sequence[tuple[str, float, str, str]], *, left: float = 170.0, mark: float | None = None) -> Drawing:
    """Bars to scale: for each its name, length, colour and words; `mark` is a line across all of them."""
    high = 34.0
    drawing = Drawing(WIDE, high * len(rows) + 6)
    most = max([value for _, value, _, _ in rows] + [mark or 0.0]) or 1.0
    scale = (WIDE - left - 120) / most
    for i, (name, value, colour, words) in enumerate(rows):
        y = high * i
        drawing.text(left - 10, y + 21, name, size=13.5, anchor="end", bold=True)
        drawing.rect(left, y + 4, value * scale, high - 9, f"{colour}-fill", colour, thick=1.5, round=2)
        drawing.text(WIDE, y + 21, words, size=13.5, anchor="end")
    if mark is not None:
        x = left + mark * scale
        drawing.path([(x, 0), (x, high * len(rows))], "now", thick=2, dashes="5 4")
    return drawing
