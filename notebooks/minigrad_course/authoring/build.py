"""Make the notebooks from their sources: `python -m minigrad_course.authoring.build [UNIT ...]`.

With `--solutions UNIT FILE` it writes the exercise with its solutions, as nbgrader needs it.

- `demo_notebook.py` of a unit is executed and becomes the demo `notebooks/NN_name.ipynb`, with its outputs stored.
  The museum, the programs of PyTorch, the project and its examples have demos of their own, without a number.
  No output is stored of a cell with the tag `nbval-ignore-output`, which measures times for example.
  It begins with the minutes of the unit, which `minutes` counts.
- `exercise_notebook.py` holds solutions, and becomes `notebooks/exercises/NN_name_exercise.ipynb`,
  which holds none.  The two notebooks have different names because JupyterLab shows only the file's name on a tab.

Both are py:percent, as jupytext pairs them.  A section whose heading ends with `{further}` comes after all others: it
is for readers who want more, and the minutes of the unit leave it out.

What is written depends on nothing but the sources and the library: made again, it is the same to the byte.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

from minigrad.viz.exhibit import LOADER

from ..apart import search_path
from ..unit import task_of, units

COURSE = Path(__file__).resolve().parents[1]
NOTEBOOKS = COURSE.parent
FOLDERS = {path.name.removeprefix("u"): path for path in (
    *sorted((COURSE / "units").glob("u*")), COURSE / "museum", COURSE / "pytorch",
)} | {"project": COURSE / "project"} | {
    f"project_{path.parent.name}": path.parent for path in sorted((COURSE / "project").glob("*/demo_notebook.py"))
}
DEMO, EXERCISE = "demo_notebook.py", "exercise_notebook.py"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")  # nbgrader's own
MEASURED = "nbval-ignore-output"
FURTHER = " {further}"  # at the end of a heading
WIDGET = "application/vnd.jupyter.widget-view+json"
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


def source_of(key: str, name: str = DEMO) -> Path:
    """The source of a notebook of a unit, or of the museum.

    >>> source_of("00_start").parent.name
    'u00_start'
    """
    return FOLDERS[key] / name


def read(path: Path) -> Any:
    """A notebook from its source.  Cells are called as `name=` in their header says, or by their number."""
    part = re.sub(r"^u[0-9]+_", "", path.parent.name)
    kind = "s" if path.name == DEMO else "m"  # no other: students' notebooks have these ids
    notebook = jupytext.read(path)
    for number, cell in enumerate(notebook.cells):
        name = cell.metadata.pop("name", None) or f"{kind}{number:02}"
        cell["id"] = re.sub(r"[^A-Za-z0-9_-]", "-", f"{part}-{name}")[:64]
        if path.name == EXERCISE:
            cell.metadata |= graded(name, cell.source)
    notebook.cells = _further_last(notebook.cells, f"{part}-further")
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _further_last(cells: list[Any], name: str) -> list[Any]:
    """The cells, with further sections behind all others, below a heading of their own; numbers count the sections."""
    if any(FURTHER in cell.source for cell in cells):
        sections: list[list[Any]] = [[]]
        for cell in chain(*map(_divided, cells)):
            if cell.cell_type == "markdown" and cell.source.startswith("## "):
                sections.append([])
            sections[-1].append(cell)
        core, after = ([each for each in sections if (FURTHER in each[0].source) == is_after] for is_after in (0, 1))
        cells = [*chain(*core), nbformat.v4.new_markdown_cell(BEYOND, id=name), *chain(*after)]
    count = itertools.count(1)
    for cell in cells:
        if cell.cell_type == "markdown":
            text = cell.source.replace(FURTHER, "")
            cell.source = re.sub(r"^## \d+ ·", lambda _: f"## {next(count)} ·", text, flags=re.M)
    return cells


def _divided(cell: Any) -> list[Any]:
    """A cell with text, divided where sections begin; the first part keeps the id."""
    if cell.cell_type != "markdown":
        return [cell]
    first, *others = re.split(r"\n\n(?=## )", cell.source)
    cell.source = first
    ids = [f"{cell.id}-{number}" for number in range(1, len(others) + 1)]
    return [cell, *[nbformat.v4.new_markdown_cell(text, id=each) for text, each in zip(others, ids)]]


BEYOND = """\
## Further

