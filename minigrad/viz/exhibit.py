"""`Exhibit`, the base class of all views: how a view shows itself in a notebook, in a terminal and in a file.

In a notebook, the view runs in the output; where no script may run, a picture and a text remain.  A saved page needs no
other file and no network.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import wraps
from pathlib import Path as File
from typing import Any, ClassVar, TypeVar

from ..support.errors import MinigradError
from ..support.files import write_whole
from ..support.table import escape, printable
from .page import live, page, pixels, widget

E = TypeVar("E", bound="Exhibit")


def check_function(view: str, what: Any, hint: str) -> None:
    """Raise an error if a view that needs a function is given something else."""
    if not callable(what):
        raise MinigradError(f"{view} needs a function, and a {type(what).__name__} is not one", hint=hint)


class Exhibit:
    """A view.  A subclass defines four forms of what it shows: `data`, `to_svg`, `text` and `said`."""

    script: ClassVar[str]  # the name of its script in `static/`
    heading = ""  # which program it shows, where there are several
    gradient: Any = None  # the same view of the gradient's program, shown below this one

    def __init_subclass__(cls) -> None:
        """Let `text` and `said` write out the control characters in names: a terminal would obey them."""
        for name, words in [each for each in vars(cls).items() if each[0] in ("text", "said")]:
            setattr(cls, name, wraps(words)(lambda view, words=words: printable(words(view))))

    def titled(self: E, title: str, gradient: E | None = None) -> E:
        """Set the heading, and the view of the gradient's program."""
        self.heading, self.gradient = title, gradient
        return self

    def said(self) -> str:
        """One line that describes the view."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{'; '.join(f'{v.heading}: {v.said()}' if v.heading else v.said() for v in self._parts())}>"

    def _parts(self) -> list[Any]:
        return [self, *(self.gradient._parts() if self.gradient is not None else ())]

    def _all_data(self) -> dict[str, Any]:
        """The data of this view; with a gradient, those of both views under their headings."""
        views = self._parts()
        if not self.heading and len(views) == 1:
            return self.data()
        return {"about": repr(self)[1:-1], "parts": [[view.heading, view.data()] for view in views]}

    def data(self) -> dict[str, Any]:
        """Everything that the view shows, as plain data."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """The most useful picture of the view."""
        raise NotImplementedError

    def text(self) -> str:
        """The view in words."""
        raise NotImplementedError

    def to_html(self) -> str:
        """A page that needs no other file and no network."""
        return page(self.script, self._all_data(), repr(self), self._static())

    def to_png(self, scale: float = 2.0) -> bytes:
        """The picture in pixels."""
        return pixels(self.to_svg(), scale)

    def save(self, path: str | File) -> None:
        """Write a page (.html), a picture (.svg, .png), a text (.txt), or another form that this view has."""
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
        """The view as a widget, whose `step` is the step that is shown and can be set from Python.

        Jupyter needs no widget, because the output itself runs; hosts that run no scripts in outputs need one.
        """
        return live(self.script, self._all_data())

    def _display_(self) -> Any:
        """The output for marimo, which runs no scripts in outputs."""
        return self.widget()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        svg = self.to_svg()
        forms = {"text/html": self._static(svg), "image/svg+xml": svg, "text/plain": self._plain()}
        return widget(self.script, self._all_data(), forms)

    def _plain(self) -> str:
        """The output for a terminal."""
        return f"{self!r}\n{self._words()}"

    def _words(self) -> str:
        texts = [f"{view.heading}:\n{view.text()}" if view.heading else view.text() for view in self._parts()]
        return "\n\n".join(texts)

    def _static(self, svg: str | None = None) -> str:
        """The output where no script runs; `svg` is the picture, if it is drawn already."""
        encoded = base64.b64encode((svg or self.to_svg()).encode()).decode()
        listing = f"<details><summary>the same in words</summary><pre>{escape(self.text())}</pre></details>"
        heading = f"<p>{escape(self.heading)}</p>" if self.heading else ""
        picture = f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{encoded}">'
        return heading + picture + listing + ("" if self.gradient is None else self.gradient._static())
