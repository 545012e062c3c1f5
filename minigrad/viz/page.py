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
from .colours import themes

LARGE = 20_000  # characters of data, from which on they are compressed
# the scripts of a view that has several
PARTS = {"fusion": ("board", "dragging", "fusion"), "step": ("heat", "acting", "step")}
STYLED = {"fusion", "step"}  # the views that have a style of their own


@cache
def static(name: str) -> str:
    """The text of a file in `static/`."""
    return (files("minigrad.viz") / "static" / name).read_text(encoding="utf-8")


def script_of(view: str) -> str:
    """The script of a view: the shared parts, and the view's own function `show`."""
    return "".join([static(f"{part}.js") for part in ("common", "shell", *PARTS.get(view, (view,)))])


def style_of(view: str) -> str:
    """The style of a view."""
    return themes() + static("common.css") + (static(f"{view}.css") if view in STYLED else "")


def page(view: str, data: dict[str, Any], title: str, static_form: str = "") -> str:
    """A page that shows the data; where no script runs, it shows `static_form`."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0 }}\n{style_of(view)}</style></head><body>"
        f'<div id="view">{static_form or escape(title)}</div>'
        f'<script type="application/json" id="data">{safe(packed(data))}</script>'
        f'<script type="module">{script_of(view)}\n'
        f'const data = await unpacked(JSON.parse(document.getElementById("data").textContent));\n'
        f'showAll(document.getElementById("view"), data);</script>'
        f"</body></html>\n"
    )


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """The data as a page contains them: compressed if they are large, because pictures repeat each other.

    >>> packed({"about": "small"})
    {'about': 'small'}
    >>> list(packed({"picture": "the same, and again " * 10_000}))
    ['deflated']
    """
    text = json.dumps(data, separators=(",", ":")).encode()
    if len(text) < LARGE:
        return data
    return {"deflated": base64.b64encode(zlib.compress(text, 9)).decode()}


BEYOND = re.compile("[<\\ud800-\\udfff]")  # characters that end a script, and characters that no file can contain


def safe(data: dict[str, Any]) -> str:
    """JSON for a script element: no name in it can end the script.

    >>> safe({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return BEYOND.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def widget(view: str, data: dict[str, Any], static_forms: dict[str, str]) -> dict[str, str]:
    """The forms of a view for a notebook: a script that shows the view, and forms for hosts that run no script.

    This also works where a widget does not: without a kernel, and in the pages of nbconvert.  The script is a form of
    its own, so a conversion to Markdown or LaTeX contains the picture and no script.
    """
    code = (
        f"const style = {_string(style_of(view))};\nconst packed = {safe(packed(data))};\n"
        f"{script_of(view)}\n{static('embed.js')}"
    )
    return {"application/javascript": f"(async () => {{\n{code}}})();", **static_forms}


def _string(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c")


def live(view: str, data: dict[str, Any]) -> Any:
    """The view as a widget: its `step` is the step that is shown, and can be set from Python while the kernel runs."""
    return _widget_class(view)(data=data)


def pixels(svg: str, scale: float) -> bytes:
    """An SVG as a PNG.  On a machine without fonts, the font of matplotlib is used."""
    resvg_py = needed("resvg_py", "a PNG", "; or save it as .svg, which every browser shows")
    try:
        from matplotlib import get_data_path

        fonts = [f"{get_data_path()}/fonts/ttf"]
    except ImportError:
        fonts = []
    family = "DejaVu Sans"
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_dirs=fonts, sans_serif_family=family))


@cache
def _widget_class(view: str) -> Any:
    anywidget = needed("anywidget", "a widget")
    import traitlets

    class View(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
        """The data of a view, and the step that is shown."""

        _esm = script_of(view) + static("widget.js")
        _css = style_of(view)
        data = traitlets.Dict().tag(sync=True)
        step = traitlets.Int(0).tag(sync=True)

    return View
