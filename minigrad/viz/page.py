"""Three ways to show data with a script: in the output of a notebook, as a widget, and as a page.

The scripts and styles in `static/` import nothing and fetch nothing.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

from ..support.packages import needed
from ..support.table import escape
from .colours import THEMES, themes

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


def page(view: str, data: dict[str, Any], title: str, static_form: str, above: str) -> str:
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


def widget(view: str, data: dict[str, Any], static_forms: dict[str, str]) -> dict[str, str]:
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


def pixels(svg: str, scale: float) -> bytes:
    """An SVG as a PNG.  On a machine without fonts, the font of matplotlib is used."""
    resvg_py = needed("resvg_py", "a PNG", "; or save it as .svg, which every browser shows")
    try:
        from matplotlib import get_data_path

        fonts = [f"{get_data_path()}/fonts/ttf"]
    except ImportError:
        fonts = []
    return bytes(resvg_py.svg_to_bytes(svg, zoom=scale, font_dirs=fonts, sans_serif_family="DejaVu Sans"))


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
