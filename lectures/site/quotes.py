"""Code of the library that lectures quote: whether it is there, and a function by its name."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class LectureError(Exception):
    """A lecture quotes a line that is not there, runs code that fails, or shows a picture that does not exist."""


def check_quote(lecture: str, quoted: str, name: str) -> None:
    """Raise where a quoted line is not in the file, in this order and without a gap.  A gap is a line `...`."""
    path = ROOT / name
    if not path.is_file():
        raise LectureError(f"{lecture}.md quotes {name}, which is not a file")
    lines = [line for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()) if line]
    parts: list[list[str]] = [[]]
    for line in filter(None, map(str.strip, quoted.splitlines())):
        if line in ("...", "# ..."):
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for part in filter(None, parts):
        places = [i for i in range(at, len(lines)) if lines[i : i + len(part)] == part]
        if not places:
            raise LectureError(f"{lecture}.md quotes lines that are not in {name}\n{_missing(part, lines, at)}")
        at = places[0] + len(part)


def _missing(part: list[str], lines: list[str], at: int) -> str:
    """The first line of a quoted part that does not follow the line before it, and why."""
    starts = [i for i in range(at, len(lines)) if lines[i] == part[0]]
    lengths = [next(n for n, line in enumerate(part) if lines[i + n : i + n + 1] != [line]) for i in starts]
    line = part[max(lengths, default=0)]
    if line not in lines:
        return f"  {line}"
    why = "left out: put a line `...` there" if line in lines[at:] and starts else "in a different order"
    return f"  {line}\nThe file has this line, but {'lines before it are ' if starts else 'it is '}{why}"


def definition(lecture: str, name: str, wanted: str, docstring: bool = True) -> str:
    """The source of a function, a class or a method (`Class.method`), with its docstring or without."""
    path = ROOT / name
    if not path.is_file():
        raise LectureError(f"{lecture}.md quotes {name}, which is not a file")
    text = path.read_text(encoding="utf-8")
    found: Any = ast.parse(text)
    for part in wanted.split("."):
        inside = {each.name: each for each in found.body if hasattr(each, "name")}
        if part not in inside:
            raise LectureError(f"{lecture}.md quotes {wanted}, which is not in {name}")
        found = inside[part]
    lines = text.splitlines()
    skipped = range(0)
    if not docstring and ast.get_docstring(found) is not None:
        skipped = range(found.body[0].lineno, found.body[0].end_lineno + 1)
    chosen = [lines[i - 1] for i in range(found.lineno, found.end_lineno + 1) if i not in skipped]
    return dedent("\n".join(chosen)) + "\n"
