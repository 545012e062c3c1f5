"""Runs all benchmarks that compare minigrad with other libraries, and lists the lines that are above their goals.

The options go to every script.  The exit status is 1 if a line is above its goal.

    python3 course bench compare --threads 1 --rounds 7
"""

from __future__ import annotations

import importlib
import sys

from _harness import facts, options

SCRIPTS = (
    "eager", "composed", "training", "compiled", "optimizers", "inference", "positions", "dtypes", "deep", "startup",
)
OVER = "**over**"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    found = {name: _above(importlib.import_module(name).main(arguments)) for name in SCRIPTS}
    lines = [f"- {name}: {line}" for name, above in found.items() for line in above]
    text = f"## Above their goals: {len(lines)} lines\n\n{facts(opts)}\n" + "".join(f"{line}\n" for line in lines)
    print(text)
    return text


def _above(report: str) -> list[str]:
    """The name, the ratios and the goal of each line above its goal."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in report.splitlines() if OVER in line]
    return [f"{row[0]}: {row[-4]}, of minima {row[-3]}, goal {row[-2]}" if len(row) > 4 else row[0] for row in rows]


if __name__ == "__main__":
    sys.exit(": 0 lines" not in main())
