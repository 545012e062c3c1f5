"""Make the site: `python3 course site`, or `python -m lectures.site.build_site`, with the same options.

Each lecture becomes a page and slides; the reference pages and the glossary come with them.  Nothing is downloaded:
formulas are MathML, pictures and views are made here by minigrad, and reveal.js and the fonts are in `vendor/`.  The
site opens from the disk.

With `--live`, readers edit and run the `try` cells of the pages in their browsers.  `--pyodide` is a folder with
Python for browsers, which becomes a part of the site, or an address that the pages load it from.  `--browser` is the
address of the folder that `python3 course browser` makes: each unit then links to its notebooks there.  With
`--repository OWNER/NAME`, or `OWNER/NAME@BRANCH`, each notebook's page has buttons for Colab and Binder.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import webbrowser
import zipfile
from argparse import ArgumentParser
from contextlib import chdir
from hashlib import sha256
from pathlib import Path

from minigrad.core.programs import eager_programs
from minigrad_course.unit import units

from . import build_reference
from .api import api_page
from .browser import live
from .browser.pyodide import ADDRESS, PyodideError
from .cells import notebook_page, notebooks, page_of
from .frames import LECTURES, NAME, deck, page, texts
from .hosts import NOWHERE, Hosts
from .house import picture, rooms_page
from .howto import FIRST, howtos, list_of_howtos
from .instructors import instructors, syllabus
from .markup import Lecture, as_page, as_slides, slug
from .museum import museum
from .overview import about, coverage, index, opening, ways
from .search import search_index
from .terms import with_terms

HERE = Path(__file__).resolve().parent
SITE = LECTURES.parent / "build" / "site"
STATIC = HERE / "static"
VENDOR = HERE / "vendor"
REVEAL = VENDOR / "reveal.js-5.2.1.zip"
TABLES = ("primitives", "glossary", "coming_from")  # pages whose rows have anchors
FONTS = ("source-sans-3-5.3.0.zip", "source-code-pro-5.3.0.zip", "stix-two-math-5.3.0.zip")


@eager_programs(False)  # each operation on its own, as the lectures explain it
def build(
    folder: Path = SITE, editable: bool = False, pyodide: str | None = None, hosts: Hosts = NOWHERE
) -> list[Path]:
    """Write the whole site, and return its files.

    If it is `editable`, readers can run cells, with Pyodide from a folder or an address.  `hosts` are where the
    notebooks can be opened.
    """
    python = live.files_of(pyodide) if editable else []
    folder = folder.resolve()
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "live").mkdir(parents=True)
    for name in ("fonts.css", "colours.css", "site.css", "deck.css", "page.js", "search.js", "deck.js"):
        shutil.copyfile(STATIC / name, folder / name)
    _unpack(REVEAL, folder / "reveal")
    for name in FONTS:
        _unpack(VENDOR / name, folder / "fonts" / name.rpartition("-")[0])
    known = units()
    read: dict[str, Lecture] = {}
    for source in sorted(LECTURES.glob("[0-9][0-9]_*.md")):
        key = source.stem
        lecture = Lecture(key, source.read_text(encoding="utf-8"), prose=True, editable=editable)
        read[key] = lecture
        lectures_page(folder, lecture, hosts)
        _write(folder / f"{key}.slides.html", deck(key, lecture.title, as_slides(lecture), lecture.chapters))
        _write_views(folder, lecture)
    for name, text in reference().items():
        read[name] = _text_page(folder, name, text, editable)
    body, contents = rooms_page(known)
    _write(folder / "rooms.html", page("rooms", "The map", body, contents, "reference"))
    body, contents = api_page()
    _write(folder / "api.html", page("api", "API", body, contents, "reference api"))
    tasks = {name: task for unit in known.values() for name, task in unit.tasks.items()}
    for key, kind in notebooks():
        title, body, contents = notebook_page(key, kind, tasks, hosts)
        body = with_terms(body)
        _write(folder / page_of(key, kind), page(key, f"{title} · {kind}", body, contents, "lecture"))
    body, contents = coverage(known)
    _write(folder / "coverage.html", page("coverage", "What the course covers", body, contents, "reference"))
    first = Lecture("index", (LECTURES / "index.md").read_text(encoding="utf-8"), editable=editable)
    body = index(known, as_page(first, rules=True), picture(known, brief=True), hosts)
    _write(folder / "index.html", page("index", NAME, body, kind="first"))
    _write_views(folder, first)
    _write(folder / "search-index.js", search_index(known, read))
    if editable:
        live.write(folder, python)
    _with_digests(folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def lectures_page(folder: Path, lecture: Lecture, hosts: Hosts = NOWHERE) -> None:
    """Write the page of a lecture."""
    known = units()
    unit = known.get(lecture.name)
    body = with_terms(as_page(lecture)).replace("</h1>\n", f"</h1>\n{opening(unit, lecture.name, hosts)}\n", 1)
    body += about(unit, hosts) + (ways(lecture.name, known) if lecture.name in known else "")
    _write(folder / f"{lecture.name}.html", page(lecture.name, lecture.title, body, lecture.sections[1:], "lecture"))


def _text_page(folder: Path, name: str, text: str, editable: bool) -> Lecture:
    """Write a page that is neither a lecture nor a notebook.  What its code writes into files is then removed."""
    written = name in texts() or name in howtos()
    lecture = Lecture(name, text, prose=written, editable=editable)
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        body = with_anchors(as_page(lecture)) if name in TABLES else as_page(lecture)
    kind = "reference" if name in TABLES or not written else "lecture"
    _write(folder / f"{name}.html", page(name, lecture.title, body, lecture.sections[1:], kind))
    _write_views(folder, lecture)
    return lecture


def reference() -> dict[str, str]:
    """The Markdown of the other pages, by their names."""
    made = {name.removesuffix(".md"): text for name, text in build_reference.pages().items()}
    stored = {name: (LECTURES / f"{name}.md").read_text(encoding="utf-8") for name in texts()}
    written = {"museum": museum(), "instructors": instructors(), "syllabus": syllabus(), FIRST: list_of_howtos()}
    return stored | made | written | howtos()


def with_anchors(body: str) -> str:
    """Give each row of a table an anchor: the name of the primitive, or the word of the glossary."""

    def row(found: re.Match[str]) -> str:
        cell = found[1]
        return f'<tr id="{slug(re.sub(r"<.*?>", "", cell).partition("(")[0])}">\n<td>{cell}</td>'

    return re.sub(r"<tr>\n<td>(.*?)</td>", row, body)


def _with_digests(folder: Path) -> None:
    """Address scripts and styles by their content too, so that no browser shows a new page with an old script."""
    parts = [*folder.glob("*.js"), *folder.glob("*.css")]
    digests = {path.name: sha256(path.read_bytes()).hexdigest()[:8] for path in parts}
    address = re.compile(rf'(src|href)="({"|".join(map(re.escape, digests))})"')
    for path in folder.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        _write(path, address.sub(lambda found: f'{found[1]}="{found[2]}?{digests[found[2]]}"', text))


def _write_views(folder: Path, lecture: Lecture) -> None:
    for name, text in lecture.live.items():
        _write(folder / "live" / name, text)


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Build the site, and open it in a browser with `--open`."""
    parser = ArgumentParser(prog="course site", description="Make the lectures and the reference as pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=SITE)
    parser.add_argument("--open", action="store_true", help="open the site in a browser")
    parser.add_argument("--live", action="store_true", help="let readers edit and run cells of the pages")
    where = f"Python for browsers: a folder, or an address that readers load it from, such as {ADDRESS}"
    parser.add_argument("--pyodide", metavar="FOLDER_OR_ADDRESS", help=where)
    parser.add_argument("--browser", metavar="URL", default="", help="where the folder of `course browser` is")
    parser.add_argument("--repository", metavar="OWNER/NAME", default="", help="on GitHub, for Colab and Binder")
    asked = parser.parse_args(arguments)
    hosts = Hosts(asked.browser.rstrip("/"), asked.repository)
    try:
        files = build(asked.folder, asked.live or asked.pyodide is not None, asked.pyodide, hosts)
    except PyodideError as error:
        sys.exit(str(error))
    print(f"{len(files)} files; open {asked.folder / 'index.html'}")
    if asked.open:
        webbrowser.open((asked.folder / "index.html").resolve().as_uri())


if __name__ == "__main__":
    main(sys.argv[1:])
