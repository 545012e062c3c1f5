"""A flipbook: drawings to page through, each with a sentence about it, all made beforehand in Python.

Most views are flipbooks.  A flipbook has knobs (sliders and choices), and one or more pages for each setting of the
knobs.  The script of the page only looks up the drawing of the current setting; it computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from ..support.errors import ConversionError
from .colours import themed
from .drawing import Drawing, Marks
from .exhibit import Exhibit

Block = tuple[str, Any]  # a kind ("text", "table", "code", "math") and what it shows


@dataclass(frozen=True)
class Knob:
    """Something to set: its name, the words for each setting, and the setting at the start."""

    name: str
    settings: tuple[str, ...]
    start: int = 0
    choice: bool = False  # a list to choose from instead of a slider
    drawn: bool = False  # set by clicks in the drawing alone: no slider
    groups: tuple[str, ...] = ()  # of a list: the heading above each setting


@dataclass(frozen=True)
class Page:
    """One drawing, a sentence, and blocks under headings: `("its shape", ("text", "3 × 4"))`."""

    drawing: Drawing
    say: str
    blocks: tuple[tuple[str, Block], ...] = ()
    name: str = ""  # pages with names are chosen by buttons, pages without by a slider
    count: str = ""  # the words beside the slider; by default, which of the pages it is


@dataclass(repr=False)
class Flipbook(Exhibit):
    """Pages for each setting of the knobs, in the order of `settings_of(knobs)`.

    In a drawing, `go="page:3"` leads to a page, `go="2:5"` sets knob 2 to its setting 5, and `go="code:1"` scrolls
    to the second excerpt of code beside the drawing.  A flipbook with `marks`
    shows charts: a mark that is clicked opens a panel.
    """

    title: str
    pages: list[list[Page]]
    knobs: tuple[Knob, ...] = ()
    cover: int = -1  # the page that is shown where only one page can be
    unit: str = "step"  # what a page is called
    words: str = ""  # the flipbook as text; by default, the sentences of the pages
    start: int = 0  # the first page to show
    wide: bool = False  # whether the panel beside the drawing needs as much room as the drawing
    marks: Marks = field(default_factory=dict)
    opening: int = field(init=False)

    script = "flipbook"

    def __post_init__(self) -> None:
        settings = settings_of(self.knobs)
        if len(settings) != len(self.pages):
            raise ConversionError("Flipbook: pages are a list for each setting of the knobs", actual=len(self.pages))
        self.opening = settings.index(tuple(knob.start for knob in self.knobs))

    def to_svg(self) -> str:
        """The cover, as one picture."""
        return self.pages[self.opening][self.cover].drawing.to_svg(self.title)

    def in_words(self) -> str:
        """The sentences of all pages, one in each line; a number stands for a name."""
        sentences = [f"{i}. " * (not page.name) + page.say for i, page in enumerate(self.pages[self.opening], 1)]
        return self.words or "\n".join(sentences)

    def frames(self) -> Iterator[tuple[str, str]]:
        """The pages; where they have names, or are one for each setting, the settings of the first knob."""
        pages = self.pages[self.opening]
        if self.knobs and (len(pages) == 1 or pages[0].name):
            others = len(self.pages) // len(self.knobs[0].settings)  # settings of the other knobs
            pages = [setting[self.cover] for setting in self.pages[self.opening % others :: others]]
        for page in pages:
            yield page.drawing.to_svg(page.say), page.say

    def data(self) -> dict[str, Any]:
        """Everything that is shown, as plain data: each piece of a drawing once, and their numbers."""
        pieces = dict[str, int]()
        pages = [
            [[[pieces.setdefault(piece, len(pieces)) for piece in page.drawing.pieces], page.say,
              [[heading, *block] for heading, block in page.blocks],
              page.drawing.frame(), page.name, page.count] for page in setting]
            for setting in self.pages
        ]
        knobs = [asdict(knob) for knob in self.knobs]
        return {
            "about": self.title, "unit": self.unit, "knobs": knobs, "pages": pages, "start": self.start,
            "wide": self.wide, "pieces": [*map(themed, pieces)], "marks": self.marks,
        }


def settings_of(knobs: tuple[Knob, ...]) -> list[tuple[int, ...]]:
    """Every setting of some knobs; the last knob changes fastest.

    >>> settings_of((Knob("x", ("1", "2")), Knob("y", ("1", "2"))))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return list(product(*[range(len(knob.settings)) for knob in knobs]))
