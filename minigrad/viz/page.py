"""Two ways to show data by a script of ours: a widget in a live notebook, and a page by itself.

The scripts and styles in `static/` are complete: they import nothing and fetch nothing.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any


@cache
def static(name: str) -> str:
    """The text of a file in `static/`."""
    return (files("minigrad.viz") / "static" / name).read_text(encoding="utf-8")


def script_of(view: str) -> str:
    """The module of a view: what all views share, and its own part."""
    return static("common.js") + static(f"{view}.js")


def style_of(view: str) -> str:
    """The style of a view."""
    return static("common.css")


def page(view: str, data: dict[str, Any], title: str) -> str:
    """A page that shows the data."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0 }}\n{style_of(view)}</style></head><body>"
        f'<div id="view"></div><noscript>{escape(title)}</noscript>'
        f'<script type="application/json" id="data">{safe(data)}</script>'
        f'<script type="module">{script_of(view)}\n'
        f'show(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));</script>'
        f"</body></html>\n"
    )


def safe(data: dict[str, Any]) -> str:
    """JSON that can stand in a page: nothing in it ends the script that holds it.

    >>> safe({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def widget(view: str, data: dict[str, Any], static_forms: dict[str, str]) -> Any:
    """What a notebook is given: a widget where there are any, and forms that need none."""
    try:
        made = _widget_class(view)(data=data)
    except ImportError:
        return static_forms
    bundle = made._repr_mimebundle_()
    live, about = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**static_forms, **{k: v for k, v in live.items() if k.startswith("application/")}}, about


@cache
def _widget_class(view: str) -> Any:
    import anywidget
    import traitlets

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        """Data, and the step that is seen."""

        _esm = script_of(view)
        _css = style_of(view)
        data = traitlets.Dict().tag(sync=True)
        step = traitlets.Int(0).tag(sync=True)

    return View
