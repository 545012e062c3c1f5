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
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .feedback import Feedback
from .limits import at_most
from .session import SESSION, check
from .tasks import Task
from .unit import Unit, units

CELL_SECONDS, NOTEBOOK_SECONDS = 60.0, 300.0
MEMORY, FILES = 8 << 30, 100 << 20  # bytes: of the process, and of a file that it writes


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
        """The points of the task."""
        return units()[self.unit].tasks[self.task].points


def submissions(folder: Path) -> Iterator[tuple[str, Path]]:
    """The student and the path of each notebook in a folder."""
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        if not any(part.startswith(".") for part in parts):
            yield (parts[0] if len(parts) > 1 else path.stem), path


def grade(
    folder: Path, seconds: float = NOTEBOOK_SECONDS, cell_seconds: float = CELL_SECONDS,
    announce: Callable[[Path], object] = str,
) -> list[Grade]:
    """Run all submissions, and return a grade for each task with points; `announce` gets each path before it runs."""
    grades = []
    for student, path in submissions(folder):
        announce(path)
        grades += _graded(student, path, seconds, cell_seconds)
    return grades


def _graded(student: str, path: Path, seconds: float, cell_seconds: float) -> list[Grade]:
    unit = unit_of(path)
    if unit is None:
        return []
    found, ended = _run_apart(path, seconds, cell_seconds)
    name = next((line["name"] for line in found if "name" in line), "")
    said = {line["task"]: line["said"] for line in found if "task" in line}
    tasks = {key: task for key, task in unit.tasks.items() if task.points}
    return [
        Grade(student, name, unit.key, key, task.points if said.get(key, ended) == "" else 0, said.get(key, ended))
        for key, task in tasks.items()
    ]


def unit_of(path: Path) -> Unit | None:
    """The unit of a submission, by the tasks of its cells, or else by its name; None where there is none."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        for cell in _cells(path):
            for unit in units().values():
                if _task_of(cell) in unit.tasks:
                    return unit
    named = re.match(r"\d\d_\w+?(?=_exercise)", path.stem)
    return units().get(named.group()) if named else None


def _cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def _task_of(cell: dict[str, Any]) -> str:
    """The task that a cell answers or checks, by nbgrader's name of the cell."""
    grade_id = str(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", ""))
    return grade_id.removeprefix("check-").replace("-", "_")


# ---- in a process of its own -----------------------------------------------------------------------------------------


def _run_apart(path: Path, seconds: float, cell_seconds: float) -> tuple[list[dict[str, str]], str]:
    """The lines that the process of a notebook has written, and what to say about tasks that it did not reach."""
    with tempfile.TemporaryDirectory() as place:
        results = Path(place) / "results.jsonl"
        kept = ("PATH", "PYTHONPATH", "SYSTEMROOT", "LANG")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"HOME": place, "IPYTHONDIR": place, "MPLBACKEND": "agg"}
        command = [sys.executable, "-m", __spec__.name, "--one", str(path.resolve()), str(results), str(cell_seconds)]
        process = subprocess.Popen(
            command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )
        try:
            process.wait(seconds)
            ended = "the notebook cannot be read" if process.returncode == UNREADABLE else "its process ended early"
        except subprocess.TimeoutExpired:
            ended = f"not done after {seconds:g} seconds"
        finally:
            _end(process)
        lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")], ended


UNREADABLE = 3


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and the processes that it has started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def run_one(path: Path, results: Path, cell_seconds: float) -> int:
    """Run the cells of one notebook, and check each task where the notebook checks it: the work of the process."""
    _limit_memory()
    unit = unit_of(path)
    try:
        cells = _cells(path)
    except (ValueError, KeyError, TypeError, AttributeError):
        return UNREADABLE
    assert unit is not None
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    open_tasks = {name: task for name, task in unit.tasks.items() if task.points}
    with results.open("a", encoding="utf-8") as out:
        for cell in cells:
            task = _task_of(cell)
            if not cell.get("metadata", {}).get("nbgrader", {}).get("grade"):
                with contextlib.suppress(BaseException), at_most(cell_seconds):
                    shell.run_cell("".join(cell["source"]), store_history=True)
            elif task in open_tasks:
                _write(out, task=task, said=_said(open_tasks.pop(task), shell.user_ns))
        for task, left in open_tasks.items():  # whose cells are missing
            _write(out, task=task, said=_said(left, shell.user_ns))
        _write(out, name=SESSION.student)
    return 0


def _write(out: Any, **line: str) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def _said(task: type[Task], names: dict[str, Any]) -> str:
    """Nothing for a right answer, otherwise the first line of the feedback."""
    if task.name not in names:
        return "not written yet"
    try:
        check(task.name, names[task.name], hidden=True)
    except Feedback as feedback:
        return feedback.message.partition("\n")[0]
    except BaseException as error:
        return f"stopped with {type(error).__name__}"
    return ""


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILES, FILES))


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
        notes = [f"{each.task}: {each.said}" for each in own if not best[each.task]]
        names = dict.fromkeys(each.name for each in own if each.name)
        rows.append([student, ", ".join(names), *[str(best.get(task, "")) for task in tasks], str(sum(best.values())),
                     str(sum({each.task: each.most for each in own}.values())), "; ".join(notes)])
    return rows


def main(arguments: Sequence[str]) -> int:
    """Grade a folder and write the table, or run one notebook (`--one`)."""
    if arguments[:1] == ["--one"]:
        path, results, seconds = arguments[1:]
        return run_one(Path(path), Path(results), float(seconds))
    if not 1 <= len(arguments) <= 2 or not Path(arguments[0]).is_dir():
        print("usage: python3 course grade FOLDER [GRADES.csv]; FOLDER has a folder for each student", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) == 2 else folder / "grades.csv"
    grades = grade(folder, announce=lambda path: print(f"{path} ...", flush=True))  # one may take half a minute
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
