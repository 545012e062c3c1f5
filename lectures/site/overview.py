"""The first page, the facts of a unit on the page of its lecture, and the table of what the course covers."""

from __future__ import annotations

import re
from html import escape

from minigrad.viz.colours import themed
from minigrad_course.unit import Seed, Unit

from .cells import KINDS, met, page_of
from .frames import Section
from .hosts import NOWHERE, Hosts
from .ideas import DOCUMENTS, IDEAS
from .markup import Lecture, as_code, slug


def index(known: dict[str, Unit], body: str, house: str, hosts: Hosts = NOWHERE) -> str:
    """The first page: what this is and how to start, a view to step through, the units, the map, and the rest."""
    start, live, rest = body.split("<hr />\n")
    if hosts.browser:
        start = start.replace('<h2 id="start">', f'{IN_BROWSER.format(escape(hosts.browser))}<h2 id="start">', 1)
    cards = "".join(map(_card, known.values()))
    return (
        f'<section class="hero"><div>{start}</div><div class="hero-live">{live}</div></section>'
        f'<h2 id="units">Lectures</h2><p class="quiet">{_total(known)}.</p><ul class="units">{cards}</ul>'
        f'<h2 id="map">The map</h2>{house}<p><a href="rooms.html">Every room and its modules</a></p>{rest}'
    )


IN_BROWSER = (
    '<p class="opening"><a class="button" href="{}/">Open the notebooks in your browser</a>'
    "<span>nothing to install, no account</span></p>"
)


def _card(unit: Unit) -> str:
    cover = themed(Lecture(unit.key, "").picture("cover")[0].to_svg(unit.title))
    return (
        f'<li><figure class="drawn">{cover}</figure><span class="number">{unit.number:02}</span><div>'
        f'<h3><a href="{unit.key}.html">{escape(unit.title)}</a></h3><p>{_unbroken(unit.question)}</p>'
        f'<p class="quiet links"><a href="{unit.key}.html">page</a> <a href="{unit.key}.slides.html">slides</a> '
        f"{_notebooks(unit)} <span>{unit.minutes} min</span></p></div></li>"
    )


def _unbroken(question: str) -> str:
    """A line of text whose formulas are not broken."""
    return re.sub(r" ([*+=]) ", "\u00a0\\1\u00a0", escape(question))


def _total(known: dict[str, Unit]) -> str:
    hours, more = (sum(getattr(unit, name) for unit in known.values()) / 60 for name in ("minutes", "further"))
    words = f"{len(known)} units, about {hours:.0f} hours with notebooks and exercises"
    return f"{words}, and {more:.0f} for readers who want more"


def opening(unit: Unit | None, key: str, hosts: Hosts = NOWHERE) -> str:
    """The line below the title of a lecture: links to its slides and notebooks, and how long the unit takes.

    With the address of the folder for browsers, the demo notebook opens there.
    """
    about = f"{_notebooks(unit)}<span>{unit.takes}, with the notebooks</span>" if unit else ""
    run = Hosts(hosts.browser).buttons(f"{key}.ipynb") if unit else ""
    return f'<p class="opening"><a class="button" href="{key}.slides.html">Show as slides</a>{run}{about}</p>'


def _notebooks(unit: Unit) -> str:
    """Links to the pages of the notebooks."""
    return " ".join(f'<a href="{page_of(unit.key, kind)}">{kind}</a>' for kind in KINDS)


def about(unit: Unit | None, hosts: Hosts = NOWHERE) -> str:
    """The end of a lecture's page: outcomes, notebooks, misconceptions and ideas."""
    if unit is None:
        return ""
    outcomes = "".join(f"<li>{escape(outcome)}</li>" for outcome in unit.outcomes.values())
    wrong = "".join(
        f"<li>{escape(each.belief)} <small>({_linked(each.source)})</small></li>" for each in unit.misconceptions
    )
    paths = [f"{unit.key}.ipynb", f"exercises/{unit.key}_exercise.ipynb"]
    found = [(path, link) for path in paths for link in Hosts(hosts.browser).links(path).values()]
    links = ", then ".join(f'<a href="{escape(link)}"><code>{path}</code></a>' for path, link in found)
    before = ", ".join(f'<a href="{key}.html">{key}</a>' for key in unit.prerequisites) or "nothing"
    return (
        f'<section class="about"><h2 id="after-this-unit">After this unit you can</h2><ul>{outcomes}</ul>'
        f"<p>{unit.takes}, {unit.points} points; before it: {before}. In JupyterLab (<code>python3 course lab"
        f"</code>): <code>{unit.key}.ipynb</code>, then <code>exercises/{unit.key}_exercise.ipynb</code>."
        f"{f' Without an installation: {links}.' if links else ''}</p>"
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
        address = word.rstrip(".,;:)")
        known = address.startswith("https://")
        named = address.removeprefix("https://").removeprefix("www.").rstrip("/")
        parts.append(f'<a href="{address}">{named}</a>{word[len(address) :]}' if known else word)
    return " ".join(parts)


def _covered(unit: Unit) -> str:
    """The ideas of the unit, and for each the cell where a student does something with it."""
    rows = "".join(
        f"<tr><td>{escape(seed.idea.partition(': ')[2])}</td><td>{_met(unit, seed)}</td></tr>" for seed in unit.seeds
    )
    return f'<div class="wide"><table><tr><th>idea</th><th>what you do</th></tr>{rows}</table></div>'


def _met(unit: Unit, seed: Seed) -> str:
    """What a student does with an idea, as a link to the cell, and the task in short."""
    place = met(unit, seed.met_in)
    if place is None:
        return ""
    asked = f"<small>{as_code(place.asked)}</small>" if place.asked else ""
    return f'{place.does} <a href="{place.address}"><code>{escape(place.name)}</code></a> {asked}'


def coverage(known: dict[str, Unit]) -> tuple[str, list[Section]]:
    """Every idea of the course with the cells where a student does something with it, and the page's contents."""
    taught: dict[str, list[str]] = {}
    for key, unit in known.items():
        for seed in unit.seeds:
            link = f'<a href="{key}.html">{unit.number:02} {escape(unit.title.partition(":")[0])}</a>:'
            taught.setdefault(seed.idea, []).append(f"<li>{link} {_met(unit, seed)}</li>")
    parts, sections = [COVERAGE], []
    for document, title in DOCUMENTS.items():
        sections.append(Section(2, slug(title), title))
        rows = "".join(
            f'<tr id="{idea_anchor(f"{document}: {words}")}"><td>{escape(words)}</td>'
            f'<td><ul>{"".join(taught.get(f"{document}: {words}", []))}</ul></td></tr>'
            for words in IDEAS[document]
        )
        head = "<tr><th>idea</th><th>unit, and what a student does there</th></tr>"
        parts.append(f'<h2 id="{slug(title)}">{escape(title)}</h2><div class="wide"><table class="ideas">{head}{rows}')
        parts.append("</table></div>")
    return "".join(parts), sections


COVERAGE = (
    "<h1>What the course covers</h1><p>The course is made from three documents. These are all of their ideas and "
    "terms, in our own words. Each leads to the cells in which a student <b>predicts</b> a result, <b>computes</b> it, "
    "<b>writes</b> the function, <b>runs own code</b> in the engine, or <b>changes</b> a picture that reacts.</p>"
)


def idea_anchor(idea: str) -> str:
    """The anchor of an idea on the page of what the course covers.

    >>> idea_anchor("000: JAX")
    'idea-000-jax'
    """
    return f"idea-{slug(idea)}"
