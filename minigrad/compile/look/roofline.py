"""The roofline: the time of each step of a program, beside the best that this machine can do.

Three times bound a step: moving its bytes through memory, computing its operations, and a launch.  The longest of the
three is the bound, and bound / measured time is the fraction attained.  It may exceed 1 where data come from a cache,
which is faster than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from ...core.mode import current_mode
from ...devices.registry import CPU
from ...devices.threads import in_blocks
from ...support.table import as_html, as_table
from ..nodes.graph import Graph, Replacing
from ..nodes.source import Source
from ..running.profiler import profile
from ..running.program import Executable, Program
from .values import starts_of

if TYPE_CHECKING:
    from .cost import KernelCost

COPIED = 1 << 24  # float32 numbers: more than caches hold
BLOCK = 1 << 18  # of these numbers, for each thread at a time
ORDER = 512  # of the matrices in the measured product
REPEATED = 10  # runs, of which the fastest counts
HEAD = ("step", "time", "bound by", "at best", "attained")


@dataclass(frozen=True)
class Machine:
    """The measured limits of this machine: bytes and operations a second, and the seconds of a launch."""

    bandwidth: float
    flops: float
    launch: float


@dataclass(frozen=True)
class Measured:
    """A step of a program: its time in seconds, the kind of its bound, and the time that the bound allows."""

    kernel: KernelCost
    seconds: float
    bound: str  # bandwidth, flops or launch
    best: float

    @property
    def attained(self) -> float:
        """The fraction of the machine's best."""
        return self.best / self.seconds if self.seconds else 0.0


class Roofline:
    """The measured steps of a program, each in its fastest run, and the limits of the machine."""

    def __init__(self, machine: Machine, steps: list[Measured]) -> None:
        self.machine, self.steps = machine, steps

    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table, one for each step."""
        return [
            (s.kernel.name, f"{s.seconds * 1e6:,.1f} µs", s.bound, f"{s.best * 1e6:,.1f} µs", f"{s.attained:.0%}")
            for s in self.steps
        ]

    def __repr__(self) -> str:
        return f"{as_table(HEAD, self.rows(), left=1)}\n{self.limits()}"

    def _repr_html_(self) -> str:
        return f"{as_html(HEAD, self.rows())}<p>{self.limits()}</p>"

    def limits(self) -> str:
        """The limits of the machine, in words."""
        m = self.machine
        return f"{m.bandwidth / 1e9:.1f} GB/s, {m.flops / 1e9:,.0f} GFLOP/s, {m.launch * 1e6:.1f} µs a launch"


def measured(program: Executable, kernels: Sequence[KernelCost], runs: int) -> Roofline:
    """Run a program several times on made-up inputs, and time its steps.  Effects happen in each run."""
    arrays, starts = _inputs(program), starts_of(program.graph)
    fastest: dict[str, float] = {}
    for number in range(runs + 1):
        with profile() as run:
            program(arrays, starts)
        for event in run.events if number else ():  # the first run warms up
            fastest[event.name] = min(fastest.get(event.name, np.inf), event.end - event.begin)
    this = machine()
    return Roofline(this, [_compared(k, fastest[k.name], this) for k in kernels if k.name in fastest])


def _compared(kernel: KernelCost, seconds: float, machine: Machine) -> Measured:
    taken = kernel.program
    limits = {"bandwidth": taken.bytes / machine.bandwidth, "flops": taken.flops / machine.flops}
    limits["launch"] = machine.launch
    bound = max(limits, key=limits.__getitem__)
    return Measured(kernel, seconds, bound, limits[bound])


def _inputs(program: Executable) -> list[Any]:
    """Random numbers from 0 to 1 for all inputs except constants; integers are 0, a valid position everywhere."""
    rng = np.random.default_rng(0)
    inputs = program.plan.inputs[: len(program.plan.inputs) - len(program.constants)]
    return [buffer.device.from_numpy(rng.random(buffer.shape).astype(buffer.dtype)) for buffer in inputs]


# The machine --------------------------------------------------------------------------------------------------------


@cache
def machine() -> Machine:
    """The limits of this machine, measured once in a process, in about a tenth of a second."""
    return Machine(_bandwidth(), _flops(), _launch())


def fastest(work: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls."""
    times = []
    for _ in range(REPEATED):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _bandwidth() -> float:
    """The bytes that a copy of a large array reads and writes in a second."""
    source, target = np.zeros(COPIED, np.float32), np.ones(COPIED, np.float32)

    def copy() -> None:
        in_blocks(lambda start, stop: np.copyto(target[start:stop], source[start:stop]), COPIED, BLOCK)

    return 2 * source.nbytes / fastest(copy)


def _flops() -> float:
    """The operations of a matrix product in a second."""
    x = np.ones((ORDER, ORDER), np.float32)
    out = np.empty_like(x)
    return 2 * ORDER**3 / fastest(lambda: np.matmul(x, x, out))


def _launch() -> float:
    """The seconds of a step that does almost nothing."""
    x = Source("tensor", None, (1,), float32, CPU, current_mode())
    program = Program(Graph([x], [Replacing(x).add(x, 1)]))

    def once() -> float:
        with profile() as run:
            program([np.zeros(1, np.float32)])
        return run.events[0].end - run.events[0].begin

    once()
    return min([once() for _ in range(REPEATED)])
