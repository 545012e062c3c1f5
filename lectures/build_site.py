"""Make the site: `python3 course site`, or `python -m lectures.build_site [--open] [FOLDER]`.

Each lecture becomes a page and slides; with them go the reference pages and the glossary.  Nothing is fetched: formulas
are MathML, pictures and views are made here by minigrad, and the program for slides (reveal.js) is in `vendor/`.  What
is made opens from the disk.
"""

from __future__ import annotations

import shutil
import sys
import webbrowser
import zipfile
from html import escape
from pathlib import Path

from minigrad.course.unit import Unit, units

from . import build_reference
from .api import api_page
from .markup import Lecture, as_page, as_slides

HERE = Path(__file__).resolve().parent
SITE = HERE.parent / "build" / "site"
REVEAL = HERE / "vendor" / "reveal.js-5.2.1.zip"
BRIDGE = (HERE / "static" / "bridge.js").read_text(encoding="utf-8")


def build(folder: Path = SITE) -> list[Path]:
    """Write the whole site, and say which files."""
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "live").mkdir(parents=True)
    for name in ("site.css", "deck.css", "page.js", "deck.js"):
        shutil.copyfile(HERE / "static" / name, folder / name)
    with zipfile.ZipFile(REVEAL) as archive:
        archive.extractall(folder / "reveal")
    known = units()
    for source in sorted(HERE.glob("[0-9][0-9]_*.md")):
        lecture = Lecture(source.stem, source.read_text(encoding="utf-8"))
        body = as_page(lecture) + _about(known.get(source.stem))
        _write(folder / f"{source.stem}.html", page(lecture.title, body, f"{source.stem}.slides.html"))
        _write(folder / f"{source.stem}.slides.html", deck(lecture.title, as_slides(lecture)))
        for name, text in lecture.live.items():
            _write(folder / "live" / name, text.replace("</body>", f"<script>{BRIDGE}</script></body>"))
    for name, text in reference().items():
        lecture = Lecture(name, text)
        body = as_page(lecture)
        _write(folder / f"{name}.html", page(lecture.title, body))
    _write(folder / "coverage.html", page("What the course covers", coverage(known)))
    _write(folder / "index.html", page("minigrad: the course", index(known)))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def reference() -> dict[str, str]:
    """The Markdown of the pages that are no lectures, by their names."""
    made = {name.removesuffix(".md"): text for name, text in build_reference.pages().items()}
    stored = {name: (HERE / f"{name}.md").read_text(encoding="utf-8") for name in ("glossary", "licences")}
    return made | {"api": api_page()} | stored


def page(title: str, body: str, slides: str = "") -> str:
    """A page around a body."""
    links = [("index.html", "course"), ("api.html", "API"), ("primitives.html", "primitives"),
             ("errors.html", "errors"), ("glossary.html", "glossary")]  # fmt: skip
    links += [(slides, "slides")] if slides else []
    bar = " · ".join(f'<a href="{address}">{text}</a>' for address, text in links)
    return (
        f'<!doctype html><html lang="en"><head>{_head(title)}<link rel="stylesheet" href="site.css"></head>'
        f'<body><nav>{bar}</nav><main>{body}</main><footer>Texts: CC BY 4.0, code: MIT; '
        f'<a href="licences.html">whose work this stands on</a></footer><script src="page.js"></script></body></html>\n'
    )


def deck(title: str, slides: str) -> str:
    """Slides around their sections."""
    styles = ("reveal/dist/reset.css", "reveal/dist/reveal.css", "deck.css")
    links = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    scripts = ("reveal/dist/reveal.js", "reveal/plugin/notes/notes.js", "deck.js")
    code = "".join(f'<script src="{script}"></script>' for script in scripts)
    return (
        f'<!doctype html><html lang="en"><head>{_head(title)}{links}</head><body><div class="reveal">'
        f'<div class="slides">{slides}</div></div>{code}</body></html>\n'
    )


def _head(title: str) -> str:
    size = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return f'<meta charset="utf-8">{size}<title>{escape(title)}</title>'


def _about(unit: Unit | None) -> str:
    """What follows a lecture on its page: what one can do after it, and where to go on."""
    if unit is None:
        return ""
    outcomes = "".join(f"<li>{escape(outcome)}</li>" for outcome in unit.outcomes.values())
    wrong = "".join(
        f"<li>{escape(each.belief)} <small>({escape(each.source)})</small></li>" for each in unit.misconceptions
    )
    before = ", ".join(f'<a href="{key}.html">{key}</a>' for key in unit.prerequisites) or "nothing"
    return (
        f'<section class="about"><h2>After this unit you can</h2><ul>{outcomes}</ul>'
        f"<p>{unit.minutes} minutes, {unit.points} points; before it: {before}. In JupyterLab (<code>python3 course lab"
        f"</code>): <code>{unit.key}.ipynb</code>, then <code>exercises/{unit.key}.ipynb</code>.</p>"
        f"<details><summary>What many believe before</summary><ul>{wrong}</ul></details>"
        f"<details><summary>Which ideas are met, and where</summary>{_covered(unit)}</details></section>"
    )


def _covered(unit: Unit) -> str:
    """The ideas that the course must cover, and the cell where a student predicts, computes or changes something."""
    rows = []
    for seed in unit.seeds:
        task = unit.tasks.get(seed.met_in)
        folder = "exercises/" if task is not None and task.strict else ""
        source, _, idea = seed.idea.partition(": ")
        cells = (idea, source, f"{folder}{unit.key}.ipynb", seed.met_in)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>idea</th><th>document</th><th>notebook</th><th>task or cell</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def index(known: dict[str, Unit]) -> str:
    """The list of units."""
    rows = []
    for key, unit in known.items():
        rows.append(
            f'<tr><td>{unit.number:02}</td><td><a href="{key}.html">{escape(unit.title)}</a> '
            f'<a class="small" href="{key}.slides.html">slides</a><br>{escape(unit.question)}</td>'
            f"<td>{unit.minutes} min</td></tr>"
        )
    return (
        "<h1>How machine-learning frameworks work</h1><p>A course with minigrad, a framework that is small enough to "
        "read. Each unit is a lecture, a notebook to watch, and an exercise that runs in the real engine.</p>"
        f"<table class='units'>{''.join(rows)}</table>"
        '<p>Where each idea is met: <a href="coverage.html">what the course covers</a>.</p>'
    )


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
    return f"<h1>What the course covers</h1><table>{head}{''.join(rows)}</table>"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Build, and open it in a browser if asked to."""
    folders = [Path(each) for each in arguments if not each.startswith("--")]
    folder = (folders or [SITE])[0]
    files = build(folder)
    print(f"{len(files)} files; open {folder / 'index.html'}")
    if "--open" in arguments:
        webbrowser.open((folder / "index.html").resolve().as_uri())


if __name__ == "__main__":
    main(sys.argv[1:])