The unit ends here. These sections are for readers who want more; the minutes of the unit leave them out."""


def is_further(cell: Any) -> bool:
    """Whether a cell is the heading above the further sections."""
    return cell.cell_type == "markdown" and cell.source == BEYOND


def checked(source: str) -> str | None:
    """The name of the task that a cell checks.

    >>> checked('course.check("mul_grad")')
    'mul_grad'
    """
    found = re.search(r'course\.check\("(\w+)"', source)
    return found[1] if found else None


def graded(name: str, source: str) -> dict[str, Any]:
    """What nbgrader reads about a cell: a solution, or a check, `check-NAME`, which has the points of its task.

    >>> graded("check-mul-grad", 'course.check("mul_grad")')["nbgrader"]["points"]
    0
    >>> graded("text", "Look at it.")
    {}
    """
    check = checked(source) if name.startswith("check-") else None
    if check is None and SOLUTION[0] not in source:
        return {}
    about = {
        "grade_id": name, "grade": check is not None, "locked": check is not None, "solution": check is None,
        "schema_version": 3, "task": False,
    }
    task = task_of(check) if check is not None else None
    return {"nbgrader": about | ({} if task is None else {"points": task.points})}


def demo(path: Path) -> str:
    """The text of a demo notebook: executed, and without what differs from run to run."""
    notebook = read(path)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": str(NOTEBOOKS)}})
    client.execute(env={**os.environ, "PYTHONPATH": search_path()})
    return text_of(normalised(notebook))


def normalised(notebook: Any) -> Any:
    """The notebook with its outputs as they are stored: counted from 1, no widgets, one piece for each stream."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        count += bool(cell.source.strip())
        cell.execution_count = count if cell.source.strip() else None
        outputs: list[Any] = []
        for output in cell.outputs if MEASURED not in cell.metadata.get("tags", ()) else ():
            if "data" in output:
                output.data.pop(WIDGET, None)
                # Scripts are not stored: a notebook that has not been run shows still pictures, and a new version of a
                # script changes no notebook.  The hook in `conftest.py` lets nbval compare the rest.
                if "text/html" in output.data:
                    output.data["text/html"] = re.sub(LOADER, "", output.data["text/html"])
                output.metadata = {}
            if "execution_count" in output:
                output.execution_count = count
            last = outputs[-1] if outputs else {}
            if output.output_type == "stream" and last.get("name") == output.name:
                last["text"] += output.text
            else:
                outputs.append(output)
        cell.outputs = outputs
    return notebook


def exercise(path: Path) -> str:
    """The text of the student's copy: no solution, no hidden test, no output, and what is locked cannot be edited."""
    notebook = read(path)
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        source = without(cell.source, *HIDDEN)
        cell.source = without(source, *SOLUTION, STUB) if about.get("solution") else source
        if about.get("locked"):
            cell.metadata["editable"] = False
        if about:
            cell.metadata["deletable"] = False
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return text_of(notebook)


def without(source: str, begin: str, end: str, instead: tuple[str, ...] = ()) -> str:
    """A cell without the regions between two marks; other lines may stand in their place, indented as they were.

    >>> print(without("def f():\\n    ### A\\n    return 1\\n    ### B", "### A", "### B", ("pass",)))
    def f():
        pass
    """
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        mark = line.strip()
        if mark == begin and not inside:
            inside = True
            lines += [line[: len(line) - len(line.lstrip())] + each for each in instead]
        elif mark == end and inside:
            inside = False
        elif mark in (begin, end):
            raise ValueError(f"{mark!r} where there is nothing to {'end' if mark == end else 'begin'}:\n{source}")
        elif not inside:
            lines.append(line)
    if inside:
        raise ValueError(f"{begin!r} without an end:\n{source}")
    return "\n".join(lines).rstrip("\n")


def text_of(notebook: Any) -> str:
    """A notebook as it is stored."""
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"


def main(chosen: list[str]) -> None:
    """Write every notebook, or those of the units that are named; `--solutions UNIT FILE` writes that for nbgrader."""
    if chosen[:1] == ["--solutions"]:
        _, key, file = chosen
        Path(file).write_text(text_of(read(source_of(key, EXERCISE))), encoding="utf-8")
        return
    from .minutes import write  # which needs the lectures

    for key in chosen or FOLDERS:
        if key in units():
            write(units()[key])
        for name, make, target_of in (DEMO, demo, "{}.ipynb"), (EXERCISE, exercise, "exercises/{}_exercise.ipynb"):
            if source_of(key, name).exists():
                target = NOTEBOOKS / target_of.format(key)
                text = make(source_of(key, name))
                same = target.exists() and target.read_text(encoding="utf-8") == text
                target.write_text(text, encoding="utf-8")
                print(f"notebooks/{target.relative_to(NOTEBOOKS)}: {'as it was' if same else 'written'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
