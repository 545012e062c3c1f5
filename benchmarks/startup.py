"""The cost of an import, in a fresh process each time.

    python3 course bench startup
"""

from __future__ import annotations

import os
import statistics
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
    """The best of several timings, in turns: other work can only make an import slower."""
    names = ["minigrad", "numpy"] + ["torch"] * (opts.torch is not None)
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            seconds(name, cache)  # once before, so that files are compiled and in memory
        rounds = [{name: seconds(name, cache) for name in names} for _ in range(opts.rounds)]
    best = {name: min(r[name] for r in rounds) for name in names}
    case = Case("import, best", {}, 2.0, "numpy")
    print(f"medians: {', '.join(f'{n} {statistics.median(r[n] for r in rounds) * 1e3:.0f} ms' for n in names)}")
    return Row(case, best, best["minigrad"] / best["numpy"])


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=9)
    return report("Start", [imports(opts)], opts)


if __name__ == "__main__":
    main()
