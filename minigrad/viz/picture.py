"""A picture: what a notebook shows, and what is written to a file.

A notebook is given several forms of it and takes the best that it can show.  The picture inside an `<img>` is what is
left in a notebook that somebody else has made, where nothing may run.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cached_property
from html import escape
from pathlib import Path as File
from typing import Any

from ..core.errors import MinigradError
from .dot import to_graphviz
from .scene import Scene
from .svg import described, draw, title_of

NO_PNG = "python -m pip install resvg-py, or save it as .svg, which every browser shows"
NO_DOT = "the program `dot` is missing: apt install graphviz, brew install graphviz or conda install graphviz"


class Picture:
    """A drawing of a scene.  The last line of a notebook's cell shows itself; `save` writes a file.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.viz.graph((x * 2).sum())
    <picture of a graph of 1 parameter, 2 operations>
    """

    def __init__(self, scene: Scene, direction: str = "auto", engine: str = "minigrad") -> None:
        if direction not in ("auto", "down", "right"):
            raise MinigradError(f"a picture has no direction {direction!r}", expect="'down', 'right' or 'auto'")
        if engine not in ("minigrad", "dot"):
            raise MinigradError(f"there is no layout engine {engine!r}", expect="'minigrad' or 'dot'")
        self.scene, self.direction, self.engine = scene, direction, engine

    def __repr__(self) -> str:
        return f"<picture of {described(self.scene)}>"

    @cached_property
    def svg(self) -> str:
        """The picture as an SVG element."""
        if self.engine == "dot":
            return _by_dot(self.to_graphviz(), "svg").decode()
        return draw(self.scene, self.direction)

    def to_svg(self) -> str:
        """The picture as the text of an SVG file."""
        return self.svg

    def to_html(self) -> str:
        """A page with the picture, and its text for those who do not see it.  It needs no other file."""
        title = escape(described(self.scene))
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
            f'<body style="margin:1em">{self.svg}{self._listing()}</body></html>\n'
        )

    def to_png(self, scale: float = 2.0) -> bytes:
        """The picture in pixels."""
        if self.engine == "dot":
            return _by_dot(self.to_graphviz(), "png")
        try:
            import resvg_py
        except ImportError:
            raise MinigradError("a PNG is made by the package resvg-py, which is not here", hint=NO_PNG) from None
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=scale))

    def to_graphviz(self) -> Any:
        """A `graphviz.Digraph` of the same boxes and arrows."""
        return to_graphviz(self.scene, self.direction)

    def to_dot(self) -> str:
        """The text of `to_graphviz()`."""
        return str(self.to_graphviz().source)

    def save(self, path: str | File) -> None:
        """Write the picture to a file; its ending says how: .svg, .html, .png, .dot or .pdf."""
        file = File(path)
        forms: dict[str, Callable[[], str | bytes]] = {
            ".svg": self.to_svg, ".html": self.to_html, ".png": self.to_png, ".dot": self.to_dot,
            ".pdf": lambda: _by_dot(self.to_graphviz(), "pdf"),
        }  # fmt: skip
        if file.suffix not in forms:
            endings = ", ".join(forms)
            raise MinigradError(f"a picture can't be saved as {file.name!r}", expect=f"a name that ends in {endings}")
        made = forms[file.suffix]()
        file.write_bytes(made if isinstance(made, bytes) else made.encode())

    def _listing(self) -> str:
        """The boxes in words."""
        lines = [f"{title_of(box)}: {', '.join(box.lines)}" for box in self.scene.boxes]
        return "<details><summary>as text</summary><pre>" + escape("\n".join(lines)) + "</pre></details>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        data = base64.b64encode(self.svg.encode()).decode()
        image = f'<img alt="{escape(described(self.scene))}" src="data:image/svg+xml;base64,{data}">'
        return {"text/html": image + self._listing(), "image/svg+xml": self.svg, "text/plain": repr(self)}


def _by_dot(graph: Any, form: str) -> bytes:
    import graphviz

    try:
        return bytes(graph.pipe(format=form))
    except graphviz.ExecutableNotFound:
        raise MinigradError("Graphviz cannot draw this", hint=NO_DOT) from None
