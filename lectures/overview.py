"""The first page, the facts of a unit on the page of its lecture, and the table of what the course covers."""

from __future__ import annotations

import re
from html import escape

from minigrad.course.unit import Unit
from minigrad.viz.drawing import themed

from .markup import Lecture


def index(known: dict[str, Unit], body: str) -> str:
    """The first page: what this is and how to start, a view to step through, the units, and the rest."""
    start, live, rest = body.split("<hr />\n")
    cards = "".join(map(_card, known.values()))
    return (
        f'<section class="hero"><div>{start}</div><div class="hero-live">{live}</div></section>'
        f'<h2 id="units">Lectures</h2><ul class="units">{cards}</ul><p class="quiet">{_total(known)} so far.</p>{rest}'
    )


def _card(unit: Unit) -> str:
    cover = Lecture(unit.key, "").picture("cover")[0].to_svg(unit.title, themed)
    return (
        f'<li><figure class="drawn">{cover}</figure><span class="number">{unit.number:02}</span><div>'
        f'<h3><a href="{unit.key}.html">{escape(unit.title)}</a></h3><p>{_unbroken(unit.question)}</p>'
        f'<p class="quiet"><a href="{unit.key}.html">page</a> · <a href="{unit.key}.slides.html">slides</a> · '
        f"{unit.minutes} minutes</p></div></li>"
    )


def _unbroken(question: str) -> str:
    """A line of text whose formulas are not broken."""
    return re.sub(r" ([*+=]) ", "\u00a0\\1\u00a0", escape(question))


def _total(known: dict[str, Unit]) -> str:
    return f"{len(known)} units, {sum(unit.minutes for unit in known.values())} minutes"


def opening(unit: Unit | None, key: str) -> str:
    """The line below the title of a lecture: a link to its slides, and how long the unit takes."""
    time = f"<span>{unit.minutes} minutes, with the notebooks</span>" if unit else ""
    return f'<p class="opening"><a class="button" href="{key}.slides.html">Show as slides</a>{time}</p>'


def about(unit: Unit | None) -> str:
    """The end of a lecture's page: outcomes, notebooks, misconceptions and ideas."""
    if unit is None:
        return ""
    outcomes = "".join(f"<li>{escape(outcome)}</li>" for outcome in unit.outcomes.values())
    wrong = "".join(
        f"<li>{escape(each.belief)} <small>({_linked(each.source)})</small></li>" for each in unit.misconceptions
    )
    before = ", ".join(f'<a href="{key}.html">{key}</a>' for key in unit.prerequisites) or "nothing"
    return (
        f'<section class="about"><h2 id="after-this-unit">After this unit you can</h2><ul>{outcomes}</ul>'
        f"<p>{unit.minutes} minutes, {unit.points} points; before it: {before}. In JupyterLab (<code>python3 course lab"
        f"</code>): <code>{unit.key}.ipynb</code>, then <code>exercises/{unit.key}_exercise.ipynb</code>.</p>"
        f"<details><summary>What many believe before</summary><ul>{wrong}</ul></details>"
        f"<details><summary>Which ideas are met, and where</summary>{_covered(unit)}</details></section>"
    )


def ways(key: str, known: dict[str, Unit]) -> str:
    """Links to the lecture before and the one after."""
    keys = list(known)
    at = keys.index(key)
    before = _way(known[keys[at - 1]], "prev", "← ") if at else "<span></span>"
    after = _way(known[keys[at + 1]], "next", "") if at + 1 < len(keys) else ""
    return f'<nav class="ways" aria-label="Lectures">{before}{after}</nav>'


def _way(unit: Unit, rel: str, arrow: str) -> str:
    end = " →" if rel == "next" else ""
    return f'<a rel="{rel}" href="{unit.key}.html">{arrow}{unit.number:02} · {escape(unit.title)}{end}</a>'


def _linked(source: str) -> str:
    """A source with its addresses as links, without their common beginning."""
    parts = []
    for word in escape(source).split(" "):
        address = word.rstrip(",;:)")
        known = address.startswith("https://")
        named = address.removeprefix("https://").removeprefix("www.").rstrip("/")
        parts.append(f'<a href="{address}">{named}</a>{word[len(address) :]}' if known else word)
    return " ".join(parts)


def _covered(unit: Unit) -> str:
    """The ideas of the unit, and for each the cell where a student predicts, computes or changes something."""
    rows = []
    for seed in unit.seeds:
        task = unit.tasks.get(seed.met_in)
        name = f"exercises/{unit.key}_exercise" if task is not None and task.strict else unit.key
        source, _, idea = seed.idea.partition(": ")
        cells = (idea, source, f"{name}.ipynb", seed.met_in)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>idea</th><th>document</th><th>notebook</th><th>task or cell</th></tr>"
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>'


def coverage(known: dict[str, Unit]) -> str:
    """Every idea of the course, and the task or cell where a student does something with it."""
    rows = []
    for key, unit in known.items():
        for seed in unit.seeds:
            place = "task" if seed.met_in in unit.tasks else "cell"
            link = f'<a href="{key}.html">{key}</a>'
            met = f"{place} <code>{escape(seed.met_in)}</code>"
            rows.append(f"<tr><td>{escape(seed.idea)}</td><td>{link}</td><td>{met}</td></tr>")
    head = "<tr><th>idea</th><th>unit</th><th>where a student predicts, computes or changes it</th></tr>"
    return (
        "<h1>What the course covers</h1><p>The number before an idea is the number of its source document.</p>"
        f'<div class="wide"><table>{head}{"".join(rows)}</table></div>'
    )
