"""The frame of a page and of slides: the bar with the search, the contents, the line below the slides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

LECTURES = Path(__file__).resolve().parents[1]
BAR = (
    ("index.html", "Lectures"), ("howto.html", "How to"), ("rooms.html", "Map"), ("museum.html", "Museum"),
    ("api.html", "API"), ("primitives.html", "Primitives"), ("errors.html", "Errors"), ("glossary.html", "Glossary"),
)
NAME = "How machine-learning frameworks work"


class Section(NamedTuple):
    """A line of a page's contents."""

    level: int
    anchor: str
    text: str


@cache
def texts() -> dict[str, str]:
    """The pages whose Markdown is in this folder, apart from lectures and the first page: their names and titles.

    The answers to exam questions are on no page.
    """
    paths = (path for path in sorted(LECTURES.glob("*.md")) if path.stem not in ("README", "index", "exam_answers"))
    first = {path.stem: path.read_text(encoding="utf-8").partition("\n")[0] for path in paths}
    return {name: line.removeprefix("# ") for name, line in first.items() if not name[0].isdigit()}


def _others() -> str:
    """Links to the pages that are not in the bar."""
    known = {address for address, _ in BAR}
    others = {f"{name}.html": title for name, title in texts().items()} | {"coverage.html": "What the course covers"}
    links = [f'<a href="{name}">{escape(title)}</a>' for name, title in others.items() if name not in known]
    return " · ".join(links)


def page(name: str, title: str, body: str, sections: Sequence[Section] = (), kind: str = "") -> str:
    """A page around a body; `name` is the name of its file."""
    here = "index.html" if name[:2].isdigit() else "howto.html" if name.startswith("howto") else f"{name}.html"
    links = "".join(
        f'<a href="{address}"{_current(address, here, name)}>{text}</a>' for address, text in BAR
    )
    whole = title if title == NAME else f"{title} · minigrad"
    live = '<div class="try">' in body
    names = ("search-index", "search", "page", *(["cells"] if live else []))
    scripts = "".join(f'<script src="{name}.js"></script>' for name in names)
    style = '<link rel="stylesheet" href="cells.css">' if live else ""
    return (
        f'<!doctype html><html lang="en"><head>{_head(whole)}<link rel="stylesheet" href="fonts.css">'
        f'<link rel="stylesheet" href="colours.css"><link rel="stylesheet" href="site.css">{style}</head>'
        f'<body class="{kind}"><a class="skip" href="#content">Skip to the content</a><header class="bar">'
        f'<a class="brand" href="index.html">minigrad</a><nav aria-label="Site">{links}</nav>{SEARCH}</header>'
        f'<div class="columns">{contents(sections)}<main id="content" tabindex="-1">{body}</main></div>'
        f"<footer>{_others()}<br>Texts: "
        f'<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>, code: MIT.</footer>{scripts}'
        f"</body></html>\n"
    )


SEARCH = (
    '<form class="search" role="search" hidden><input type="search" role="combobox" aria-label="Search the course" '
    'placeholder="Search" aria-expanded="false" aria-controls="found" aria-autocomplete="list" autocomplete="off" '
    'aria-keyshortcuts="/"><kbd aria-hidden="true">/</kbd><ul id="found" role="listbox" '
    'aria-label="Results" hidden></ul></form>'
)


def contents(sections: Sequence[Section]) -> str:
    """The contents of a page with more than two sections; wide windows show them beside the text."""
    if len(sections) < 3:
        return ""
    lines = ""
    for section, following in zip(sections, [*sections[1:], sections[0]], strict=True):
        lines += f'<li><a href="#{section.anchor}">{escape(section.text)}</a>'
        steps = max(following.level, 2) - max(section.level, 2)
        lines += "<ul>" * steps if steps > 0 else "</li>" + "</ul></li>" * -steps
    return (
        '<details class="contents"><summary>On this page</summary><nav aria-label="On this page">'
        f"<ul>{lines}</ul></nav></details>"
    )


NO_SCRIPT = "<noscript>A script shows the slides; the page (left) has the same text.</noscript>"


def deck(name: str, title: str, slides: str, chapters: Sequence[tuple[str, int]] = ()) -> str:
    """Slides around their sections, and a line below them: the unit, its chapters, and the keys for this slide."""
    styles = ("reveal/dist/reset.css", "reveal/dist/reveal.css", "fonts.css", "colours.css", "deck.css")
    links = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    scripts = ("reveal/dist/reveal.js", "reveal/plugin/notes/notes.js", "deck.js")
    code = "".join(f'<script src="{script}"></script>' for script in scripts)
    parts = "".join(
        f'<li><a href="#/{first}" data-first="{first}">{escape(text)}</a></li>' for text, first in chapters
    )
    return (
        f'<!doctype html><html lang="en"><head>{_head(f"{title} · slides · minigrad")}{links}</head><body>'
        f'<main class="reveal"><div class="slides">{slides}</div></main>'
        f'<footer><a class="unit" href="{name}.html">{escape(title.partition(":")[0])}</a>'
        f'<nav aria-label="Chapters"><ol>{parts}</ol></nav><span id="keys"></span>{NO_SCRIPT}</footer>'
        f"{code}</body></html>\n"
    )


def _current(address: str, here: str, name: str) -> str:
    if address != here:
        return ""
    return ' aria-current="page"' if here == f"{name}.html" else ' aria-current="true"'


def _head(title: str) -> str:
    size = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return f'<meta charset="utf-8">{size}<title>{escape(title)}</title>'
