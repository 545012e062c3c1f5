"""Shared by the benchmarks: the options, the cases, the measuring of time, and the table.

A script lists its cases.  A case names its contenders, and builds the work of each of them in that contender's own
process.  The results of the contenders are compared first.  Then they are timed in turns: A, B, C, A, B, C, ...
The table shows the median and the minimum over the rounds, and minigrad's ratio to its peer: the median of the ratios
within a round, which other work on the machine disturbs least, and the ratio of the minima.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.metadata
import importlib.util
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from _contender import Contender, Failed, difference, package  # noqa: E402 (it imports minigrad from ROOT)

BEST = "the best"  # the fastest peer of a round
OURS = ("minigrad", "eager")
PEERS = ("torch", "jax", "onnxruntime")
SLICE = 2e-3  # minimum seconds of one timing, so that the clock and the loop add little

Work = Callable[[], Any]


@dataclass
class Case:
    """One line of the table: a piece of work for each contender, and the goal for minigrad's ratio to the peer."""

    name: str
    contenders: Sequence[str]  # "minigrad" first, then those that it is compared with
    build: Callable[[str], Work]  # makes the work of a contender; called in its process
    goal: float | None = None
    peer: str = "torch"
    per: int = 1  # the number of operations in the work: the table gives the time of one
    least: float = SLICE  # minimum seconds of one timing
    pause: float = 0.0  # seconds before each timing, in which the threads of the last contender fall asleep
    minima: bool = False  # compare minima: for work of microseconds, which is rarely interrupted
    calls: int = 1  # first calls whose results are compared
    tolerance: float = 1e-3  # of the largest number in a result


