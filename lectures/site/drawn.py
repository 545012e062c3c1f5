"""What the pictures of lectures are drawn with: boxes, arrows that carry numbers, arrays and bars.

A unit's pictures are functions in `pictures/uNN_name.py`.  Each returns a `Sketch`, or a list of sketches: stages that
follow each other in the same place.  One unit of length is a pixel of a page; a slide shows twice that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from minigrad.viz.drawing import Drawing
from minigrad.viz.svg import text_width

SIZE, SMALL, LARGE = 22.0, 18.0, 30.0  # of type
LINE = 2.4  # how thick an arrow is
Point = tuple[float, float]

# look -> border, fill, dashes of the border, colour of the text
LOOKS = {
    "value": ("there", "there-fill", "", "ink"),
    "leaf": ("good", "leaf-fill", "", "ink"),
    "gradient": ("back", "back-fill", "", "ink"),
    "empty": ("back", "paper", "5 4", "quiet"),
    "wrong": ("bad", "paper", "", "bad"),
    "plain": ("line", "tint", "", "ink"),
    "now": ("now", "paper", "", "ink"),
    "paper": ("paper", "paper", "", "ink"),
}


class Box(NamedTuple):
    """A rectangle, by its middle and its size."""

    x: float
    y: float
    width: float
    height: float

    def towards(self, x: float, y: float, gap: float = 3.0) -> Point:
        """The point on the border where a line from the middle to (x, y) leaves the box."""
        dx, dy = x - self.x, y - self.y
        wide, high = self.width / 2 + gap, self.height / 2 + gap
        share = min(wide / abs(dx) if dx else math.inf, high / abs(dy) if dy else math.inf)
        return (self.x + dx * share, self.y + dy * share) if math.isfinite(share) else (self.x, self.y)

    @property
    def top(self) -> Point:
        """The middle of the upper side."""
        return self.x, self.y - self.height / 2

    @property
    def bottom(self) -> Point:
        """The middle of the lower side."""
        return self.x, self.y + self.height / 2

    @property
    def left(self) -> Point:
        """The middle of the left side."""
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Point:
        """The middle of the right side."""
        return self.x + self.width / 2, self.y


class Sketch(Drawing):
    """A drawing with labels that the last row can read.

    >>> sketch = Sketch(200, 100)
    >>> a, b = sketch.box(30, 50, "a"), sketch.box(170, 50, "b", "gradient")
    >>> sketch.arrow(a, b, "2")
    >>> sketch.to_svg("from a to b").count("<rect")
    4
    """

    def label(
        self, x: float, y: float, text: str, *, size: float = SIZE, fill: str = "ink", anchor: str = "middle",
        bold: bool = False, code: bool = False,
    ) -> None:
        """A line of text whose middle (or `anchor`) is at x, and whose height is centred on y."""
        self.text(x, y + 0.35 * size, text, size=size, fill=fill, anchor=anchor, bold=bold, code=code)

    def box(
        self, x: float, y: float, text: str = "", look: str = "value", *, width: float = 0.0, height: float = 44.0,
        size: float = SIZE, under: str = "",
    ) -> Box:
        """A box around (x, y) with a line of text, and a smaller line `under` it."""
        stroke, fill, dashes, ink = LOOKS[look]
        needed = max(text_width(text, size, bold=True), text_width(under, SMALL)) + 22
        width = width or max(needed, 54.0)
        round_ = height / 2 if look == "leaf" else 7.0
        self.rect(x - width / 2, y - height / 2, width, height, fill, stroke, thick=2, round=round_, dashes=dashes)
        if text:
            self.label(x, y - (10 if under else 0), text, size=size, bold=True, fill=ink)
        if under:
            self.label(x, y + 13, under, size=SMALL, fill="quiet")
        return Box(x, y, width, height)

    def row(self, y: float, texts: Sequence[str], look: str = "value", **options: Any) -> list[Box]:
        """Boxes beside each other, evenly over the whole width: a picture needs no coordinates but those of its rows.

        >>> [(box.x, box.y) for box in Sketch(800, 250).row(125, ["x", "y"])]
        [(200.0, 125), (600.0, 125)]
        """
        apart = self.width / len(texts)
        return [self.box(apart * (i + 0.5), y, text, look, **options) for i, text in enumerate(texts)]

    def column(self, x: float, texts: Sequence[str], look: str = "value", **options: Any) -> list[Box]:
        """Boxes below each other, evenly over the whole height.

        >>> [(box.x, box.y) for box in Sketch(800, 250).column(400, ["x", "y"])]
        [(400, 62.5), (400, 187.5)]
        """
        apart = self.height / len(texts)
        return [self.box(x, apart * (i + 0.5), text, look, **options) for i, text in enumerate(texts)]

    def arrow(
        self, start: Box | Point, end: Box | Point, text: str = "", *, bend: float = 0.0, colour: str = "there",
        dashes: str = "", thick: float = LINE, tip: bool = True, at: float = 0.5, size: float = SIZE, new: bool = False,
    ) -> None:
        """An arrow between two boxes or points, with a number on it; `bend` moves its middle to its left.

        A `new` arrow grows from its start when the stage is shown, unless the reader prefers less motion.
        """
        (x0, y0), (x1, y1) = _middle(start), _middle(end)
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        over = (x0 + x1) / 2 + 2 * bend * (y1 - y0) / length, (y0 + y1) / 2 - 2 * bend * (x1 - x0) / length
        first = start.towards(*over) if isinstance(start, Box) else start
        last = end.towards(*over) if isinstance(end, Box) else end
        curve = [_on(first, over, last, i / 30) for i in range(31)] if bend else [first, last]
        stop = _before(curve, 9.0 if tip else 0.0)
        if new:
            self.add(f'<g class="{"to-left" if last[0] < first[0] else "to-right"}">')
        self.path([*curve[:-1], stop] if not bend else [*[p for p in curve if _far(p, last) > 9.0], stop],
                  colour, thick=thick, dashes=dashes)
        if tip:
            self._point(curve[-2], last, colour, 6.0 + 2.6 * thick)
        if text:
            self.number(*_on(first, over if bend else _half(first, last), last, at), text, colour, size)
        if new:
            self.add("</g>")

    def number(self, x: float, y: float, text: str, colour: str = "back", size: float = SIZE) -> None:
        """A number in a round frame, as it stands on an arrow."""
        width, height = max(text_width(text, size, bold=True) + 16, 1.5 * size), 1.5 * size
        self.rect(x - width / 2, y - height / 2, width, height, "paper", colour, thick=2, round=height / 2)
        self.label(x, y, text, size=size, bold=True, fill=colour)

    def cells(
        self, x: float, y: float, rows: Sequence[Sequence[str]], look: str = "value", *, size: float = 46.0,
        type_size: float = SIZE, lit: Iterable[tuple[int, int]] | None = None, high: float = 0.0,
    ) -> Box:
        """An array whose upper left corner is at (x, y); where `lit` is given, the other cells are pale."""
        high = high or size
        chosen = None if lit is None else set(lit)
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                stroke, fill, dashes, ink = LOOKS[look if chosen is None or (i, j) in chosen else "plain"]
                self.rect(x + j * size, y + i * high, size, high, fill, stroke, thick=1.5, round=0, dashes=dashes)
                if text:
                    self.label(x + (j + 0.5) * size, y + (i + 0.5) * high, text, size=type_size, bold=True, fill=ink)
        width, height = size * max(map(len, rows)), high * len(rows)
        return Box(x + width / 2, y + height / 2, width, height)

    def bar(self, x: float, y: float, length: float, look: str = "value", *, height: float = 26.0) -> Box:
        """A bar to the right of (x, y), which is the middle of its left side: a quantity, to scale."""
        stroke, fill, dashes, _ = LOOKS[look]
        self.rect(x, y - height / 2, length, height, fill, stroke, thick=1.5, round=2, dashes=dashes)
        return Box(x + length / 2, y, length, height)

    def cross(self, x: float, y: float, size: float = 10.0) -> None:
        """A mark for what is wrong."""
        for sign in (1, -1):
            self.path([(x - size, y - sign * size), (x + size, y + sign * size)], "bad", thick=4)

    def tick(self, x: float, y: float, size: float = 10.0) -> None:
        """A mark for what is right."""
        self.path([(x - size, y), (x - size / 4, y + size * 0.8), (x + size, y - size)], "good", thick=4)

    def image(self, x: float, y: float, pixels: Sequence[Sequence[float]], side: float) -> None:
        """Grey pixels between 0 and 1 as ink on paper, in five shades: one path for each shade."""
        self.rect(x, y, side * len(pixels[0]), side * len(pixels), "tint", "line", round=2)
        for shade in range(1, 5):
            squares = "".join(
                f"M{x + j * side:.1f} {y + i * side:.1f}h{side:g}v{side:g}h-{side:g}z"
                for i, row in enumerate(pixels) for j, grey in enumerate(row) if round(grey * 4) == shade
            )
            if squares:
                self.shape(squares, "ink", shade / 4)

    def _point(self, before: Point, at: Point, colour: str, length: float) -> None:
        """The tip of an arrow."""
        angle = math.atan2(at[1] - before[1], at[0] - before[0])
        corners = [(at[0] - length * math.cos(angle + turn), at[1] - length * math.sin(angle + turn))
                   for turn in (-0.42, 0.42)]
        self.shape("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (at, *corners)) + "z", colour)


def _middle(place: Box | Point) -> Point:
    return place[0], place[1]


def _half(first: Point, last: Point) -> Point:
    return (first[0] + last[0]) / 2, (first[1] + last[1]) / 2


def _far(a: Point, b: Point) -> float:
    return math.hypot(a[0] - b[0], a[1] - b[1])


def _on(first: Point, over: Point, last: Point, t: float) -> Point:
    """A point of the curve from `first` to `last` that is drawn towards `over`."""
    parts = zip(first, over, last)
    x, y = ((1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c for a, b, c in parts)
    return x, y


def _before(curve: Sequence[Point], gap: float) -> Point:
    """The point at a distance before the end of a curve, where its line stops: the tip covers the rest."""
    before, last = curve[-2], curve[-1]
    if _far(before, last) < gap:
        before = curve[-3] if len(curve) > 2 else before
    share = gap / (_far(before, last) or 1.0)
    return last[0] + (before[0] - last[0]) * share, last[1] + (before[1] - last[1]) * share
