"""The cost of an import, in a fresh process each time.

    python3 course bench startup
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from _harness import ROOT, Case, Options, Row, options, report

CODE = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def seconds(name: str, cache: str) -> float:
    """The time of one import, with bytecode from the folder `cache` even if Python is set not to write any."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
    command = [sys.executable, "-c", CODE.format(name)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return float(result.stdout)


def imports(opts: Options) -> Row:
    """Several timings, in turns.  The minima are compared: other work can only make an import slower."""
    names = opts.present(("minigrad", "numpy", "torch", "jax"))
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            seconds(name, cache)  # once before, so that files are compiled and in memory
        rounds = [{name: seconds(name, cache) for name in names} for _ in range(opts.rounds)]
    return Row(Case("import", names, lambda _: lambda: None, 2.0, "numpy", minima=True), rounds)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=9)
    return report("Start", [imports(opts)], opts)


if __name__ == "__main__":
    main()
