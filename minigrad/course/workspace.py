"""A student's own copies of the notebooks: `python -m minigrad.course.workspace NOTEBOOKS MY_COURSE`.

What the student has worked on is never written over.  What was copied is written down beside the copies, so that a
later run can tell what the student changed from what the course changed.  Work is what stands in the cells: a notebook
that was only run has none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..support.errors import FileError
from ..support.files import locked, write_whole
from .results import FILE, free_name

RECORD = ".copied.json"  # file -> digest of the cells that were copied
PATTERNS = ("[0-9][0-9]_*.ipynb", "exercises/[0-9][0-9]_*.ipynb")


def update(course: Path, mine: Path) -> list[str]:
    """Bring the workspace up to date with the course, and say what was done, a line for each notebook."""
    mine.mkdir(parents=True, exist_ok=True)
    with locked(mine / RECORD):
        return [*_begin_progress(mine / FILE), *_bring_all(course, mine)]


def _begin_progress(path: Path) -> list[str]:
    """Make the file that notebooks look for; an empty one means that there is no progress yet."""
    try:
        if path.is_dir():
            raise IsADirectoryError
        path.touch()
    except OSError as error:
        return [f"progress cannot be kept: {_reason(path, error)}"]
    return []


def _bring_all(course: Path, mine: Path) -> list[str]:
    record = _read(mine / RECORD)
    said = []
    for source in sorted(path for pattern in PATTERNS for path in course.glob(pattern)):
        name = source.relative_to(course).as_posix()
        try:
            line = _bring(source, mine / name, record.get(name), name)
        except (OSError, FileError) as error:  # one file in the way does not keep the others back
            said.append(f"left alone: {name}: {_reason(mine / name, error)}")
            continue
        if line is None:
            continue
        said.append(line)
        record[name] = cells_of(source)
        write_whole(mine / RECORD, json.dumps(record, indent=1) + "\n")
    return said


def _reason(path: Path, error: Exception) -> str:
    """Why a path of the workspace could not be used, and the way out."""
    again = "and start again"
    if path.is_symlink() and not path.exists():
        return f"this is a link to {os.readlink(path)}, which is not there; mend or remove the link, {again}"
    if path.is_dir():
        return f"this is a folder; give the folder another name, {again}"
    if not path.parent.is_dir():
        return f"{path.parent.name} is not a folder; give it another name, {again}"
    return str(error).partition("\n")[0]


def _bring(source: Path, target: Path, copied: str | None, name: str) -> str | None:
    """Copy a notebook where nothing is lost by it; None where there is nothing to do."""
    newest = cells_of(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() and not target.is_symlink():
        _copy(source, target)
        return f"new: {name}" if copied is None else f"copied again: {name}"
    theirs = cells_of(target)
    if theirs == newest:
        return None if copied == newest else f"as the course has it: {name}"
    if copied == newest:
        return None
    if theirs == copied:
        _copy(source, target, _settings_of(target))
        return f"updated: {name}"
    beside = free_name(target, "new ")
    _copy(source, beside)
    return f"changed by you and by the course: {name} is yours, {beside.name} beside it is the new one"


def _copy(source: Path, target: Path, settings: Mapping[str, Any] = {}) -> None:
    """A notebook with nothing below its cells: what is there to be seen comes when the student runs them.

    The course's own has its outputs, for those who only read; some are folded, not to give an answer away.
    """
    notebook = json.loads(source.read_text(encoding="utf-8"))
    notebook["metadata"] = {**notebook.get("metadata", {}), **settings}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"].pop("jupyter", None)
    write_whole(target, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _settings_of(notebook: Path) -> dict[str, Any]:
    """What a student has set for the whole notebook, such as its kernel; the state of widgets goes with the outputs."""
    settings = dict(json.loads(notebook.read_text(encoding="utf-8")).get("metadata") or {})
    settings.pop("widgets", None)
    return settings


def cells_of(notebook: Path) -> str:
    """A digest of what stands in the cells: not of outputs, counts, or what an editor keeps for itself."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        text = json.dumps([_work_in(cell) for cell in cells])
    except (ValueError, KeyError, TypeError, AttributeError):  # not a notebook any more, but the student's file
        text = notebook.read_text(encoding="utf-8", errors="replace")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _work_in(cell: dict[str, Any]) -> list[Any]:
    """What a student can put into a cell: its kind, its text, and the pictures attached to it."""
    text = "".join(cell["source"]).replace("\r\n", "\n").rstrip()
    return [cell["cell_type"], text, *filter(None, [cell.get("attachments")])]


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def main(arguments: list[str]) -> int:
    """What the launcher calls."""
    course, mine = map(Path, arguments)
    try:
        said = update(course, mine)
    except (OSError, FileError) as error:
        print(f"Your notebooks cannot be in {mine}: {_reason(mine, error)}", file=sys.stderr)
        return 1
    print(f"Your notebooks are in {mine.name}/" + (":" if said else ", nothing has changed."))
    for line in said:
        print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
