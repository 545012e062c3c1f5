"""Deep graphs: the backward pass of a chain of 10,000 operations, and the memory of a long chain of large ones.

    python3 course bench deep
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
from _harness import ROOT, Case, Options, Work, measure, options, report

import minigrad as mg

GOAL_MS = 60.0
MEMORY_GOAL = 1.1

# The memory that the chain adds to a new process: the reported peak of a process never falls.
MEMORY = """
import sys
from pathlib import Path
import numpy as np
name, size, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lib = __import__(name)
make = lib.asarray if name == "minigrad" else lib.tensor

def run(size, depth):
    x = make(np.linspace(-1, 1, size, dtype=np.float32), requires_grad=True)
    h = x
    for _ in range(depth // 2):
        h = lib.tanh(h) * 1.01
    h.sum().backward()
    return x.grad

def peak():
    status = Path("/proc/self/status")
    if status.exists():  # Linux: what getrusage says there includes the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS

run(1000, depth)  # what is loaded and cached on first use does not count
before = peak()
run(size, depth)
print(peak() - before)
"""


def chain(contender: str, depth: int, opts: Options) -> Work:
    """The backward pass of a chain of operations that are recorded once."""
    lib = opts.library(contender)
    x = (mg.asarray if lib is mg else lib.tensor)(np.ones(16, np.float32), requires_grad=True)
    h = x
    for _ in range(depth // 2):
        h = h * 1.0001 + 0.0
    total = h.sum()

    def work() -> Any:
        x.grad = None
        total.backward(retain_graph=True)
        return total, x.grad

    return work


def cases(opts: Options) -> list[Case]:
    depth = 100 if opts.smoke else 10_000
    work = partial(chain, depth=depth, opts=opts)
    return [Case(f"backward of {depth:,} operations on 16 floats", ("minigrad", "torch"), work)]


def peak_memory(name: str, opts: Options) -> float | None:
    """The bytes that the chain adds to the peak of a process; None if the system does not report it."""
    size, depth = (1000, 4) if opts.smoke else (1_000_000, 200)
    found = []
    for _ in range(1 if opts.smoke else 3):
        command = [sys.executable, "-c", MEMORY, name, str(size), str(depth)]
        result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if result.returncode:
            if "No module named 'resource'" in result.stderr:
                return None
            raise RuntimeError(result.stderr)
        found.append(int(result.stdout))
    return statistics.median(found)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    rows = measure(cases, opts)
    text = report("Deep graphs", rows, opts)
    if rows:
        taken = rows[0].median("minigrad") * 1e3
        lines = [f"The goal is {GOAL_MS:g} ms: {taken:.1f} ms, {'ok' if taken <= GOAL_MS else '**over**'}.", ""]
    else:
        lines = []
    peaks = {name: peak_memory(name, opts) for name in opts.present(("minigrad", "torch"))}
    for name, peak in peaks.items():
        size = "not known on this system" if peak is None else f"{peak / 1e6:.0f} MB"
        lines.append(f"- peak memory of 200 operations on 1M floats and back, {name}: {size}")
    ours, theirs = peaks["minigrad"], peaks.get("torch")
    if ours and theirs:
        verdict = "ok" if ours <= MEMORY_GOAL * theirs else "**over**"
        lines.append(f"- ratio {ours / theirs:.2f}, the goal is ≤ {MEMORY_GOAL:g} × torch: {verdict}")
    print("\n".join(lines) + "\n")
    return text + "\n".join(lines)


if __name__ == "__main__":
    main()
