"""Grades a folder of submitted exercises: `python3 course grade FOLDER [GRADES.csv]`.

Each folder in FOLDER holds the notebooks of one student, at any depth; a notebook that lies in FOLDER itself is a
student of its own.  Each notebook runs in a process of its own with limits.  The course that is installed here checks
its tasks, with more cases than in the student's notebook; checks in the notebook itself are not run.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

from .apart import SANDBOXES, run_apart, sandbox_for, taken_order
from .compare import plain
from .feedback import Feedback
from .limits import at_most
from .session import SESSION, check
from .tasks import Task
from .unit import Unit, units
from .unit import parts as all_parts

CELL_SECONDS, NOTEBOOK_SECONDS = 60.0, 300.0
LARGEST, DEEPEST = 20 << 20, 20  # bytes of a notebook, folders above it
LONGEST, LONGEST_VALUE = 200, 50_000  # letters of a name or message, and of an answer
CONTAINERS: dict[str, type[Any]] = {"dict": dict, "tuple": tuple, "list": list, "set": set}
Cell = tuple[str, str, bool]
Run = Callable[..., tuple[list[dict[str, Any]], str]]


class Grade(NamedTuple):
    """What came of one task of one student."""

    student: str  # the name of the folder or notebook
    name: str  # the name that the student gave in the notebook, on which the numbers depend
    unit: str
    task: str
    points: int
    said: str  # why there are no points

    @property
    def most(self) -> int:
        """The points of the task that count as the unit's: none below "Further", where points come on top."""
        task = all_parts()[self.unit].tasks[self.task]
        return 0 if task.further else task.points


def submissions(folder: Path) -> Iterator[tuple[str, Path]]:
    """The student and the path of each notebook in a folder."""
    found = []
    for place, folders, files in os.walk(folder):
        parts = Path(place).relative_to(folder).parts
        found += [Path(place, name) for name in folders + files if name.endswith(".ipynb") and name[0] != "."]
        folders[:] = [name for name in folders if name[0] != "." and len(parts) < DEEPEST]
    for path in sorted(found):
        parts = path.relative_to(folder).parts
        yield (parts[0] if len(parts) > 1 else path.stem), path


def grade(
    folder: Path, seconds: float = NOTEBOOK_SECONDS, cell_seconds: float = CELL_SECONDS,
    announce: Callable[[Path], object] = str, sandbox: str | None = None,
) -> list[Grade]:
    """Run all submissions, and return a grade for each task with points; `announce` gets each path before it runs."""
    sandbox = sandbox_for(folder) if sandbox is None else sandbox
    run = partial(run_apart, __spec__.name, seconds=seconds, sandbox=sandbox, hidden=folder.resolve())
    grades = []
    for student, path in submissions(folder):
        announce(path)
        grades += _graded(student, path, cell_seconds, run)
    return grades


def _graded(student: str, path: Path, cell_seconds: float, run: Run) -> list[Grade]:
    cells = _cells(path)
    unit = unit_of(path, cells or [])
    if unit is None:
        return []
    name, said, ended = _answered(unit, cells, cell_seconds, run)
    words = {key: said.get(key, ended) for key in counted(unit)}
    points = {key: 0 if why else unit.tasks[key].points for key, why in words.items()}
    return [Grade(student, name, unit.key, key, points[key], why) for key, why in words.items()]


def counted(unit: Unit) -> dict[str, type[Task]]:
    """The tasks that a table of grades has: those with points; of the project, which has none, its form."""
    return {name: task for name, task in unit.tasks.items() if task.points} or unit.tasks


