"""Three ways to show data by a script of ours: in the output of a notebook, as a widget, and as a page by itself.

The scripts and styles in `static/` are complete: they import nothing and fetch nothing.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

from ..core.errors import MinigradError
from ..core.table import escape

PACKED = 20_000  # characters of data: more is compressed in a notebook
NO_PNG = "python -m pip install resvg-py, or save it as .svg, which every browser shows"
# The scripts of views that have other ones than their own, and the styles of views that have one.
PARTS = {"fusion": ("board", "fusion"), "chart": ("chart",), "step": ("heat", "acting", "step")}
STYLES = {"fusion": "fusion", "chart": "fusion", "step": "step"}


SPARE = re.compile(r"^[ \t]+|^[ \t]*//.*\n", re.MULTILINE)  # indentation, and lines of comments


@cache
def static(name: str) -> str:
    """A file in `static/`, as short as a notebook may store it."""
    return SPARE.sub("", (files("minigrad.viz") / "static" / name).read_text(encoding="utf-8"))


def script_of(view: str) -> str:
    """The script of a view: what all views share, and its own part, the function `show`."""
    return static("common.js") + "".join([static(f"{part}.js") for part in PARTS.get(view, (view,))])


def style_of(view: str) -> str:
    """The style of a view."""
    return static("common.css") + (static(f"{STYLES[view]}.css") if view in STYLES else "")


def page(view: str, data: dict[str, Any], title: str, static_form: str = "") -> str:
    """A page that shows the data; `static_form` is what stands there where no script runs."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0 }}\n{style_of(view)}</style></head><body>"
        f'<div id="view">{static_form or escape(title)}</div>'
        f'<script type="application/json" id="data">{safe(data)}</script>'
        f'<script type="module">{script_of(view)}\n'
        f'showAll(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));</script>'
        f"</body></html>\n"
    )


BEYOND = re.compile("[<\\ud800-\\udfff]")  # what ends a script, and what no file can hold


def safe(data: dict[str, Any]) -> str:
    """JSON that can stand in a page: nothing in it ends the script that holds it.

    >>> safe({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return BEYOND.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def widget(view: str, data: dict[str, Any], static_forms: dict[str, str]) -> dict[str, str]:
    """The forms of a view for a notebook: a script that shows the view, and those for hosts that run no script.

    This works where a widget does not: in a notebook whose kernel is gone, and on the pages that nbconvert makes.  The
    script is a form of its own, so a conversion to Markdown or LaTeX has the picture and no script.
    """
    code = (
        f"const style = {_string(style_of(view))};\n{script_of(view)}\nconst data = {packed(safe(data))};\n"
        f"{static('embed.js')}"
    )
    return {"application/javascript": f"(() => {{\n{code}}})();", **static_forms}


def packed(text: str) -> str:
    """JSON for a notebook, where a long one would make the file large: compressed, and unpacked by the browser.

    >>> packed("[1, 2]"), packed("[" + "1, " * PACKED + "1]")[:13]
    ('[1, 2]', 'unpacked("eNr')
    """
    if len(text) <= PACKED:
        return text
    return f'unpacked("{base64.b64encode(zlib.compress(text.encode(), 9)).decode()}")'


def _string(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c")


def live(view: str, data: dict[str, Any]) -> Any:
    """The view as a widget, which tells Python what is seen (`step`) and is told; it lives as long as its kernel."""
    try:
        return _widget_class(view)(data=data)
    except ImportError:
        raise MinigradError(
            "a widget is made by the package anywidget, which is not here", hint="python -m pip install anywidget"
        ) from None


def pixels(svg: str, scale: float) -> bytes:
    """An SVG as a PNG.  Where the machine has no fonts, that of matplotlib does."""
    try:
        import resvg_py
    except ImportError:
        raise MinigradError("a PNG is made by the package resvg-py, which is not here", hint=NO_PNG) from None
    try:
        from matplotlib import get_data_path

        fonts = [f"{get_data_path()}/fonts/ttf"]
    except ImportError:
        fonts = []
    family = "DejaVu Sans"
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_dirs=fonts, sans_serif_family=family))


@cache
def _widget_class(view: str) -> Any:
    import anywidget
    import traitlets

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        """Data, and the step that is seen."""

        _esm = script_of(view) + static("widget.js")
        _css = style_of(view)
        data = traitlets.Dict().tag(sync=True)
        step = traitlets.Int(0).tag(sync=True)

    return View
