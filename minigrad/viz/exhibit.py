"""`Exhibit`, the base class of all views: how a view shows itself in a notebook, in a terminal and in a file.

In a notebook, the view runs in the output; where no script may run, a picture and a text remain.  A saved page needs no
other file and no network: the scripts and styles in `static/` import nothing and fetch nothing.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path as File
from typing import Any, Self

from ..core.node import Node
from ..support.errors import MinigradError
from ..support.files import write_whole
from ..support.packages import needed
from ..support.table import escape, printable
from .colours import THEMES, themes

Data = dict[str, Any]  # all that a view shows, as JSON has it
Bundle = dict[str, str]  # the forms of an output, by their types
FILMS = ".gif", ".mp4"
Forms = dict[str, Callable[[], str | bytes]]  # of files, by their endings


class Exhibit:
    """A view.  A subclass defines four forms of what it shows: `title`, `data`, `to_svg` and `in_words`."""

    script: str  # the name of its script in `static/`
    title: str  # one line that describes the view
    heading = ""  # which program it shows, where there are several
    gradient: Any = None  # the same view of the gradient's program, shown below this one
    nodes: Iterable[Node] = ()  # a saved page quotes the code that made them
    wordy = True  # whether a terminal shows its words, too

    def titled(self, title: str, gradient: Self | None = None, nodes: Iterable[Node] = ()) -> Self:
        """Set the heading, the view of the gradient's program, and the nodes whose code a saved page quotes."""
        self.heading, self.gradient, self.nodes = title, gradient, nodes
        return self

    def said(self) -> str:
        """One line that describes the view.  A control character is written out: a terminal would obey it."""
        return printable(self.title)

    def __repr__(self) -> str:
        return f"<{'; '.join([view._headed() for view in self._parts()])}>"

    def _headed(self) -> str:
        return ": ".join(filter(None, (self.heading, self.said())))

    def _parts(self) -> list[Any]:
        return [self, *(self.gradient._parts() if self.gradient is not None else ())]

    def _all_data(self) -> Data:
        """The data of this view; with a gradient, those of both views under their headings."""
        views = self._parts()
        if not self.heading and len(views) == 1:
            return self.data()
        return {"about": repr(self)[1:-1], "parts": [[view.heading, view.data()] for view in views]}

    def data(self) -> Data:
        """Everything that the view shows, as plain data."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """The most useful picture of the view."""
        raise NotImplementedError

    def in_words(self) -> str:
        """The view in words, with names as they are."""
        raise NotImplementedError

    def text(self) -> str:
        """The view in words."""
        return printable(self.in_words())

    def named(self) -> str:
        """The title of a saved page, if its author gives none."""
        words = self.said()
        return words[:1].upper() + words[1:]

    def to_html(self, title: str = "", above: str = "") -> str:
        """A page that needs no other file and no network; its HTML begins with what stands `above` the view."""
        return page(self.script, self._all_data(), title or repr(self), self._static(), above)

    def to_png(self, scale: float = 2.0) -> bytes:
        """The picture in pixels."""
        from .films import pixels  # in a browser, each module costs time at the first view

        return pixels(self.to_svg(), scale)

    def save(self, path: str | File, *, title: str = "", says: str = "", code: bool | str = True) -> None:
        """Write a page (.html), a picture (.svg, .png), a film of the steps (.gif, .mp4), or another form of the view.

        A page begins with a title (the view's own words, if you give none), the sentence that the author `says`, and
        the code that the view is about: `code=False` leaves it out, and a text takes its place.

        >>> import tempfile
        >>> x, folder = mg.asarray(2.0, requires_grad=True), tempfile.mkdtemp()
        >>> mg.viz.step(x * x).save(f"{folder}/square.html", says="Both inputs are x: x gets two contributions.")
        """
        file = File(path)
        if file.suffix == ".html":
            from .quoting import quoted

            shown = code if isinstance(code, str) else quoted(self.nodes) if code else ""
            title = title or self.named()
            return write_whole(file, self.to_html(title, introduction(title, says, shown)))
        if file.suffix in FILMS:
            from .films import film

            return write_whole(file, film([*self.frames()], file.suffix))
        forms = self._forms()
        if file.suffix not in forms:
            endings = ", ".join([".html", *forms, *FILMS])
            raise MinigradError(f"this view can't be saved as {file.name!r}", expect=f"a name that ends in {endings}")
        return write_whole(file, forms[file.suffix]())

    def frames(self) -> Iterable[tuple[str, str]]:
        """The picture and the sentence of each step, for a film; none where the view has no steps."""
        return ()

    def _forms(self) -> Forms:
        return {".svg": self.to_svg, ".png": self.to_png, ".txt": self._words}

    def widget(self) -> Any:
        """The view as a widget, whose `step` is the step that is shown and can be set from Python.

        Jupyter needs no widget, because the output itself runs; hosts that run no scripts in outputs need one.
        """
        return widget_class(self.script)(data=self._all_data())

    _display_ = widget  # the output for marimo, which runs no scripts in outputs

    def _repr_mimebundle_(self, **kwargs: Any) -> Bundle:
        svg = self.to_svg()
        plain = f"{self!r}\n{self._words()}" if self.wordy else repr(self)
        forms = {"text/html": self._static(svg), "image/svg+xml": svg, "text/plain": plain}
        return widget(self.script, self._all_data(), forms)

    def _words(self) -> str:
        return "\n\n".join([f"{view.heading}:\n" * bool(view.heading) + view.text() for view in self._parts()])

    def _static(self, svg: str | None = None) -> str:
        """The output where no script runs; `svg` is the picture, if it is drawn already."""
        encoded = base64.b64encode((svg or self.to_svg()).encode()).decode()
        listing = f"<details><summary>in words</summary><pre>{escape(self.text())}</pre></details>"
        heading = f"<p class='mathjax_ignore tex2jax_ignore'>{escape(self._headed())}</p>"  # dollars begin formulas
        looks = f'alt="{escape(repr(self))}" style="max-width:100%;height:auto"'  # a wide picture would be cut
        picture = f'<img {looks} src="data:image/svg+xml;base64,{encoded}">'
        return heading + picture + listing + ("" if self.gradient is None else self.gradient._static())


# Pages, outputs and widgets -------------------------------------------------------------------------------------------

# the scripts of a view that has several
PARTS = {
    "fusion": ("board", "stages", "written", "fusion"),
    "step": ("numbers", "heat", "acting", "tape", "live", "step"),
    "flipbook": ("narrow", "curves", "flipbook"),
}
# the styles of the views that have some of their own
STYLED = {"fusion": ("fusion", "written"), "step": ("step",), "timeline": ("timeline",)}


# indentation, lines of comments, and comments at the ends of lines
SPARE = re.compile(r"^[ \t]+|^[ \t]*//.*\n|[ \t]+// [^\"'`\n]*$", re.MULTILINE)


@cache
def static(name: str) -> str:
    """A file in `static/`, as short as a notebook may store it."""
    return SPARE.sub("", (files("minigrad.viz") / "static" / name).read_text(encoding="utf-8"))


def script_of(view: str) -> str:
    """The script of a view: the shared parts, and the view's own function `show`."""
    return "".join([static(f"{part}.js") for part in ("common", "shell", *PARTS.get(view, (view,)))])


def style_of(view: str) -> str:
    """The style of a view."""
    return themes() + static("common.css") + "".join([static(f"{part}.css") for part in STYLED.get(view, ())])


def introduction(title: str, says: str, code: str) -> str:
    """What stands above the view of a saved page: a title, a sentence by its author, and the code.

    >>> introduction("a < b", "", "")
    '<header class="mg-intro"><h1>a &lt; b</h1></header>'
    """
    sentence = f"<p>{escape(says)}</p>" if says else ""
    listing = f"<details><summary>the code</summary><pre>{escape(code)}</pre></details>" if code else ""
    return f'<header class="mg-intro"><h1>{escape(title)}</h1>{sentence}{listing}</header>'


def page(view: str, data: Data, title: str, static_form: str, above: str) -> str:
    """A page that shows the data, with `above` over it; where no script runs, it shows `static_form`.

    The page needs no other file.  In an `<iframe>` it reports its height to the page around it.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>:root {{ color-scheme: light dark }} body {{ margin: 0 }}\n{style_of(view)}{static('hosted.css')}"
        f"</style></head><body>{above}"
        f'<div id="view">{static_form}</div>'
        f'<script type="text/plain" id="data">{deflated(json.dumps(data, separators=(",", ":")))}</script>'
        f'<script type="module">{{\n{static("hosted.js")}}}\n{script_of(view)}\n'
        f'const data = await inflated(document.getElementById("data").textContent);\n'
        f'showAll(document.getElementById("view"), data);\n'
        f'if (parent === window) document.querySelector(".mg-view").focus({{ preventScroll: true }});</script>'
        f"</body></html>\n"
    )


def deflated(text: str) -> str:
    """Text as a page contains it: compressed, because pictures repeat each other, and without characters of HTML.

    >>> len(deflated("the same, and again " * 10_000)) < 1000
    True
    """
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


# What `widget` adds to the static form: a script, and an element around it that the view is put into.
LOADER = r'\A<figure class="mg-output"[^>]*>| onload="[^"]*"|</figure>\Z'


def widget(view: str, data: Data, static_forms: Bundle) -> Bundle:
    """The forms of a view for a notebook: the static forms, and a script in the picture of the HTML form.

    The picture runs the script when it has loaded, and the view takes its place.  Every host runs this form, also
    without a kernel: JupyterLab, Notebook 7, VS Code, Colab, pages of nbconvert.  A host that runs no scripts drops the
    attribute, and Markdown does not show it.

    >>> forms = widget("graph", {}, {"text/html": '<img alt="a" src="">'})
    >>> re.sub(LOADER, "", forms["text/html"])
    '<img alt="a" src="">'
    """
    code = (
        "(async () => {\nconst picture = document.currentScript.picture;\n"
        f"const style = {json.dumps(style_of(view))};\nconst data = JSON.parse({json.dumps(json.dumps(data))});\n"
        f"{script_of(view)}\n{static('embed.js')}}})();"
    )
    run = (
        f"new Response(new Blob([Uint8Array.from(atob('{deflated(code)}'),c=>c.charCodeAt(0))]).stream()"
        ".pipeThrough(new DecompressionStream('deflate'))).text().then(code=>{var s=document.createElement('script');"
        "s.picture=this;s.textContent=code;document.head.append(s);s.remove()})"
    )
    inside = static_forms["text/html"].replace(' src="', f' onload="{run}" src="', 1)
    return {**static_forms, "text/html": f'<figure class="mg-output" style="margin:0">{inside}</figure>'}


def in_theme(static_form: str) -> str:
    """A static form whose picture is dark in a dark host, where styles are allowed.

    >>> in_theme('<img alt="a" src="">')[-38:]
    '<img class="mg-static" alt="a" src="">'
    """
    looks = THEMES.replace("LIGHT", "filter: none").replace("DARK", "filter: invert(0.92) hue-rotate(180deg)")
    picture = static_form.replace("<img", '<img class="mg-static"', 1)
    return f"<style>{looks.replace('view', 'static')}</style>{picture}"


@cache
def widget_class(view: str) -> Any:
    """The widget of a view: its `step` is the step that is shown, and can be set from Python while the kernel runs."""
    anywidget = needed("anywidget", "a widget")
    import traitlets

    class View(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
        """The data of a view, and the step that is shown."""

        _esm = script_of(view) + static("widget.js")
        _css = style_of(view)
        data = traitlets.Dict().tag(sync=True)
        step = traitlets.Int(0).tag(sync=True)

    return View