def _answered(unit: Unit, cells: list[Cell] | None, seconds: float, run: Run) -> tuple[str, dict[str, str], str]:
    """The name in a notebook, what is said to its answers ("" to right ones) and to tasks that were not reached.

    The process of a notebook may say anything.  That an answer is right counts only for a function, which cannot be
    handed over.  Values are checked in a second process, which does not run the notebook.
    """
    if cells is None:
        return "", {}, "the notebook cannot be read"
    lines, ended = run({"unit": unit.key, "cells": cells, "cell_seconds": seconds})
    name = str(lines[-1].get("name", ""))[:LONGEST] if lines else ""
    values = {task: line["value"] for task, line in _by_task(unit, lines, "value") if unit.tasks[task].kind == "value"}
    said = {task: str(line["said"])[:LONGEST] for task, line in _by_task(unit, lines, "said")}
    said = {task: words for task, words in said.items() if words or unit.tasks[task].kind == "function"}
    if values:
        lines, late = run({"unit": unit.key, "student": name, "values": values})
        said |= dict.fromkeys(values, late) | {task: line["said"] for task, line in _by_task(unit, lines, "said")}
    return name, said, ended


def _by_task(unit: Unit, lines: list[dict[str, Any]], entry: str) -> list[tuple[str, dict[str, Any]]]:
    """The lines that have an entry, with their tasks."""
    return [(str(line["task"]), line) for line in lines if entry in line and str(line.get("task")) in unit.tasks]


def unit_of(path: Path, cells: Sequence[Cell]) -> Unit | None:
    """The unit of a submission, by the tasks of its cells, or else by its name; None where there is none."""
    for _, task, _ in cells:
        for unit in units().values():
            if task in unit.tasks:
                return unit
    named = re.match(r"\d\d_\w+?(?=_exercise)|project", path.stem)
    return all_parts().get(named.group()) if named else None


def _cells(path: Path) -> list[Cell] | None:
    """The cells with code: the code, the task by nbgrader's name of the cell, whether the cell checks it.

    None for what is not a notebook.  A link is none, because it may lead to the notebook of another student.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            return [_cell(cell) for cell in cells if cell["cell_type"] == "code"]
    return None


def _cell(cell: dict[str, Any]) -> Cell:
    about = cell.get("metadata", {}).get("nbgrader", {})
    task = str(about.get("grade_id", "")).removeprefix("check-").replace("-", "_")
    return "".join(cell["source"]), task, bool(about.get("grade"))


# ---- in a process of its own -----------------------------------------------------------------------------------------


def carry_out() -> None:
    """Run the cells of a notebook, or check the values that such a process has handed over: the work of a process."""
    order, hand_over = taken_order()
    unit = all_parts()[order["unit"]]
    if "values" in order:
        SESSION.progress.student = order["student"]
        for task, value in order["values"].items():
            hand_over(task=task, said=_said(task, unpacked(value)))
    else:
        _run_cells(unit, order["cells"], order["cell_seconds"], hand_over)
    os._exit(0)  # a thread of the notebook may go on for ever


def _run_cells(unit: Unit, cells: list[Cell], seconds: float, hand_over: Callable[..., None]) -> None:
    """Run the cells of a notebook, and hand over what came of each task where the notebook checks it."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    left = {name: task.kind for name, task in counted(unit).items()}
    for source, task, checks in [*cells, *[("", name, True) for name in left]]:  # also those whose cells are missing
        if not checks:
            with contextlib.suppress(BaseException), at_most(seconds):
                shell.run_cell(source, store_history=True)
        elif task in left:
            hand_over(task=task, name=SESSION.student, **_outcome(task, left.pop(task), shell.user_ns))


def _outcome(task: str, kind: str, names: dict[str, Any]) -> dict[str, Any]:
    """The value of a task, or what the check says to a function."""
    if task not in names:
        return {"said": "not written yet"}
    if kind == "function":
        return {"said": _said(task, names[task])}
    try:
        return {"value": packed(names[task])}
    except BaseException:  # of a class of the student's own, or a list that contains itself
        return {"said": "the answer is too long, or it is not made of numbers, texts and lists"}


