"""Charts: bars and points with marks that somebody can point at.  Text that is the same wherever it is made."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .svg import BACKWARD, FONT, FORWARD, INK, LEAF, LIBRARY, LINE, PAPER, QUIET, number, text_width

# what a mark stands for -> its border and its fill
COLOURS = {
    "kernel": (FORWARD, "#cfe6f3"), "library": (LIBRARY, "#f0d9e7"), "result": (LEAF, "#cdeee2"),
    "input": ("#56b4e9", "#e3f3fc"), "other": (BACKWARD, "#fbe0cf"), "quiet": (QUIET, "#eef1f4"),
}  # fmt: skip


class Chart:
    """A drawing that grows mark by mark.  Coordinates are pixels; a mark's `key` says what it stands for.

    >>> chart = Chart(100, 50, "two bars")
    >>> chart.bar(0, 0, 40, 10, "kernel", "a", "first")
    >>> chart.to_svg().count("data-mark")
    1
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []
        self._labels: list[tuple[float, float, float]] = []  # of points: from, to, and at which height

    def bar(
        self, x: float, y: float, width: float, height: float, kind: str, key: str, label: str = "", about: str = ""
    ) -> None:  # fmt: skip
        """A rectangle, with as much of its label as it has room for."""
        border, fill = COLOURS[kind]
        text = fitting(label, width - 6.0)
        self.parts.append(
            f'<g class="mg-mark mg-c-{kind}" data-mark="{escape(key)}"><title>{escape(about or label)}</title>'
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 1.0))}" height="{number(height)}" rx="2" '
            f'fill="{fill}" stroke="{border}"/>{_inside(text, x + width / 2, y + height / 2)}</g>'
        )

    def point(self, x: float, y: float, kind: str, key: str, label: str, about: str = "") -> None:
        """A dot with its label beside it, if there is room for that."""
        border, fill = COLOURS[kind]
        self.parts.append(
            f'<g class="mg-mark mg-c-{kind}" data-mark="{escape(key)}"><title>{escape(about or label)}</title>'
            f'<circle cx="{number(x)}" cy="{number(y)}" r="5.5" fill="{fill}" stroke="{border}"/>'
            f"{self._beside(x, y, label)}</g>"
        )

    def _beside(self, x: float, y: float, label: str) -> str:
        wide = text_width(label, LINE)
        for left, middle in ((x + 8, y), (x - 8 - wide, y), (x - wide / 2, y - 13), (x - wide / 2, y + 13)):
            inside = left > 0 and left + wide < self.width
            taken = any(abs(middle - m) < LINE and left < b and a < left + wide for a, b, m in self._labels)
            if inside and not taken:
                self._labels.append((left, left + wide, middle))
                at = f'x="{number(left)}" y="{number(middle + 3.5)}"'
                return f'<text {at} font-size="{number(LINE)}" fill="{INK}">{escape(label)}</text>'
        return ""

    def text(
        self, x: float, y: float, words: str, anchor: str = "start", strong: bool = False, kind: str = "quiet"
    ) -> None:  # fmt: skip
        """Words, of which `y` is the line they stand on."""
        colour = {"quiet": QUIET, "limit": BACKWARD}[kind]
        look = f'fill="{INK}" font-weight="600"' if strong else f'fill="{colour}" class="mg-{kind}-text"'
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(LINE)}" text-anchor="{anchor}" {look}>'
            f"{escape(words)}</text>"
        )

    def line(self, points: Iterable[tuple[float, float]], kind: str = "axis", dashed: bool = False) -> None:
        """A line through points."""
        colour, width = {"axis": ("#c4cad1", "1"), "limit": (BACKWARD, "1.6"), "curve": (QUIET, "1.6")}[kind]
        way = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        look = f'class="mg-{kind}"' + (' stroke-dasharray="4 3"' if dashed else "")
        self.parts.append(f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{width}" {look}/>')

    def to_svg(self) -> str:
        """The text of an SVG element."""
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} width="{number(self.width)}" '
            f'height="{number(self.height)}" role="img" font-family="{FONT}" class="mg-picture" '
            f'style="max-width:100%;height:auto"><title>{escape(self.title)}</title>'
            f'<rect width="100%" height="100%" fill="{PAPER}" class="mg-paper"/>{"".join(self.parts)}</svg>\n'
        )


def fitting(label: str, room: float) -> str:
    """As much of a label as there is room for.

    >>> fitting("kernel_1", 100), fitting("kernel_1", 30), fitting("kernel_1", 5)
    ('kernel_1', 'ker…', '')
    """
    if text_width(label, LINE) <= room:
        return label
    while label and text_width(label + "…", LINE) > room:
        label = label[:-1]
    return label + "…" if len(label) > 1 else ""


def _inside(text: str, x: float, y: float) -> str:
    if not text:
        return ""
    return (
        f'<text x="{number(x)}" y="{number(y + 3.5)}" font-size="{number(LINE)}" text-anchor="middle" '
        f'fill="{INK}">{escape(text)}</text>'
    )


def ticks(most: float, count: int = 5) -> list[float]:
    """Round numbers from 0 to `most`, about so many.

    >>> ticks(9.5), ticks(0)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0])
    """
    if most <= 0:
        return [0.0]
    step = 10.0 ** len(str(int(most / count)))
    while step > most / count:
        step /= 10.0
    step = next(step * k for k in (1, 2, 5, 10) if most / (step * k) <= count)
    return [step * i for i in range(int(most / step) + 1)]
