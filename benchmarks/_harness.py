"""Shared by the benchmarks: the contenders, the measuring of time, and the table.

All contenders are measured in one process, in turns: each round times every contender once.  The table shows the
medians over the rounds, and the median of the ratios within a round, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))  # before the import of NumPy, which reads it only once

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

BEST = "the best"  # the fastest peer of a round
SLICE = 2e-3  # minimum seconds of one timing, so that the clock and the loop add little


@dataclass
class Case:
    """One line of the table: a piece of work for each contender, and the goal for minigrad's ratio to the peer."""

    name: str
    work: dict[str, Callable[[], Any]]  # "minigrad" and its peers
    goal: float | None = None
    peer: str = "torch"
    per: int = 1  # the number of operations in the work: the table gives the time of one
    least: float = SLICE  # minimum seconds of one timing
    pause: float = 0.0  # seconds of pause before each timing: the threads of a matrix product spin for a while after it


@dataclass
class Row:
    """The result of a case: the median seconds of each contender, and minigrad's ratio to the peer."""

    case: Case
    seconds: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None

    @property
    def verdict(self) -> str:
        if self.ratio is None or self.case.goal is None:
            return ""
        return "ok" if self.ratio <= self.case.goal else "**over**"


@dataclass
class Options:
    """The options of the command line."""

    smoke: bool
    rounds: int
    only: str
    torch: ModuleType | None
    compile: bool = False
    device: str = "cpu"

    def finish(self, last: Any = None) -> None:
        """Wait for all work in the queue of a GPU; `last` is the last result."""
        if self.device != "cpu":
            if hasattr(last, "block_until_ready"):  # jax may queue in its own thread
                last.block_until_ready()
            import minigrad as mg

            mg.as_device(self.device).synchronize()
            if self.torch is not None:
                self.torch.cuda.synchronize()

    def peers(self, **made: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        """The contenders: all of them, without torch if it is not installed."""
        return {name: work for name, work in made.items() if name != "torch" or self.torch is not None}


def options(description: str, arguments: list[str] | None, rounds: int = 15) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="run once in tiny sizes, to test the script")
    parser.add_argument("--rounds", type=int, default=rounds, help="number of timings of each contender")
    parser.add_argument("--only", default="*", help="the lines to measure, for example '*softmax*'")
    parser.add_argument("--without-torch", action="store_true", help="measure minigrad without PyTorch")
    parser.add_argument("--compile", action="store_true", help="also measure torch.compile (compiled only)")
    parser.add_argument("--device", default="cpu", help="cuda: all contenders on the GPU (training and compiled only)")
    given = parser.parse_args(arguments)
    torch = None if given.without_torch else optional("torch")
    if torch is not None:
        torch.set_num_threads(THREADS)
        if given.device != "cpu":
            torch.set_default_device(given.device)
    rounds = 1 if given.smoke else given.rounds
    return Options(given.smoke, rounds, given.only, torch, given.compile, given.device)


def optional(name: str) -> ModuleType | None:
    """A library to compare with, if it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: its columns are missing.", file=sys.stderr)
        return None


def measure(cases: Iterable[Case], opts: Options) -> list[Row]:
    """Time every case."""
    rows = []
    for case in cases:
        if fnmatch.fnmatch(case.name, opts.only):
            rows.append(_measured(case, opts))
            _say(rows[-1])
    return rows


def _measured(case: Case, opts: Options) -> Row:
    finish = opts.finish
    counts = {name: 1 if opts.smoke else _count(work, case.least, finish) for name, work in case.work.items()}
    rounds: list[dict[str, float]] = []
    for turn in range(opts.rounds):
        order = list(case.work) if turn % 2 else list(case.work)[::-1]
        pause = 0 if opts.smoke else case.pause
        rounds.append({name: _time(case.work[name], counts[name], finish, pause) for name in order})
    seconds = {name: statistics.median(r[name] for r in rounds) / case.per for name in case.work}
    peers = [n for n in case.work if n == case.peer or (case.peer == BEST and n not in ("minigrad", "eager"))]
    ratio = statistics.median(r["minigrad"] / min(r[p] for p in peers) for r in rounds) if peers else None
    return Row(case, seconds, ratio)


def _count(work: Callable[[], Any], least: float, finish: Callable[..., None]) -> int:
    """The number of calls that makes one timing long enough.  Counting them also warms up the work."""
    count = 1
    while True:
        taken = _time(work, count, finish)
        if taken * count >= least:
            return count
        count *= 2


def _time(work: Callable[[], Any], count: int, finish: Callable[..., None], pause: float = 0.0) -> float:
    if pause:
        time.sleep(pause)
        work()
    finish()
    start = time.perf_counter()
    for _ in range(count):
        last = work()
    finish(last)  # a GPU may still be working
    return (time.perf_counter() - start) / count


def _say(row: Row) -> None:
    if sys.stderr.isatty():
        print(f"{row.case.name}: {row.ratio if row.ratio is None else round(row.ratio, 2)}", file=sys.stderr)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    if not rows:
        return "nothing was measured\n"
    names = list(dict.fromkeys(name for row in rows for name in row.seconds))
    lines = [f"| work | {' | '.join(names)} | ratio | goal | |", "|---" * (len(names) + 4) + "|"]
    for row in rows:
        times = [text_of(row.seconds[name]) if name in row.seconds else "–" for name in names]
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
        goal = "" if row.case.goal is None else f"≤ {row.case.goal:g} × {row.case.peer}"
        lines.append(f"| {row.case.name} | {' | '.join(times)} | {ratio} | {goal} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def text_of(seconds: float) -> str:
    """A time with its unit.

    >>> text_of(0.0000123), text_of(0.25)
    ('12.3 µs', '250 ms')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:.3g} {unit}"
    raise AssertionError


def facts(opts: Options) -> str:
    """The machine and the versions: figures mean little without them."""
    import numpy as np

    versions = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    if opts.torch is not None:
        versions.append(f"torch {opts.torch.__version__}")
    note = "smoke run: the figures mean nothing" if opts.smoke else f"medians of {opts.rounds} interleaved rounds"
    where = f"{processor()}, {os.cpu_count()} cores, {THREADS} threads"
    if opts.device != "cpu":
        where = f"{graphics_processor()}, {where}"
    return f"{where}; {', '.join(versions)}; {note}.\n"


def graphics_processor() -> str:
    """The name of the first GPU, and the versions of its software."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{name} (CUDA {cupy.cuda.runtime.runtimeGetVersion()}, CuPy {cupy.__version__})"


def processor() -> str:
    """The name of the CPU's model."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def report(title: str, rows: list[Row], opts: Options) -> str:
    """Print and return the title, facts and table."""
    text = f"## {title}\n\n{facts(opts)}\n{table(rows)}"
    print(text)
    return text
