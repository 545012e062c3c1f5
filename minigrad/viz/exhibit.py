"""An exhibit: what shows itself wherever it is, as well as it can there.

In a notebook it runs in the output; where nothing may run, the picture inside an `<img>` and a text are left; a file
that it is saved to needs no other file, and no network.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any, ClassVar, NamedTuple, TypeVar

from ..core.errors import MinigradError
from ..core.files import write_whole
from ..core.table import escape, printable
from .charts import Chart
from .drawing import themed
from .page import live, page, pixels, widget

E = TypeVar("E", bound="Exhibit")


class Exhibit:
    """What all of them have in common.  Each says what is shown in four ways: `data`, `to_svg`, `text` and its repr."""

    script: ClassVar[str]  # the name of what runs in the page
    heading = ""  # of which program it is a view, where there are several
    gradient: Any = None  # the same view of the program of the gradient; what shows the one shows the other

    def titled(self: E, title: str, gradient: E | None = None) -> E:
        """Say which program it is a view of, and show the view of its gradient with it."""
        self.heading, self.gradient = title, gradient
        return self

    def said(self) -> str:
        """What is shown, in a line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{'; '.join(f'{v.heading}: {v.said()}' if v.heading else v.said() for v in self._parts())}>"

    def _parts(self) -> list[Any]:
        return [self, *(self.gradient._parts() if self.gradient is not None else ())]

    def _all_data(self) -> dict[str, Any]:
        """The data of all views: those of one are not packed."""
        views = self._parts()
        if not self.heading and len(views) == 1:
            return self.data()
        return {"about": repr(self)[1:-1], "parts": [[view.heading, view.data()] for view in views]}

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """One picture that says the most."""
        raise NotImplementedError

    def text(self) -> str:
        """The same in words."""
        raise NotImplementedError

    def to_html(self) -> str:
        """A page that needs no other file, and no network."""
        return page(self.script, self._all_data(), repr(self), self._static())

    def to_png(self, scale: float = 2.0) -> bytes:
        """The picture in pixels."""
        return pixels(self.to_svg(), scale)

    def save(self, path: str | File) -> None:
        """Write a page (.html), a picture (.svg, .png), a text (.txt), or what else this view can be saved as."""
        file = File(path)
        forms = self._forms()
        if file.suffix not in forms:
            raise MinigradError(
                f"this view can't be saved as {file.name!r}", expect=f"a name that ends in {', '.join(forms)}"
            )
        write_whole(file, forms[file.suffix]())

    def _forms(self) -> dict[str, Callable[[], str | bytes]]:
        return {".html": self.to_html, ".svg": self.to_svg, ".png": self.to_png, ".txt": self._words}

    def widget(self) -> Any:
        """A widget that tells Python what is seen (`step`) and is told; it lives as long as its kernel.

        Nobody needs it in Jupyter, where the output is alive by itself; hosts that run no scripts in outputs do.
        """
        return live(self.script, self._all_data())

    def _display_(self) -> Any:
        """What marimo asks for, which runs no scripts in outputs."""
        return self.widget()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        forms = {"text/html": self._static(), "image/svg+xml": self.to_svg(), "text/plain": self._plain()}
        return widget(self.script, self._all_data(), forms)

    def _plain(self) -> str:
        """What a terminal shows."""
        return f"{self!r}\n{self._words()}"

    def _words(self) -> str:
        """The same in words, which a terminal can show whatever names there are."""
        texts = [f"{view.heading}:\n{view.text()}" if view.heading else view.text() for view in self._parts()]
        return printable("\n\n".join(texts))

    def _static(self) -> str:
        """What is seen where no script runs."""
        encoded = base64.b64encode(self.to_svg().encode()).decode()
        listing = f"<details><summary>the same in words</summary><pre>{escape(self.text())}</pre></details>"
        heading = f"<p>{escape(self.heading)}</p>" if self.heading else ""
        picture = f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{encoded}">'
        return heading + picture + listing + ("" if self.gradient is None else self.gradient._static())


class Frame(NamedTuple):
    """One of the pictures of a chart: what it is called, the picture, and what it says."""

    name: str
    chart: Chart
    says: str

    def data(self) -> dict[str, str]:
        """What is shown of it, in the colours of the page."""
        return {"name": self.name, "svg": self.chart.to_svg(self.says, themed), "says": self.says}


class Charted(Exhibit):
    """Pictures with marks to point at, with a slider where there are several.

    `marks` says of each mark, by its key, its title, rows of what is known about it, and the keys of those that belong
    to it.  `files` are what can be saved besides: name -> content.
    """

    script = "chart"

    def __init__(
        self, about: str, frames: list[Frame], marks: dict[str, dict[str, Any]], words: str, slider: str = "",
        begin: int = 0, files: dict[str, str] | None = None,
    ) -> None:
        self.about, self.frames, self.marks, self.words, self.slider = about, frames, marks, words, slider
        self.begin, self.files = begin, files or {}

    def said(self) -> str:
        """What is shown, in a line."""
        return self.about

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        return {
            "about": self.about, "frames": [frame.data() for frame in self.frames], "marks": self.marks,
            "slider": self.slider, "begin": self.begin, "files": self.files,
        }

    def to_svg(self) -> str:
        """The picture that is seen first."""
        frame = self.frames[self.begin]
        return frame.chart.to_svg(frame.says)

    def text(self) -> str:
        """The same in words."""
        return self.words

    def _forms(self) -> dict[str, Callable[[], str | bytes]]:
        others = {File(name).suffix: partial(str, content) for name, content in self.files.items()}
        return {**super()._forms(), **others}


def mark(title: str, rows: list[tuple[str, str]], others: Sequence[str] = ()) -> dict[str, Any]:
    """What is known about a mark."""
    return {"title": title, "rows": rows, "others": list(others)}