@dataclass
class Row:
    """The result of a case: the seconds of each contender in each round."""

    case: Case
    rounds: list[dict[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # the contenders that were left out, and why

    @property
    def contenders(self) -> list[str]:
        return list(self.rounds[0]) if self.rounds else []

    def median(self, name: str) -> float:
        return statistics.median(times[name] for times in self.rounds)

    def minimum(self, name: str) -> float:
        return min(times[name] for times in self.rounds)

    @property
    def peers(self) -> list[str]:
        every = self.case.peer == BEST
        return [n for n in self.contenders if n == self.case.peer or (every and n not in OURS)]

    @property
    def ratio(self) -> float | None:
        """The median of the ratios in each round."""
        if not self.peers:
            return None
        return statistics.median(times["minigrad"] / min(times[p] for p in self.peers) for times in self.rounds)

    @property
    def ratio_of_minima(self) -> float | None:
        return self.minimum("minigrad") / min(map(self.minimum, self.peers)) if self.peers else None

    @property
    def verdict(self) -> str:
        ratio = self.ratio_of_minima if self.case.minima else self.ratio
        if ratio is None or self.case.goal is None:
            return ""
        return "ok" if ratio <= self.case.goal else "**over**"


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    smoke: bool = False
    rounds: int = 1
    only: str = "*"
    without: tuple[str, ...] = ()  # the libraries to leave out
    compile: str = ""  # a mode of torch.compile
    device: str = "cpu"
    threads: int = THREADS
    processor: bool = False  # measure processor seconds
    load: float | None = None  # of the machine, when the script started

    def has(self, library: str) -> bool:
        """Whether a library is installed and not left out."""
        return library not in self.without and importlib.util.find_spec(library) is not None

    def library(self, name: str) -> Any:
        """A library, set up for a fair comparison; None if it is missing."""
        if not self.has(name):
            return None
        module: Any = importlib.import_module(name)
        if name == "torch":
            module.set_num_threads(self.threads)
            module.manual_seed(0)
            if self.device != "cpu":
                module.set_default_device(self.device)
                module.backends.cuda.matmul.allow_tf32 = module.backends.cudnn.allow_tf32 = False
        if name == "jax":
            module.config.update("jax_default_matmul_precision", "highest")  # float32 on a GPU, as the others
        return module

    def present(self, contenders: Iterable[str]) -> list[str]:
        """The contenders whose library is there; torch.compile only if the command line says so."""
        return [n for n in contenders if self.has(package(n)) and (n != "torch.compile" or self.compile)]


def options(description: str, arguments: list[str] | None, rounds: int = 15) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="run once in tiny sizes, to test the script")
    parser.add_argument("--rounds", type=int, default=rounds, help="number of timings of each contender")
    parser.add_argument("--only", default="*", help="the lines to measure, for example '*softmax*'")
    parser.add_argument("--threads", type=int, default=THREADS, help="threads of each contender")
    parser.add_argument("--processor", action="store_true", help="measure processor seconds, summed over threads")
    parser.add_argument("--without", nargs="*", default=[], choices=PEERS, help="libraries to leave out")
    parser.add_argument("--compile", nargs="?", const="default", default="", metavar="MODE",
                        help="also measure torch.compile, in this mode: default, reduce-overhead, max-autotune")
    parser.add_argument("--device", default="cpu", help="cuda: all contenders on the GPU (training, compiled, "
                        "first_calls and growth)")
    given = parser.parse_args(arguments)
    for name in PEERS:
        if name not in given.without and importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: its columns are missing.", file=sys.stderr)
    rounds = 1 if given.smoke else given.rounds
    return Options(given.smoke, rounds, given.only, tuple(given.without), given.compile, given.device, given.threads,
                   given.processor, _load())


def with_gradients(operation: Work, leaves: Sequence[Any], make: Callable[[Any], Any]) -> Work:
    """The operation and its backward pass: its result, and the gradients of the leaves that it reads.

    `make` makes a tensor of an array.  The gradient of the result is not ones: that of a softmax would be zero.
    """
    weights: Any = None

    def work() -> Any:
        nonlocal weights
        for leaf in leaves:
            leaf.grad = None
        out = operation()
        if weights is None:
            array = np.cos(np.arange(math.prod(out.shape), dtype=np.float32))
            weights = make(array.reshape(tuple(out.shape)))
        out.backward(weights)
        return out, [leaf.grad for leaf in leaves if leaf.grad is not None]

    return work


def measure(cases: Callable[[Options], list[Case]], opts: Options) -> list[Row]:
    """Time every case.  `cases` is a function of a module: each contender calls it in its own process."""
    rows = []
    with ExitStack() as stack:
        processes: dict[str, Contender] = {}
        for case in cases(opts):
            if fnmatch.fnmatch(case.name, opts.only):
                names = opts.present(case.contenders)
                for name in names:
                    if name not in processes:
                        processes[name] = stack.enter_context(Contender(name, cases, opts))
                rows.append(_measured(case, {name: processes[name] for name in names}, opts))
                if not opts.smoke:
                    print(_line(rows[-1], rows[-1].contenders), *rows[-1].notes, sep="\n", file=sys.stderr, flush=True)
    return rows


def _measured(case: Case, contenders: dict[str, Contender], opts: Options) -> Row:
    row = Row(case)
    ready = _compared(case, contenders, row.notes)
    counts = {name: 1 if opts.smoke else contender("count", case.least) for name, contender in ready.items()}
    pause = 0.0 if opts.smoke else case.pause
    alone = opts.threads == 1 or not case.pause  # all contenders on the same core, because cores differ in speed
    for number in range(opts.rounds):
        turn = number if alone else None
        times = {name: contender("time", counts[name], pause, turn) / case.per for name, contender in ready.items()}
        row.rounds.append(times)
    for contender in ready.values():
        contender("build", None)
    return row


def _compared(case: Case, contenders: dict[str, Contender], notes: list[str]) -> dict[str, Contender]:
    """Build the work of all contenders, and return those whose results equal minigrad's."""
    ready: dict[str, Contender] = {}
    expected: Any = None
    for name, contender in contenders.items():
        try:
            contender("build", case.name)
            found = contender("values", case.calls)
        except Failed as error:
            if name in OURS:
                raise
            notes.append(f"{case.name}: {name} failed: {str(error).strip().splitlines()[-1]}")
            continue
        expected = found if expected is None else expected
        differs = difference(expected, found, case.tolerance)
        if differs is None:
            ready[name] = contender
        else:
            notes.append(f"{case.name}: {name} differs from minigrad: {differs}")
            contender("build", None)
    return ready


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, and a list of the contenders that were left out."""
    if not rows:
        return "nothing was measured\n"
    names = list(dict.fromkeys(name for row in rows for name in row.contenders))
    lines = [f"| work | {' | '.join(names)} | ratio | of minima | goal | |", "|---" * (len(names) + 5) + "|"]
    lines += [_line(row, names) for row in rows]
    notes = [f"- {note}" for row in rows for note in row.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _line(row: Row, names: list[str]) -> str:
    cells = [f"{text_of(row.median(n))} ({text_of(row.minimum(n))})" if n in row.contenders else "–" for n in names]
    ratios = ["–" if ratio is None else f"{ratio:.2f}" for ratio in (row.ratio, row.ratio_of_minima)]
    of = ", minima" if row.case.minima else ""
    goal = "" if row.case.goal is None else f"≤ {row.case.goal:g} × {row.case.peer}{of}"
    return f"| {row.case.name} | {' | '.join(cells + ratios)} | {goal} | {row.verdict} |"


def text_of(seconds: float) -> str:
    """A time with its unit.

    >>> text_of(0.0000123), text_of(0.25)
    ('12.3 µs', '250 ms')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:.3g} {unit}"
    raise AssertionError


def facts(opts: Options, contenders: Iterable[str] = ()) -> str:
    """The machine, its load, and the versions: figures mean little without them."""
    libraries = dict.fromkeys(["numpy", *[lib for lib in map(package, contenders) if lib != "minigrad"]])
    versions = [f"Python {platform.python_version()}", *[f"{n} {importlib.metadata.version(n)}" for n in libraries]]
    note = "smoke run: the figures mean nothing"
    if not opts.smoke:
        what = "processor seconds, " if opts.processor else ""
        note = f"{what}median (minimum) of {opts.rounds} rounds in turns, each contender in its own process"
    where = f"{processor()}, {os.cpu_count()} cores, {opts.threads} threads"
    if opts.device != "cpu":
        where = f"{graphics_processor()}, {where}"
    load = "" if opts.load is None else f"; load of the machine {opts.load:.1f} before, {_load():.1f} after"
    return f"{where}; {', '.join(versions)}; {note}{load}.\n"


def _load() -> float | None:
    """The mean number of running processes in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


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
    contenders = [name for row in rows for name in row.contenders]
    text = f"## {title}\n\n{facts(opts, contenders)}\n{table(rows)}"
    print(text)
    return text
