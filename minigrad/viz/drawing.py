"""Drawings: rectangles, lines and texts as SVG, in colours that the theme of a page may change; charts of bars.

A drawing is a list of pieces of SVG.  The drawings of a flipbook share most of their pieces, so a page stores each
piece once, and for each drawing the numbers of its pieces.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from ..support.table import escape, printable
from .colours import LIGHT
from .svg import LINE, TITLE, number, picture, text_width

Point = tuple[float, float]
Points = Sequence[Point]
Ends = tuple[float, float]  # the least and the largest number
SERIES = ("there", "back", "good", "now", "quiet")  # of curves, which also differ by their dashes
DASHES = ("", "6 3", "3 6", "8 3 2 3", "1 4")
CODE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BORDER = 10.0
LARGEST = 5e307  # of an axis: three times as much is still a number


def _look(fill: str, stroke: str, thick: float, dashes: str = "", opacity: float = 1.0) -> str:
    """How a shape is drawn, as attributes."""
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    more += f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    if stroke != "none":
        more = f' stroke-width="{number(thick)}"{more}'
    return f'fill="{LIGHT.get(fill, fill)}" stroke="{LIGHT.get(stroke, stroke)}"{more}'


class Drawing:
    """Pieces of SVG, each drawn over those before it.

    >>> drawing = Drawing(100, 20)
    >>> drawing.text(0, 12, "a < b")
    >>> '>a &lt; b</text>' in drawing.to_svg("a comparison")
    True
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.pieces: list[str] = []

    def to_svg(self, title: str) -> str:
        """The drawing as an SVG element."""
        return picture(self.frame(), title, self.pieces)

    def frame(self) -> str:
        """The view box: the drawing and a border around it."""
        return " ".join(map(number, (-BORDER, -BORDER, self.width + 2 * BORDER, self.height + 2 * BORDER)))

    def add(self, piece: str) -> None:
        """Add a piece of SVG, in which all text of the user is escaped."""
        self.pieces.append(piece)

    @contextmanager
    def piece(self, attributes: str = "") -> Iterator[None]:
        """Join all that is drawn meanwhile into one piece; with attributes, it is a group of SVG.

        >>> drawing = Drawing(100, 20)
        >>> with drawing.piece('class="dots"'):
        ...     drawing.dot(0, 0)
        ...     drawing.dot(9, 0)
        >>> len(drawing.pieces)
        1
        """
        begin = len(self.pieces)
        yield
        joined = "".join(self.pieces[begin:])
        self.pieces[begin:] = [f"<g {attributes}>{joined}</g>" if attributes else joined] * bool(joined)

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str = "paper", stroke: str = "line",
        *, thick: float = 1.0, round: float = 3.0, dashes: str = "", opacity: float = 1.0, about: str = "",
        go: str = "",
    ) -> None:
        """A rectangle.  The pointer over it shows `about`, and a click leads to `go`, see `Flipbook`."""
        width, height = max(width, 0.0), max(height, 0.0)
        shape = (
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'rx="{number(min(round, width / 2))}" {_look(fill, stroke, thick, dashes, opacity)}'
        )
        tip = f"<title>{escape(cleaned(about))}</title>" if about else ""
        if go:
            named = f'tabindex="0" role="button" aria-label="{escape(cleaned(about))}"'
            self.add(f'<g class="mg-go" data-go="{escape(go)}" {named}>{shape}>{tip}</rect></g>')
        else:
            self.add(f"{shape}>{tip}</rect>" if tip else f"{shape}/>")

    def text(
        self, x: float, y: float, text: str, *, size: float = LINE, fill: str = "ink", anchor: str = "start",
        bold: bool = False, room: float = 0.0, code: bool = False, halo: bool = False,
    ) -> None:
        """A line of text, cut off at the end if it is wider than `room`; with a `halo`, lines end before it."""
        shown = cleaned(text)[: int(room) or None]  # no letter is narrower than a pixel
        while room and shown != "…" and (0.62 * size * len(shown) if code else text_width(shown, size, bold)) > room:
            shown = shown.rstrip("…")[:-1] + "…"
        more = ' font-weight="600"' if bold else ""
        more += f' font-family="{CODE}" xml:space="preserve"' * code
        more += f' paint-order="stroke" stroke="{LIGHT["tint"]}" stroke-width="4"' * halo
        tip = f"<title>{escape(cleaned(text))}</title>" if shown != cleaned(text) else ""
        legible = LIGHT.get(f"{fill}-text", LIGHT.get(fill, fill))
        self.add(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" text-anchor="{anchor}" '
            f'fill="{legible}" pointer-events="none"{more}>{escape(shown)}{tip}</text>'
        )

    def path(
        self, points: Points, stroke: str = "there", *, thick: float = 1.4, dashes: str = "",
        fill: str = "none", opacity: float = 1.0, arrow: bool = False,
    ) -> None:
        """A line through points, with a tip at its end if it is an `arrow`.  Points that are not finite break it."""
        lines = ["M" + "L".join([f"{number(x)} {number(y)}" for x, y in run])
                 for known, run in groupby(points, lambda point: math.isfinite(sum(point))) if known]
        if not lines:
            return
        self.add(f'<path d="{"".join(lines)}" {_look(fill, stroke, thick, dashes, opacity)} stroke-linejoin="round"/>')
        if arrow:
            before, end = (complex(*point) for point in points[-2:])
            corners = [end - cmath.rect(7, cmath.phase(end - before) + turn) for turn in (-0.45, 0.45)]
            self.path([(at.real, at.imag) for at in (end, *corners)], "none", fill=stroke)

    def shape(
        self, outline: str, fill: str = "none", opacity: float = 1.0, *, stroke: str = "none", thick: float = 1.6
    ) -> None:
        """An outline, in SVG's words, which ignores the pointer."""
        self.add(f'<path d="{outline}" pointer-events="none" {_look(fill, stroke, thick, opacity=opacity)}/>')

    def dot(self, x: float, y: float, fill: str = "now", radius: float = 4.0, stroke: str = "paper") -> None:
        """A point."""
        place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self.add(f"<circle {place} {_look(fill, stroke, 1.0)}/>")

    def heading(self, x: float, y: float, text: str, room: float = 0.0) -> None:
        """A line of text over a part of the drawing."""
        self.text(x, y, text, size=TITLE, bold=True, room=room)


