"""Kernels in a browser: WebAssembly beside NumPy's kernels and eager mode, in Pyodide in Node.js.

    MINIGRAD_PYODIDE=FOLDER python3 course bench browser_kernels
"""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

from _harness import Case, Options, Row, options, report

from tests.browser.running import Python, found, node

CONTENDERS = ("minigrad", "NumPy kernels", "eager")
CODE = Path(__file__).with_name("_in_pyodide.py").read_text(encoding="utf-8")
GOALS = {"product 512 × 512": 0.2, "step of an MLP, batch 64": 0.3, "step of a CNN, batch 64": 0.3}


def rows_of(opts: Options) -> list[Row]:
    """A row for each piece of work, and one for its first call."""
    folder = found()
    if isinstance(folder, str) or node() is None:
        print(folder if isinstance(folder, str) else "there is no Node.js on this machine")
        return []
    python, rows = Python(folder), []
    python.run(f"ROUNDS, SMOKE = {opts.rounds}, {opts.smoke}\n{CODE}")
    for name in json.loads(python.run("print(json.dumps([*CASES]))")):
        if fnmatch.fnmatch(name, opts.only):
            first, rounds = json.loads(python.run(f"measure({name!r})"))
            rows.append(Row(_case(name, GOALS.get(name, 1.0 if "64 numbers" not in name else None)), rounds))
            rows.append(Row(_case(f"{name}: first call"), [first]))
    python.close()
    return rows


def _case(name: str, goal: float | None = None) -> Case:
    return Case(name, CONTENDERS, lambda _: lambda: None, goal, "eager", minima=True)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=9)
    return report("Kernels in a browser", rows_of(opts), opts)


if __name__ == "__main__":
    main()
