"""A flipbook: drawings to turn over, each with what is to be said of it, all made beforehand.

Most views are one: some knobs (sliders, choices), and for each setting of them some pages one after the other.  What
the page's script does is to look up the drawing that belongs to a setting; it computes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .drawing import Drawing, themed
from .exhibit import Exhibit

Block = tuple[str, Any]  # a kind ("text", "table", "code", "math", "numbers") and what it shows


@dataclass(frozen=True)
class Knob:
    """What can be set: its name, the words for each setting, and the one to begin with."""

    name: str
    settings: tuple[str, ...]
    start: int = 0
    choice: bool = False  # a list to choose from instead of a slider


@dataclass(frozen=True)
class Page:
    """One drawing, a sentence, and blocks under headings: `("its shape", ("text", "3 × 4"))`."""

    drawing: Drawing
    say: str
    blocks: tuple[tuple[str, Block], ...] = ()


@dataclass
class Flipbook(Exhibit):
    """Pages for each setting of the knobs, in the order of `settings_of(knobs)`.

    In a drawing, `go="page:3"` leads to a page, and `go="2:5"` sets knob 2 to its setting 5.
    """

    title: str
    pages: list[list[Page]]
    knobs: tuple[Knob, ...] = ()
    cover: int = -1  # the page that stands for all of them where only one is seen
    unit: str = "step"  # what a page is called
    words: str | None = None  # all of it in words; None: the sentences of the pages
    start: int = 0  # the page to begin with
    wide: bool = False  # whether what is beside the drawing needs as much room as the drawing
    opening: int = field(init=False)

    script = "flipbook"

    def __post_init__(self) -> None:
        settings = settings_of(self.knobs)
        assert len(settings) == len(self.pages)
        self.opening = settings.index(tuple(knob.start for knob in self.knobs))

    def __repr__(self) -> str:
        return f"<{self.title}>"

    def to_svg(self) -> str:
        """The page that says most, as one picture."""
        return self.pages[self.opening][self.cover].drawing.to_svg(self.title)

    def text(self) -> str:
        """What is said on each page, a line for each."""
        return self.words if self.words is not None else "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for i, page in enumerate(self.pages[self.opening], 1):
            yield f"{i}. {page.say}"

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data: pieces of drawings and blocks, each once, and the pages made of them."""
        pieces, blocks = _Once(), _Once()
        pages = [
            [
                [
                    [pieces.number(themed(piece)) for piece in page.drawing.pieces], page.say,
                    [blocks.number([heading, *block]) for heading, block in page.blocks], page.drawing.frame(),
                ]
                for page in setting
            ]
            for setting in self.pages
        ]
        knobs = [
            {"name": knob.name, "settings": list(knob.settings), "start": knob.start, "choice": knob.choice}
            for knob in self.knobs
        ]
        return {
            "about": self.title, "unit": self.unit, "knobs": knobs, "pages": pages, "start": self.start,
            "wide": self.wide, "pieces": pieces.things, "blocks": blocks.things,
        }


class _Once:
    """Things that are written down once each, and known by their number."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self.known: dict[str, int] = {}

    def number(self, thing: Any) -> int:
        key = json.dumps(thing)
        if key not in self.known:
            self.known[key] = len(self.things)
            self.things.append(thing)
        return self.known[key]


def settings_of(knobs: tuple[Knob, ...]) -> list[tuple[int, ...]]:
    """Every setting of some knobs, that of the last one changing first.

    >>> settings_of((Knob("x", ("1", "2")), Knob("y", ("1", "2"))))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return list(product(*[range(len(knob.settings)) for knob in knobs]))