def cleaned(text: str) -> str:
    """Text in one line, with control characters written out (among them the marks of our colours)."""
    return printable(text).replace("\n", " ")


class Axes:
    """A part of a drawing with two axes, for curves.

    With `log` the axis upwards is logarithmic, with `log_across` the other one, which has numbers if it is `named`, and
    only whole ones if it counts something.

    >>> drawing = Drawing(200, 100)
    >>> chart = Axes(drawing, (0, 0, 200, 100), (0.0, 1.0), (0.0, 10.0))
    >>> chart.at(0.0, 0.0)[1] > chart.at(0.0, 10.0)[1]
    True
    """

    LEFT, BELOW = 40.0, 18.0

    def __init__(
        self, drawing: Drawing, place: tuple[float, float, float, float], across: Ends,
        up: Ends, *, log: bool = False, log_across: bool = False, named: bool = True,
        whole: bool = False,
    ) -> None:
        x, y, width, height = place
        self.drawing = drawing
        self.x, self.y, self.width, self.height = x + self.LEFT, y, width - self.LEFT, height - self.BELOW
        bottom, right = self.y + self.height, self.x + self.width
        self.across, self.up = Scale(across, self.x, right, log_across), Scale(up, bottom, self.y, log)
        drawing.rect(self.x, self.y, self.width, self.height, "tint", "line", round=0)
        for tick, name in self.across.ticks(60, whole) if named else ():
            drawing.path([(tick, bottom), (tick, bottom + 3)], "quiet", thick=1)
            drawing.text(tick, bottom + 14, name, fill="quiet", anchor="middle")
        for level, name in self.up.ticks(24):
            drawing.path([(self.x, level), (right, level)], "line", thick=0.6)
            drawing.text(self.x - 4, level + 3.5, name, fill="quiet", anchor="end", room=self.LEFT)

    def at(self, x: float, y: float) -> Point:
        """The place of a point in the drawing; a point far outside the chart stays near it."""
        return self.across.at(x), min(max(self.up.at(y), self.y - 1e4), self.y + 1e4)

    def band(self, columns: Sequence[tuple[float, float, float]], colour: str, opacity: float) -> None:
        """The area between two curves: (x, lower, upper) for each column."""
        upper, lower = ([self.at(x, ends[i]) for x, *ends in columns] for i in (1, 0))
        if upper != lower:
            self.drawing.path([*upper, *lower[::-1]], "none", fill=colour, opacity=opacity)

    def curve(
        self, points: Points, stroke: str = "there", *, thick: float = 1.6, dashes: str = ""
    ) -> None:
        """A line through points, cut off outside the chart; a dot if there is one point alone, which no line shows."""
        top, bottom = self.y - 0.5, self.y + self.height + 0.5
        placed = [self.at(x, y) for x, y in points]
        clipped = [(x, y if top <= y <= bottom else math.nan) for x, y in placed]
        self.drawing.path(clipped, stroke, thick=thick, dashes=dashes)
        if len(placed) == 1:
            self.drawing.dot(*placed[0], fill=stroke, radius=3.0)


