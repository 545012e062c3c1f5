"""A student's own copies of the notebooks: `python -m minigrad_course.workspace NOTEBOOKS MY_COURSE`.

A student's work is never overwritten.  A record beside the copies says what was copied, so that a later run can
distinguish changes by the student from changes of the course.  Only the content of cells counts as work: running a
notebook changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minigrad.support.errors import FileError
from minigrad.support.files import locked, write_whole

from .results import FILE, free_name

RECORD = ".copied.json"  # file -> digest of the cells that were copied
PATTERNS = ("[0-9][0-9]_*.ipynb", "museum.ipynb", "pytorch.ipynb", "project*.ipynb", "exercises/[0-9][0-9]_*.ipynb")


def update(course: Path, mine: Path) -> list[str]:
    """Bring the workspace up to date with the course.  Returns a line for each notebook that was looked after."""
    mine.mkdir(parents=True, exist_ok=True)
    with locked(mine / RECORD):
        return [*_begin_progress(mine / FILE), *_bring_all(course, mine)]


def _begin_progress(path: Path) -> list[str]:
    """Create the progress file; an empty file means no progress yet."""
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
        except (OSError, FileError) as error:  # the other files are still copied
            said.append(f"left alone: {name}: {_reason(mine / name, error)}")
            continue
        if line is None:
            continue
        said.append(line)
        record[name] = cells_of(source)
        write_whole(mine / RECORD, json.dumps(record, indent=1) + "\n")
    return said


def _reason(path: Path, error: Exception) -> str:
    """Why a path of the workspace could not be used, and what to do."""
    again = "and start again"
    if path.is_symlink() and not path.exists():
        return f"this is a link to {os.readlink(path)}, which does not exist; repair or remove the link, {again}"
    if path.is_dir():
        return f"this is a folder; give the folder another name, {again}"
    if not path.parent.is_dir():
        return f"{path.parent.name} is not a folder; give it another name, {again}"
    return str(error).partition("\n")[0]


def _bring(source: Path, target: Path, copied: str | None, name: str) -> str | None:
    """Copy a notebook if no work is lost; None if there is nothing to do."""
    newest = cells_of(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() and not target.is_symlink():
        _copy(source, target)
        return f"new: {name}" if copied is None else f"copied again: {name}"
    theirs = cells_of(target)
    if theirs == newest:
        return None if copied == newest else f"same as in the course: {name}"
    if copied == newest:
        return None
    if theirs == copied:
        _copy(source, target, _settings_of(target))
        return f"updated: {name}"
    beside = free_name(target, "new ")
    _copy(source, beside)
    return f"changed by you and by the course: {name} is your version, {beside.name} is the new one"


def _copy(source: Path, target: Path, settings: Mapping[str, Any] = {}) -> None:
    """Copy a notebook without outputs: they come when the student runs the cells.

    The course's own notebook keeps its outputs for readers; some are folded because they show an answer.
    """
    notebook = json.loads(source.read_text(encoding="utf-8"))
    notebook["metadata"] = {**notebook.get("metadata", {}), **settings}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"].pop("jupyter", None)
    write_whole(target, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _settings_of(notebook: Path) -> dict[str, Any]:
    """The student's settings of the whole notebook, such as its kernel, without the state of widgets."""
    settings = dict(json.loads(notebook.read_text(encoding="utf-8")).get("metadata") or {})
    settings.pop("widgets", None)
    return settings


def cells_of(notebook: Path) -> str:
    """A digest of the content of the cells, without outputs, counts and the editor's own data."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        text = json.dumps([_work_in(cell) for cell in cells])
    except (ValueError, KeyError, TypeError, AttributeError):  # no longer a notebook, but the student's file
        text = notebook.read_text(encoding="utf-8", errors="replace")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _work_in(cell: dict[str, Any]) -> list[Any]:
    """The content of a cell: its kind, its text, and the pictures attached to it."""
    text = "".join(cell["source"]).replace("\r\n", "\n").rstrip()
    return [cell["cell_type"], text, *filter(None, [cell.get("attachments")])]


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def main(arguments: list[str]) -> int:
    """Update a workspace: the launcher calls this."""
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
