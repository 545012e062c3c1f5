"""The notebooks as pages to read, without results: every cell has an address, and `met` finds the cell of an idea."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from minigrad_course.tasks import FunctionTask, Prediction, Task
from minigrad_course.unit import Unit

from .frames import Section
from .hosts import NOWHERE, Hosts
from .markup import Lecture, coloured, parser

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# What a notebook's page is called, by the folder and the end of the notebook's name.
KINDS = {"demo": ("", ""), "exercise": ("exercises/", "_exercise")}
NOTEBOOK = re.compile(r"\]\((?:\.\./|exercises/)?(\d\d_\w+?|project\w*)(_exercise)?\.ipynb\)")
ADDRESS = re.compile(r"\]\([^)]*\)|<?https?://[^\s>]*>?")
MARKS = str.maketrans("", "", "`*#|$[]")  # of Markdown
SHOWN = re.compile(r'^course\.task\("(\w+)"\)$')


class Cell(NamedTuple):
    """A cell of a notebook."""

    name: str
    code: bool
    source: str
    grade: str  # nbgrader's name of it
    changed: bool  # whether a student changes something: its output is a view of minigrad's, or its tag says "change"

    @property
    def task(self) -> str:
        """The task whose text the cell shows, or nothing."""
        found = SHOWN.match(self.source.strip())
        return found[1] if found else ""


class Place(NamedTuple):
    """A cell in which a student does something."""

    does: str
    name: str  # of the task, or of the cell
    address: str
    asked: str  # the task in short, or nothing


@cache
def cells(key: str, kind: str) -> tuple[Cell, ...]:
    """The cells of a unit's demo or exercise, as they are stored."""
    folder, end = KINDS[kind]
    path = NOTEBOOKS / f"{folder}{key}{end}.ipynb"
    return tuple(map(_cell, json.loads(path.read_text(encoding="utf-8"))["cells"]))


def _cell(stored: dict[str, Any]) -> Cell:
    view = any("image/svg+xml" in output.get("data", {}) for output in stored.get("outputs", ()))
    changed = view or "change" in stored["metadata"].get("tags", ())
    grade = stored["metadata"].get("nbgrader", {}).get("grade_id", "")
    return Cell(stored["id"], stored["cell_type"] == "code", "".join(stored["source"]), grade, changed)


def page_of(key: str, kind: str) -> str:
    """The address of a notebook's page."""
    return f"{key}.{kind}.html"


def met(unit: Unit, met_in: str) -> Place | None:
    """Where a student predicts, computes, writes or changes what a task or cell is about; None if that is nowhere."""
    task = unit.tasks.get(met_in)
    for kind in KINDS:
        for cell in cells(unit.key, kind):
            does = _does_with(task, cell) if task else _does(unit, kind, cell) if cell.name == met_in else ""
            if does:
                name = met_in if task else met_in.partition("-")[2]
                asked = " ".join((task.__doc__ or "").split("\n\n")[0].split()) if task else ""
                return Place(does, name, f"{page_of(unit.key, kind)}#{cell.name}", asked)
    return None


def _does_with(task: type[Task], cell: Cell) -> str:
    """What a student does where a cell asks for the answer of a task."""
    answered = cell.source.startswith(f"{task.name} = ") and f'course.check("{task.name}")' in cell.source
    asks = answered or cell.grade == task.name
    if not asks or not cell.code:
        return ""
    return "predicts" if issubclass(task, Prediction) else "writes" if issubclass(task, FunctionTask) else "computes"


def _does(unit: Unit, kind: str, cell: Cell) -> str:
    """What a student does in a cell that asks for no answer: nothing, where it only shows something."""
    if not cell.code:
        return ""
    own = any(re.search(rf"\b{name}\b", cell.source) for name in unit.tasks)
    return "runs own code" if kind == "exercise" and own else "changes" if cell.changed else ""


def notebooks() -> list[tuple[str, str]]:
    """All notebooks by key and kind, in order: those of the units, and others."""
    found = [
        (path.stem.removesuffix(end), kind)
        for kind, (folder, end) in KINDS.items() for path in (NOTEBOOKS / folder).glob("*.ipynb")
    ]
    return sorted(found)


def notebook_page(
    key: str, kind: str, tasks: dict[str, type[Task]], hosts: Hosts = NOWHERE
) -> tuple[str, str, list[Section]]:
    """The title, the body and the contents of a notebook's page, with a button for each of the hosts."""
    md = parser(Lecture(key, ""))
    folder, end = KINDS[kind]
    others = "".join(
        f'<a href="{page_of(key, each)}">{each}</a>' for name, each in notebooks() if name == key and each != kind
    )
    back, home = ("Lecture", key) if key[:1].isdigit() else ("Page", key.partition("_")[0])
    path = f"{folder}{key}{end}.ipynb"
    about = (
        f'<p class="opening"><a class="button" href="{home}.html">{back}</a>{hosts.buttons(path)}{others}'
        f"<span>To run these cells on your machine: <code>python3 course lab</code>, then <code>{path}</code>. This "
        f"page has no results.{hosts.first_on_colab}</span></p>\n"
    )
    parts = []
    for cell in cells(key, kind):
        body = coloured(cell.source, "python") if cell.code else md.render(NOTEBOOK.sub(_linked, cell.source))
        if cell.task in tasks:
            body += f'<div class="task">{md.render(tasks[cell.task]().text())}</div>'
        parts.append(f'<section class="cell" id="{escape(cell.name)}">\n{body}</section>\n')
    first, *sections = [section for section, _ in sections_of(key, kind)]
    return first.text, "".join(parts).replace("</h1>\n", f"</h1>\n{about}", 1), sections


def sections_of(key: str, kind: str) -> list[tuple[Section, str]]:
    """The headings of a notebook, each with the text below it."""
    found: list[tuple[Section, str]] = []
    for cell in cells(key, kind):
        for line in () if cell.code else cell.source.splitlines():
            marks, _, words = line.partition(" ")
            if marks in ("#", "##", "###"):
                found.append((Section(len(marks), cell.name, words.replace("`", "").replace("*", "")), ""))
            elif found:
                found[-1] = found[-1][0], f"{found[-1][1]} {_without_marks(line)}".strip()
    return found


def _without_marks(line: str) -> str:
    """A line of Markdown without its marks and the addresses of its links."""
    return ADDRESS.sub("", line).translate(MARKS)


def _linked(link: re.Match[str]) -> str:
    """A link to a notebook as a link to its page."""
    return f"]({page_of(link[1], 'exercise' if link[2] else 'demo')})"