class Scale:
    """Numbers between two ends, and their places between two others; with `log`, the distances are ratios.

    >>> Scale((0.0, 4.0), 100.0, 300.0).at(1.0), Scale((0.1, 10.0), 0.0, 2.0, True).at(1.0)
    (150.0, 1.0)
    """

    def __init__(self, ends: Ends, begin: float, end: float, log: bool = False) -> None:
        self.begin, self.end, self.log = begin, end, log
        low, high = map(self._level, ends)
        same = high - low <= 1e-12 * max(abs(low), abs(high), 1e-300)
        around = 0.5 if log or abs(low) < 1e-300 else 0.5 * abs(low)
        self.low, self.high = (low - around, high + around) if same else (low, high)

    def _level(self, value: float) -> float:
        value = min(max(float(value), -LARGEST), LARGEST)
        if not self.log:
            return value
        return math.log10(max(value, 1 / LARGEST)) if value > 0 else math.nan

    def at(self, value: float) -> float:
        """The place of a number."""
        return self.begin + (self.end - self.begin) * ((self._level(value) - self.low) / (self.high - self.low))

    def ticks(self, apart: float, whole: bool = False) -> list[tuple[float, str]]:
        """The places of round numbers, or of whole ones, about `apart` from each other, with their names.

        Whole numbers on a logarithmic axis are powers of two: they count workers.

        >>> [name for _, name in Scale((1.0, 1000.0), 0.0, 240.0, True).ticks(60)]
        ['1', '10', '100', '1,000']
        >>> [name for _, name in Scale((0.8, 6.3), 0.0, 240.0, True).ticks(60)]
        ['1', '2', '5']
        >>> [name for _, name in Scale((0.0002, 20.0), 0.0, 54.0, True).ticks(24)]
        ['0.001', '0.1', '10']
        >>> [name for _, name in Scale((512.0, 2048.0), 0.0, 240.0, True).ticks(60, whole=True)]
        ['512', '1,024', '2,048']
        >>> [name for _, name in Scale((501.5, 502.5), 0.0, 90.0).ticks(28)]
        ['501.5', '502', '502.5']
        >>> [name for _, name in Scale((3.0, 6.0), 0.0, 240.0, True).ticks(60, whole=True)]
        ['3', '4', '5', '6']
        >>> Scale((0.3, 0.9), 0.0, 240.0, True).ticks(60, whole=True)  # there are none
        []
        """
        room = int(abs(self.end - self.begin) // apart)
        if self.log:
            values = _round_ratios(10**self.low, 10**self.high, max(3, 3 * room // 2), whole)
        else:
            values = round_numbers(self.low, self.high, room, whole)
        return [(self.at(value), tick_text(value)) for value in values]


def _round_ratios(low: float, high: float, most: int, whole: bool) -> list[float]:
    """At most `most` round numbers between two ends for a logarithmic axis."""
    base, factors = (2.0, (1,)) if whole else (10.0, (1, 2, 5))
    found = [[m * base**k for k in range(-320, 309) for m in each if low * 0.999 < m * base**k < high * 1.001]
             for each in (factors, (1,))]
    several = [each for each in found if len(each) > 1] or [[x for x in round_numbers(low, high, most, whole) if x > 0]]
    chosen = next((each for each in several if len(each) <= most), several[-1])
    return chosen[:: max(1, -(-len(chosen) // most))]


def round_numbers(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """About `most` round numbers between two ends, and two at least; or fewer if they are to be whole.

    >>> round_numbers(0.0, 9.0, 4), round_numbers(0.0, 9.0, 4, whole=True)
    ([0.0, 2.5, 5.0, 7.5], [0.0, 5.0])
    >>> round_numbers(3.7, 186.4, 3)  # not 100.0 alone
    [50.0, 100.0, 150.0]
    """
    raw = max((high - low) / max(most, 2), whole)
    power = 10.0 ** math.floor(math.log10(raw))
    steps = [power * factor for factor in (10, 5, 2.5, 2, 1, 0.5) if not (whole and power * factor % 1)]
    finest = max(i for i, step in enumerate(steps) if step >= raw * 0.999)
    for step in steps[finest:]:
        found = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        if len(found) > 1:
            break
    return [float(f"{i * step:.15g}") for i in found]


def tick_text(value: float) -> str:
    """A round number at an axis.

    >>> tick_text(0.0), tick_text(-2.5), tick_text(2000.0), tick_text(12000.0), tick_text(1e-05)
    ('0', '−2.5', '2,000', '12k', '1e−5')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        text = np.format_float_scientific(value, precision=12, trim="-", exp_digits=1).replace("e+", "e")
    else:
        text = f"{value / 1000:.15g}k" if abs(value) >= 1e4 else f"{value:,.15g}"
    return text.replace("-", "−")


# Charts ---------------------------------------------------------------------------------------------------------------

Marks = dict[str, tuple[str, Any]]  # what a page shows when a mark is chosen, by its key: a title and a table
# what a mark represents -> the colours of its border and of its fill
KINDS = {
    "kernel": ("there", "there-fill"), "library": ("library", "library-fill"), "result": ("good", "leaf-fill"),
    "input": ("there", "input-fill"), "other": ("back", "back-fill"), "network": ("library", "library-fill"),
    "forward": ("there", "there-fill"), "backward": ("back", "back-fill"), "update": ("good", "leaf-fill"),
    "mixed": ("library", "library-fill"), "": ("library", "library-fill"),
    "quiet": ("line", "tint"), "check": ("quiet", "paper"),
}
DASHED, WIDE = "5 3", 60.0


def legend(drawing: Drawing, x: float, y: float, entries: Sequence[tuple[str, str, str]]) -> None:
    """Samples of colours with their names, side by side: (stroke, fill or "" for a line, text)."""
    with drawing.piece('class="mg-legend"'):
        for stroke, fill, text in entries:
            if fill:
                drawing.rect(x, y - 9.0, 16.0, 11.0, fill, stroke, round=2.0)
            else:
                drawing.path([(x, y - 3.5), (x + 16.0, y - 3.5)], stroke, thick=2.0, dashes=DASHED)
            drawing.text(x + 22.0, y, text, fill="quiet")
            x += 22.0 + text_width(text, LINE) + 18.0


def fitting(label: str, room: float) -> str:
    """A label for some room: whole if it fits, or as the number that tells it from others, or nothing.

    >>> [fitting(label, 20.0) for label in ("layer 2", "blocks[1]", "0 Linear", "kernel_1", "(x - y).mean()")]
    ['2', '[1]', '0', '', '']
    >>> fitting("layer 2", 60.0), fitting("blocks[1] Block", 60.0), fitting("(x - y).mean()", 40.0)
    ('layer 2', 'blocks[1]', '')
    """
    number = re.match(r"((?:\w+ )?[\w.]*?(\[\d+\]|\b\d+))(?: [A-Z]\w*)?$", label)
    forms = (label, *(number.groups() if number else ()))
    return next((form for form in forms if text_width(form, LINE) <= room), "")


def levels_of(spans: Sequence[tuple[Any, Any, tuple[str, ...]]]) -> list[list[tuple[Any, Any, str]]]:
    """The names of stretches, for each of up to three levels of their paths: those that follow each other are one.

    A path has the names of all that a stretch is in, the outermost first.

    >>> levels_of([(0, 1, ("up", "a")), (1, 2, ("up", "")), (2, 3, ("up", "a")), (3, 4, ("up", "a")), (4, 5, ("on",))])
    [[(0, 4, 'up'), (4, 5, 'on')], [(0, 1, 'a'), (2, 4, 'a')]]
    """
    levels = []
    for n in (1, 2, 3):
        runs = [[*run] for _, run in groupby([(a, b, path[:n]) for a, b, path in spans], itemgetter(2))]
        levels.append([(run[0][0], run[-1][1], name) for run in runs for name in run[0][2][n - 1 :] if name])
    return [level for level in levels if level]


class Chart(Drawing):
    """A drawing with marks.  A mark's `key` is the name of what it shows; several marks may share a key.

    >>> chart = Chart(100, 50)
    >>> chart.bar(0, 0, 40, 10, "kernel", "a", "first")
    >>> chart.to_svg("two bars").count("data-mark")
    1
    """

    def bar(
        self, x: float, y: float, width: float, height: float, kind: str, key: str, label: str = "", about: str = "",
        dashes: str = "",
    ) -> None:
        """A rectangle, with its label if it fits, or with the beginning of the label in a wide one."""
        (border, fill), shown = KINDS[kind], fitting(label, width - 6.0) or label * (width > WIDE)
        with self.mark(key, about or label):
            self.rect(x, y, max(width, 1.0), height, fill, border, round=2.0, dashes=dashes)
            if shown:
                self.text(x + width / 2, y + height / 2 + 3.5, shown, anchor="middle", room=width - 6.0)

    @contextmanager
    def mark(self, key: str, about: str) -> Iterator[None]:
        """All that is drawn meanwhile is one mark; without a key, nothing is shown when it is chosen."""
        words = escape(cleaned(about))
        chosen = f'class="mg-mark" data-mark="{escape(key)}" tabindex="0" role="button" aria-label="{words}"'
        with self.piece(chosen * bool(key)):
            self.add(f"<title>{words}</title>")
            yield