def packed(value: Any) -> str:
    """A value of numbers, texts and containers as a text.  Arrays become lists.

    >>> packed((1, [2.0, "b"])), unpacked(packed((1, [2.0, "b"])))
    ('{"tuple": [1, {"list": [2.0, "b"]}]}', (1, [2.0, 'b']))
    """
    text = json.dumps(_packed(value))
    if len(text) > LONGEST_VALUE:
        raise ValueError(len(text))
    return text


def _packed(value: Any) -> Any:
    value = plain(value)
    value = value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, range) else value
    for kind in CONTAINERS.values():
        if isinstance(value, kind):
            return {kind.__name__: [_packed(part) for part in (value.items() if kind is dict else value)]}
    if isinstance(value, str | int | float | EllipsisType | None):
        return None if value is ... else value
    raise TypeError(type(value))


def unpacked(text: str) -> Any:
    """The value that `packed` packed."""
    return json.loads(text, object_hook=lambda kind: next(CONTAINERS[name](parts) for name, parts in kind.items()))


def _said(task: str, answer: Any) -> str:
    """Nothing for a right answer, otherwise the first line of the feedback."""
    try:
        check(task, answer, hidden=True)
    except Feedback as feedback:
        return feedback.message.partition("\n")[0]
    except BaseException as error:
        return f"stopped with {type(error).__name__}"
    return ""


# ---- the table -------------------------------------------------------------------------------------------------------


def table(grades: Sequence[Grade]) -> list[list[str]]:
    """A row for each student: points for each task, their sum, the most points, and why points are missing.

    >>> table([Grade("ada", "Ada", "00_start", "gradient_of_a", 0, "not answered yet")])[1]
    ['ada', 'Ada', '0', '0', '1', 'gradient_of_a: not answered yet']
    """
    tasks = list(dict.fromkeys(each.task for each in sorted(grades, key=lambda each: each.unit)))
    rows = [["student", "name in the notebook", *tasks, "sum", "of", "notes"]]
    for student in dict.fromkeys(each.student for each in grades):
        own = [each for each in grades if each.student == student]
        best = {each.task: max(x.points for x in own if x.task == each.task) for each in own}
        notes = "; ".join(f"{each.task}: {each.said or 'complete'}" for each in own if not best[each.task])
        names = ", ".join(dict.fromkeys(each.name for each in own if each.name))
        points = [str(best.get(task, "")) for task in tasks]
        most = sum({each.task: each.most for each in own}.values())
        rows.append([harmless(student), harmless(names), *points, str(sum(best.values())), str(most), harmless(notes)])
    return rows


def harmless(text: object) -> str:
    """A student's text for a terminal or a spreadsheet, which must neither obey nor compute it.

    >>> harmless("Jürgen"), harmless("=1+2"), harmless("red: \x1b[31m")
    ('Jürgen', "'=1+2", 'red: \\\\x1b[31m')
    """
    words = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))
    return f"'{words}" if words.startswith(("=", "+", "-", "@")) else words


def main(arguments: Sequence[str]) -> int:
    """Grade a folder and write the table; with `--apart`, run one notebook."""
    if arguments == ["--apart"]:
        carry_out()
    if not 1 <= len(arguments) <= 2 or not Path(arguments[0]).is_dir():
        print("usage: python3 course grade FOLDER [GRADES.csv]; FOLDER has a folder for each student", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) == 2 else folder / "grades.csv"
    box = sandbox_for(folder)
    print(SANDBOXES[box], flush=True)
    grades = grade(folder, announce=lambda path: print(f"{harmless(path)} ...", flush=True), sandbox=box)
    if not grades:
        print(f"There is no exercise in {folder}.", file=sys.stderr)
        return 1
    rows = table(grades)
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    for student, name, *_, points, most, _ in rows[1:]:
        print(f"{student}: {points} of {most}" + ("" if name else " (no name in the notebook)"))
    print(f"The table is {target}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
