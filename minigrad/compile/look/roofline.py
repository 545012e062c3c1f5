"""The roofline: how long each step of a program takes, beside what this machine could do at best.

A step can be no faster than memory brings what it reads and writes, than the processor computes, and than a launch
takes.  Which of the three is longest bounds it, and how close the measured time comes to that is the fraction attained.
It may be above 1 where data come from a cache, which is faster than the memory that the bound is taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from ...core.mode import current_mode
from ...core.primitive import P
from ...devices.registry import CPU
from ...devices.threads import in_blocks
from ...support.table import as_html, as_table
from ..nodes.graph import Graph, node_like
from ..nodes.source import Source
from ..running.profiler import profile
from ..running.program import Executable, Program
from .values import starts_of

if TYPE_CHECKING:
    from .cost import KernelCost

COPIED = 1 << 24  # float32 numbers: more than caches hold
BLOCK = 1 << 18  # of these
ORDER = 512  # of the matrices that are multiplied
REPEATED = 10  # times, of which the fastest counts
HEAD = ("step", "time", "bound by", "at best", "attained")


@dataclass(frozen=True)
class Machine:
    """What this machine does at best, as measured: bytes and operations a second, and the seconds of a launch."""

    bandwidth: float
    flops: float
    launch: float


@dataclass(frozen=True)
class Measured:
    """A step of a program: its time in seconds, what that is bound by, and the time that the bound allows."""

    kernel: KernelCost
    seconds: float
    bound: str  # bandwidth, flops or launch
    best: float

    @property
    def attained(self) -> float:
        """The part of what the machine could do that is done."""
        return self.best / self.seconds if self.seconds else 0.0


class Roofline:
    """The steps of a program as measured, the fastest of some runs; `machine` is what they are compared with."""

    def __init__(self, machine: Machine, steps: list[Measured]) -> None:
        self.machine, self.steps = machine, steps

    def plain(self) -> dict[str, Any]:
        """All of it as plain data, for drawing."""
        steps = [
            {"name": s.kernel.name, "seconds": s.seconds, "bound": s.bound, "best": s.best, "attained": s.attained,
             "bytes": s.kernel.program.bytes, "flops": s.kernel.program.flops}
            for s in self.steps
        ]
        return {"machine": asdict(self.machine), "steps": steps}

    def rows(self) -> list[tuple[str, ...]]:
        """The table, a row for each step."""
        return [
            (s.kernel.name, f"{s.seconds * 1e6:,.1f} µs", s.bound, f"{s.best * 1e6:,.1f} µs", f"{s.attained:.0%}")
            for s in self.steps
        ]

    def __repr__(self) -> str:
        return f"{as_table(HEAD, self.rows(), left=1)}\n{self.limits()}"

    def _repr_html_(self) -> str:
        return f"{as_html(HEAD, self.rows())}<p>{self.limits()}</p>"

    def limits(self) -> str:
        """What the machine does at best, in words."""
        m = self.machine
        return f"{m.bandwidth / 1e9:.1f} GB/s, {m.flops / 1e9:,.0f} GFLOP/s, {m.launch * 1e6:.1f} µs a launch"


def measured(program: Executable, kernels: Sequence[KernelCost], runs: int) -> Roofline:
    """Run a program some times, on inputs of its own, and time its steps.  What has effects has them each time."""
    arrays, starts = _inputs(program), starts_of(program.graph)
    fastest: dict[str, float] = {}
    for number in range(runs + 1):
        with profile() as run:
            program(arrays, starts)
        for event in run.events if number else ():  # the first one warms up
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
    """Numbers between 0 and 1 for all inputs but the constants; as integers 0, which are positions anywhere."""
    rng = np.random.default_rng(0)
    inputs = program.plan.inputs[: len(program.plan.inputs) - len(program.constants)]
    return [buffer.device.from_numpy(rng.random(buffer.shape).astype(buffer.dtype)) for buffer in inputs]


# The machine --------------------------------------------------------------------------------------------------------


@cache
def machine() -> Machine:
    """What this machine does at best: measured once in a process, in about a tenth of a second."""
    return Machine(_bandwidth(), _flops(), _launch())


def _fastest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATED):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _bandwidth() -> float:
    """Bytes that are read and written in a second when a large array is copied."""
    source, target = np.zeros(COPIED, np.float32), np.ones(COPIED, np.float32)

    def copy() -> None:
        in_blocks(lambda start, stop: np.copyto(target[start:stop], source[start:stop]), COPIED, BLOCK)

    return 2 * source.nbytes / _fastest(copy)


def _flops() -> float:
    """Operations in a second of a matrix product."""
    x = np.ones((ORDER, ORDER), np.float32)
    out = np.empty_like(x)
    return 2 * ORDER**3 / _fastest(lambda: np.matmul(x, x, out))


def _launch() -> float:
    """The seconds of a step that has hardly anything to do."""
    x = Source("tensor", None, (1,), float32, CPU, current_mode())
    program = Program(Graph([x], [node_like(P.add, (x, 1), {}, like=x)]))

    def once() -> float:
        with profile() as run:
            program([np.zeros(1, np.float32)])
        return run.events[0].end - run.events[0].begin

    once()
    return min([once() for _ in range(REPEATED)])
