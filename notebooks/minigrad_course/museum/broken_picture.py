"""A picture that is drawn from a wrong belief: the answer of the student is what the picture shows.

`broken` is the answer that the picture shows at first, and `right` is computed by the library.  A check draws the
picture from the student's answer, so the student sees each repair.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minigrad.viz.colours import themed, themes
from minigrad.viz.drawing import Drawing

from ..compare import same
from ..feedback import NotWritten, Wrong, written
from ..source_code import run_code
from ..tasks import ROUNDS, Mistake, Task, ValueTask
from ..unit import units


class Thread(NamedTuple):
    """A question that was asked in public: its title and its address."""

    title: str
    address: str

    @property
    def place(self) -> str:
        """Where it was asked, in short: `karpathy/micrograd #21`."""
        parts = self.address.removeprefix("https://").split("/")
        return f"{parts[1]}/{parts[2]} #{parts[4]}" if parts[0] == "github.com" else f"{parts[0]} {parts[2]}"


class Still(NamedTuple):
    """A drawing with a sentence, in the colours of the notebook's theme."""

    drawing: Drawing
    said: str

    def __repr__(self) -> str:
        return f"<{self.said}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = f'<style>{themes()}</style><div class="mg-view">{themed(self.drawing.to_svg(self.said))}</div>'
        return {"text/html": html, "image/svg+xml": self.drawing.to_svg(self.said), "text/plain": repr(self)}


class BrokenPicture(ValueTask):
    """A picture to repair by a value: numbers, names in a list, a dictionary."""

    points, minutes, strict, outcome = 0, 5, False, "repair"
    mistakes: ClassVar[tuple[Mistake, ...]] = ()
    heading: ClassVar[str]
    thread: ClassVar[Thread]
    taught_in: ClassVar[tuple[str, ...]]  # the keys of units
    code: ClassVar[str]  # the program of the picture
    ask: ClassVar[str]  # what to change
    broken: ClassVar[Any]
    clue: ClassVar[str]  # the place where the broken picture contradicts itself
    said: ClassVar[str]  # the right picture in words, for readers who do not see it

    def text(self) -> str:
        asked = f"{inspect.getdoc(type(self))} ([{self.thread.place}]({self.thread.address}))"
        return f"{asked}\n\n```python\n{self.code.strip()}\n```\n\n{self.ask}"

    def explained(self) -> str | None:
        there = [f"{key}.ipynb" for key in self.taught_in if key in units()]
        return f"{self.why}\n  More in {', '.join(there)}" if there else self.why

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        form = self.other_form(answer)
        if form is not None:
            raise self.misformed(answer, form)
        value = self.shown(answer)
        if self.is_right(value):
            return self.explained()
        if same(value, self.shown(self.broken_answer())):
            raise NotWritten(self.name, "the picture is still the broken one", self.clue)
        hint = next((self.words(known) for known in self.mistakes if self.makes(known, value)), self.otherwise)
        raise Wrong(self.name, self.problem(value), hint)

    def makes(self, known: Any, value: Any) -> bool:
        """Whether a picture is that of a known mistake."""
        return same(value, self.shown(self.wrong(known)))

    def is_right(self, value: Any) -> bool:
        """Whether the picture of this value is right."""
        return same(value, self.right())

    def problem(self, value: Any) -> str:
        """What is wrong with a value, without the right one."""
        return f"a picture of {written(value)} is not right"

    def broken_answer(self) -> Any:
        """The answer that draws the broken picture."""
        return self.broken

    def shown(self, answer: Any) -> Any:
        """What the picture shows for an answer."""
        return self.read(answer)

    def other_form(self, answer: Any) -> str | None:
        """How to write an answer; None where it is written like the broken one."""
        return None if _alike(answer, self.broken) else f"in the form of the first one: {self.broken}"

    def draw(self, value: Any) -> Drawing:
        """The picture of a value."""
        raise NotImplementedError

    def illustration(self, answer: Any) -> Still | None:
        """The picture of an answer; None where nothing can be drawn."""
        try:
            if self.other_form(answer) is not None:
                return None
            value = self.shown(answer)
        except Exception:  # the feedback has reported it
            return None
        said = f"{self.heading}: as minigrad computes it" if self.is_right(value) else f"{self.heading}: not right yet"
        return Still(self.draw(value), said)

    def in_words(self) -> str:
        """What the broken picture shows."""
        return written(self.shown(self.broken_answer()))

    def broken_drawing(self) -> Drawing:
        """The picture as the belief draws it."""
        return self.draw(self.shown(self.broken_answer()))

    def true_drawing(self) -> Drawing:
        """The picture as the library computes it."""
        return self.draw(self.shown(self.solution()))


class BrokenNames(BrokenPicture):
    """A picture to repair by a choice: a list of some of the `names`, in any order."""

    names: ClassVar[tuple[str, ...]]

    def read(self, answer: Any) -> Any:
        given = answer.replace(",", " ").split() if isinstance(answer, str) else answer
        known = {name.lower(): name for name in self.names}
        return sorted({known.get(str(each).strip().lower(), str(each)) for each in given})

    def other_form(self, answer: Any) -> str | None:
        listed = isinstance(answer, list | tuple | set | str)
        if listed and set(self.read(answer)) <= set(self.names):
            return None
        return f"a list of some of the names {', '.join(self.names)}, in quotation marks"


class BrokenCode(BrokenPicture):
    """A picture to repair in the program itself, which the student's notebook holds: one line is wrong or missing."""

    kind = "function"
    broken = None

    def in_words(self) -> str:
        return "the picture of the program above"

    def broken_answer(self) -> Callable[..., Any]:
        return self.written_as(self.code)

    def written_as(self, code: str) -> Callable[..., Any]:
        """The function that a text defines."""
        names: dict[str, Any] = {"__name__": "program"}
        run_code(f"import minigrad as mg\n{code}", names)
        return names[self.name]

    def other_form(self, answer: Any) -> str | None:
        return None if callable(answer) else "a function, with def"

    def right(self) -> Any:
        return self.shown(self.solution())

    def solution(self) -> Any:
        """The repaired function."""
        raise NotImplementedError

    def wrong(self, known: Any) -> Any:
        return Task.wrong(self, known)

    def problem(self, value: Any) -> str:
        return "the picture of your function is not right"


def _alike(answer: Any, like: Any) -> bool:
    """Whether an answer has the form of another one: the same keys, as many parts, numbers for numbers."""
    if isinstance(like, dict):
        keys = isinstance(answer, dict) and set(answer) == set(like)
        return keys and all(_alike(answer[key], like[key]) for key in like)
    if isinstance(like, list):
        parts = isinstance(answer, list | tuple) and len(answer) == len(like)
        return parts and all(map(_alike, answer, like))
    if isinstance(like, str):
        return isinstance(answer, str)
    return isinstance(answer, int | float | np.number)
