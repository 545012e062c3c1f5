"""Charts: drawings of bars, each of which is a mark that can be chosen in a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

from ..support.table import escape
from .drawing import Drawing, cleaned
from .svg import LINE, text_width

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
