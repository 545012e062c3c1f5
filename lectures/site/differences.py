"""The page of what has another meaning in PyTorch, from the table that `minigrad.compat` is tested with."""

from __future__ import annotations

from pathlib import Path

import minigrad

TABLE = Path(minigrad.__file__).parent / "compat" / "differences.txt"
HEADS = {
    "Another meaning, mapped": ("in PyTorch, and with `minigrad.compat`", "value", "in minigrad", "value"),
    "Refused in words": ("", "the error says", "and the hint"),
    "Left as it is": ("", "in PyTorch", "here", "why"),
}


def sections() -> dict[str, list[list[str]]]:
    """The rows of each section."""
    found: dict[str, list[list[str]]] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("[") and " | " not in line:
            rows = found[line.strip("[]")] = []
        elif line and line[0] != "#":
            rows.append([each.strip() for each in line.split(" | ")])
    return found


def page() -> str:
    """The page in Markdown."""
    lines = [
        "# PyTorch with minigrad.compat: differences", "",
        "Each row is evaluated by a test. `x` is `[[1, 2], [3, 6]]`, `v` is `[3, 1, 2]`, `i` is `[1, 0]`, and `m` is "
        "`[[True, False], [False, True]]`.",
        "[Your PyTorch program, seen](pytorch.html) explains which file speaks which library.",
    ]
    for title, rows in sections().items():
        lines += ["", f"## {title}", "", _row(HEADS[title]), "|" + "---|" * len(HEADS[title])]
        code = 4 if title.startswith("Another") else 3 if title.startswith("Left") else 1
        lines += [_row([f"`{each}`" if i < code else each for i, each in enumerate(row)]) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
