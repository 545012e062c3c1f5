"""A student's own copies of the notebooks: `python -m minigrad.course.workspace NOTEBOOKS MY_COURSE`.

What the student has worked on is never written over.  What was copied is written down beside the copies, so that a
later run can tell what the student changed from what the course changed.  Work is what stands in the cells: a notebook
that was only run has none.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from .progress import FILE

RECORD = ".copied.json"  # file -> digest of the cells that were copied
PATTERNS = ("[0-9][0-9]_*.ipynb", "exercises/[0-9][0-9]_*.ipynb")


def update(course: Path, mine: Path) -> list[str]:
    """Bring the workspace up to date with the course, and say what was done, a line for each notebook."""
    mine.mkdir(parents=True, exist_ok=True)
    (mine / FILE).touch()
    record = _read(mine / RECORD)
    said = []
    for source in sorted(path for pattern in PATTERNS for path in course.glob(pattern)):
        name = source.relative_to(course).as_posix()
        line = _bring(source, mine / name, record.get(name), name)
        if line is None:
            continue
        said.append(line)
        record[name] = cells_of(source)
        (mine / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return said


def _bring(source: Path, target: Path, copied: str | None, name: str) -> str | None:
    """Copy a notebook where nothing is lost by it; None where there is nothing to do."""
    newest = cells_of(source)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target)
        return f"new: {name}" if copied is None else f"copied again: {name}"
    theirs = cells_of(target)
    if theirs == newest:
        return None if copied == newest else f"as the course has it: {name}"
    if copied == newest:
        return None
    if theirs == copied:
        _copy(source, target)
        return f"updated: {name}"
    beside = _free(target)
    _copy(source, beside)
    return f"changed by you and by the course: {name} is yours, {beside.name} beside it is the new one"


def _copy(source: Path, target: Path) -> None:
    """A notebook with nothing below its cells: what is there to be seen comes when the student runs them.

    The course's own has its outputs, for those who only read; some are folded, not to give an answer away.
    """
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"].pop("jupyter", None)
    target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _free(target: Path) -> Path:
    """A name beside a notebook that nothing has yet."""
    number = 2
    while (beside := target.with_name(f"{target.stem} (new {number}){target.suffix}")).exists():
        number += 1
    return beside


def cells_of(notebook: Path) -> str:
    """A digest of what stands in the cells: not of outputs, counts, or what an editor keeps for itself."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        text = json.dumps([[cell["cell_type"], "".join(cell["source"]).rstrip()] for cell in cells])
    except (ValueError, KeyError, TypeError):  # no notebook any more, but somebody's file
        text = notebook.read_text(encoding="utf-8", errors="replace")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def main(arguments: list[str]) -> int:
    """What the launcher calls."""
    course, mine = map(Path, arguments)
    said = update(course, mine)
    print(f"Your notebooks are in {mine.name}/" + (":" if said else ", nothing has changed."))
    for line in said:
        print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
