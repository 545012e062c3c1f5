"""The progress of a student: kept in a file of the workspace, shown as a table, printed as a report.

The file is `course-progress.json`, in the folder of the notebook or in a folder above it.  Without a file, progress
lasts as long as the kernel: a check never creates the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from minigrad.support.files import locked, write_whole
from minigrad.support.table import counted

from .tasks import Task
from .unit import Unit, parts

FILE = "course-progress.json"
REPORT = "report.html"
LEVELS_UP = 3


Tasks = dict[str, dict[str, Any]]
Change = Callable[["Progress"], None]


class Progress:
    """The record of one student's work: the name, and the result of each task.

    Several notebooks, each in its own process, share the file.  Each change is therefore made to the current content of
    the file, under a lock.  A change that could not be written is repeated before the next one.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.unit: Unit | None = None  # of this notebook: shown first, and its tasks one by one
        self.student = ""
        self.tasks: Tasks = {}
        self.others: dict[str, Any] = {}  # entries of another version of the course
        self.unwritten: list[Change] = []
        self.aside: Path | None = None  # where a damaged file has been moved to
        if path is not None and not self._read(path) and path.exists():
            with locked(path):
                self._read_or_put_aside(path)

    def _read(self, path: Path) -> bool:
        """Read the file.  False, without a change, if it is missing or damaged."""
        if not path.exists():
            return False
        try:
            stored = json.loads(path.read_text(encoding="utf-8").strip() or "{}")
            tasks = {name: {"tries": 0, **known} for name, known in stored.pop("tasks", {}).items()}
            if not all(type(known["tries"]) is int for known in tasks.values()):
                return False
            self.student, self.tasks, self.others = str(stored.pop("student", "")), tasks, stored
        except (ValueError, AttributeError, TypeError, RecursionError):
            return False
        return True

    def _read_or_put_aside(self, path: Path) -> bool:
        """Read the file; rename it if it is damaged, so that it can be repaired."""
        if self._read(path):
            return True
        if path.exists():
            self.aside = free_name(path.with_suffix(".unreadable.json"))
            path.replace(self.aside)
        return False

    def change(self, change: Change) -> None:
        """Apply a change to the current content of the file, and write it."""
        if self.path is None:
            return change(self)
        self.unwritten.append(change)
        made = False
        try:
            with locked(self.path):
                from_file = self._read_or_put_aside(self.path)
                for each in self.unwritten if from_file else [change]:
                    each(self)
                made = True
                self._write(self.path)
        finally:
            if not made:  # the change lasts as long as the kernel
                change(self)
        self.unwritten.clear()

    def _write(self, path: Path) -> None:
        content = {**self.others, "student": self.student, "tasks": self.tasks}
        write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def note(
        self, task: Task, passed: bool, source: str = "", said: str = "", uses: dict[str, Any] | None = None
    ) -> None:
        """Record a try.  A passed task stays passed; the last right answer is kept, with what it uses."""
        when = _now()

        def add(progress: Progress) -> None:
            known = progress.tasks.setdefault(task.name, {"tries": 0})
            if "passed" not in known:
                known["tries"] += 1
            if passed:
                known |= {"passed": known.get("passed") or when, "points": task.points, "variant": task.student}
                known |= {"answer": source, "uses": uses or {}}
            if said and "first" not in known:
                known["first"] = said

        self.change(add)

    def name(self, student: str) -> None:
        """Record the student's name."""
        if student and student != self.student:
            self.change(lambda progress: setattr(progress, "student", student))

    def take_in(self, other: Progress) -> None:
        """Add the tasks of another record that this one does not have."""
        tasks, student = other.tasks, other.student

        def add(progress: Progress) -> None:
            progress.tasks = {**tasks, **progress.tasks}
            progress.student = student or progress.student

        self.change(add)

    def passed(self, task: str) -> bool:
        """Whether a task is passed."""
        return "passed" in self.tasks.get(task, ())

    def points(self, unit: Unit, further: bool = False) -> int:
        """The points of the passed tasks of a unit, or of its further tasks, which come on top."""
        return sum(task.points for name, task in unit.tasks.items() if self.passed(name) and task.further == further)

    def score(self, unit: Unit) -> str:
        """The points of a unit in words; where its tasks have none, how many are passed."""
        if unit.points:
            more = self.points(unit, further=True)
            return f"{self.points(unit)} of {unit.points} points" + (f", and {more} on top" if more else "")
        return f"{sum(map(self.passed, unit.tasks))} of {counted(len(unit.tasks), 'task')}"

    def rows(self) -> list[tuple[str, str, str, int, int, int]]:
        """For each task of each part of the course: unit, task, sign, tries, points, most points."""
        found = []
        for unit in parts().values():
            for name, task in unit.tasks.items():
                known = self.tasks.get(name, {})
                sign = "✓" if "passed" in known else "✗" if known else "○"
                points = task.points if "passed" in known else 0
                found.append((unit.key, name, sign, known.get("tries", 0), points, task.points))
        return found

    def __str__(self) -> str:
        lines = []
        for unit in sorted(parts().values(), key=lambda unit: unit != self.unit):
            lines.append(f"{unit.key}: {self.score(unit)}")
            for key, name, sign, tries, points, most in self.rows():
                if key == unit.key and self.unit in (unit, None):
                    times = counted(tries, "try", "tries") if tries else "not tried yet"
                    worth = f"{points} of {most}" if most else ""
                    lines.append(f"  {sign} {name:24} {worth:6}   {times}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def report(self, path: Path | None = None) -> Path:
        """Write a page to print or to hand in: tasks, tries and points, with the answers below."""
        folder = self.path.parent if self.path is not None else Path.cwd()
        target = path or folder / REPORT
        write_whole(target, report_page(self))
        return target


def free_name(path: Path, word: str = "") -> Path:
    """A path that does not exist: `work.json`, or else `work (2).json`; with a word, `work (word 2).json`.

    >>> free_name(Path("/nowhere/work.json")).name
    'work.json'
    """
    number, free = 2, path
    while free.exists() or free.is_symlink():
        free = path.with_name(f"{path.stem} ({word}{number}){path.suffix}")
        number += 1
    return free


def found() -> Path | None:
    """The progress file of this workspace, if there is one."""
    here = Path.cwd()
    return next((p / FILE for p in [here, *here.parents][: LEVELS_UP + 1] if (p / FILE).exists()), None)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M")


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 48em; margin: 2em auto; padding: 0 1em; color: #111 }
table { border-collapse: collapse; width: 100% } th, td { border-bottom: 1px solid #ccc; padding: .3em .6em }
th, td { text-align: left }
td.n, th.n { text-align: right } pre { background: #f4f4f4; padding: .6em; white-space: pre-wrap; break-inside: avoid }
h2 { break-after: avoid } footer { margin-top: 2em; color: #555; font-size: 13px }
@media print { body { margin: 0; max-width: none } }
"""


def report_page(progress: Progress) -> str:
    """The report as a page of HTML."""
    who = escape(progress.student or "no name given")
    body = [f"<h1>minigrad course: {who}</h1>"]
    total = sum(unit.points for unit in parts().values())
    body.append(f"<p>{sum(map(progress.points, parts().values()))} of {total} points.</p>")
    for unit in parts().values():
        body.append(f"<h2>{escape(unit.heading)}: {progress.score(unit)}</h2>")
        body.append(_table([row for row in progress.rows() if row[0] == unit.key], progress.tasks))
        body += [_answer(name, progress.tasks[name]) for name in unit.tasks if progress.passed(name)]
    body.append(
        "<footer>Written on the student's own machine, from the results of its checks. For grades, run the notebook "
        "again, by hand or with nbgrader.</footer>"
    )
    head = f'<meta charset="utf-8"><title>{who}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>' + "\n".join(body) + "</body></html>\n"


def _table(rows: list[tuple[str, str, str, int, int, int]], known: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ["<table><tr><th></th><th>task</th><th>done</th><th>first answer</th><th class=n>tries</th>"
             "<th class=n>points</th></tr>"]
    for _, name, sign, tries, points, most in rows:
        about, worth = known.get(name, {}), f"{points} of {most}" if most else ""
        words = (sign, name, about.get("passed", ""), about.get("first", ""))
        cells = "".join(f"<td>{escape(str(word))}</td>" for word in words)
        lines.append(f"<tr>{cells}<td class=n>{tries}</td><td class=n>{worth}</td></tr>")
    return "".join(lines) + "</table>"


def _answer(name: str, known: Mapping[str, Any]) -> str:
    variant = f" (variant of {escape(str(known['variant']))})" if known.get("variant") else ""
    return f"<h3>{escape(name)}{variant}</h3><pre>{escape(str(known.get('answer', '')))}</pre>"
