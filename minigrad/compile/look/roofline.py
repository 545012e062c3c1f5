"""The roofline: the time of each step of a program, beside the best that this machine can do.

Three times bound a step: moving its bytes, computing its operations, and its launches.  The longest of the three is the
bound, and bound / measured time is the fraction attained.  Few bytes are in a cache, and move faster than those in
memory: a step is compared with a copy of about as many bytes as it moves.  Another program that runs at the same time
lowers the limits that are measured.  If a step is faster than a limit, the limits are measured again, and refused if it
is still much faster.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter

import numpy as np

from ...core.dtypes import float32
from ...core.mode import current_mode
from ...core.node import Node
from ...devices.registry import CPU
from ...devices.threads import in_blocks
from ...support.errors import CompileError, MinigradError
from ...support.table import as_html, as_table
from ..nodes.graph import Graph, Replacing, Source
from ..running.profiler import Event, profile
from ..running.program import Program
from .cost import Cost, KernelCost

IN_MEMORY = 1 << 27  # bytes that a copy reads and writes: more than caches hold
IN_CACHES = [1 << power for power in range(18, 27)]  # and numbers of them that caches may hold
BLOCK = 1 << 18  # float32 numbers that a thread copies at a time
ORDER = 512  # of the matrices in the measured product
REPEATED = 10  # runs, of which the fastest counts
SLACK = 1.25  # a measured limit may be lower than what a step attains by this factor
AGAIN = 3  # times, the limits are measured again
HEAD = ("step", "time", "bound by", "at best", "attained")


@dataclass(frozen=True)
class Machine:
    """The measured limits of this machine: bytes and operations a second, and the seconds of a launch."""

    bandwidth: float  # of memory
    flops: float
    launch: float
    caches: tuple[float, ...] = ()  # bytes a second of copies that caches may hold, for each number of `IN_CACHES`

    def at_best(self, other: Machine) -> Machine:
        """The better of both limits in each respect."""
        return Machine(
            max(self.bandwidth, other.bandwidth), max(self.flops, other.flops), min(self.launch, other.launch),
            tuple(map(max, self.caches, other.caches)),
        )

    def moving(self, size: int) -> tuple[str, float]:
        """Where this number of bytes is, and the bytes a second of the fastest copy of about as many, or of more.

        >>> limits = Machine(1e10, 1e11, 1e-6, tuple([1e11] * len(IN_CACHES)))
        >>> limits.moving(1_000_000), limits.moving(1_000_000_000)
        (('cache', 100000000000.0), ('memory', 10000000000.0))
        """
        held = self.caches[max(bisect_right(IN_CACHES, size) - 1, 0):]
        return ("cache", max(held)) if held and size < IN_MEMORY else ("memory", self.bandwidth)


@dataclass(frozen=True)
class Measured:
    """A step of a program: its time in seconds, the kind of its bound, and the time that the bound allows."""

    kernel: KernelCost
    seconds: float
    bound: str  # memory, cache, flops or launch
    best: float  # may be more than the time: some steps are faster than a copy, as a sum, which writes little

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
        cached = f", up to {max(m.caches) / 1e9:.1f} GB/s in caches" if m.caches else ""
        return f"{m.bandwidth / 1e9:.1f} GB/s{cached}, {m.flops / 1e9:,.0f} GFLOP/s, {m.launch * 1e6:.1f} µs a launch"


def roofline_of(cost: Cost | None, events: Iterable[Event]) -> Roofline:
    """The roofline of a program, from its cost and from the events of a run.  What launches nothing has no bound."""
    if cost is None:
        raise CompileError("no program ran", hint="mg.jit(f).record(*arguments).roofline()")
    kernels = {kernel.name: kernel for kernel in cost.kernels if kernel.program.launches}
    taken: dict[str, float] = {}
    for event in events:
        if event.name in kernels:
            taken[event.name] = min(taken.get(event.name, np.inf), event.end - event.begin)
    steps = [(kernels[name], seconds) for name, seconds in taken.items()]
    this = _plausible(machine(), steps)
    return Roofline(this, [compared(kernel, seconds, this) for kernel, seconds in steps])


def _plausible(found: Machine, steps: Sequence[tuple[KernelCost, float]]) -> Machine:
    """The limits of this machine, measured again if a step is faster; an error if it is faster than these, too."""
    for _ in range(AGAIN):
        if _exceeded(found, steps) is None:
            return found
        machine.cache_clear()
        found = found.at_best(machine())
    if reason := _exceeded(found, steps, SLACK):
        raise MinigradError(
            f"the machine is busy: {reason}", expect="limits that are higher than what the program attains",
            hint="measure again while no other program runs",
        )
    return found


def _exceeded(machine: Machine, steps: Sequence[tuple[KernelCost, float]], slack: float = 1.0) -> str | None:
    """Which step is faster than the limits by a factor, in words."""
    for kernel, seconds in steps:
        computed, moved = kernel.program.flops / (seconds or np.inf), kernel.program.bytes / (seconds or np.inf)
        if computed > slack * machine.flops:
            limit = machine.flops / 1e9
            return f"{kernel.name} attained {computed / 1e9:,.1f} GFLOP/s, above the measured limit of {limit:,.1f}"
        if moved > slack * machine.bandwidth and kernel.program.bytes >= IN_MEMORY:
            limit = machine.bandwidth / 1e9
            return f"{kernel.name} moved {moved / 1e9:,.1f} GB/s, above the measured limit of {limit:,.1f}"
    return None


def compared(kernel: KernelCost, seconds: float, machine: Machine) -> Measured:
    """A step that took some seconds, beside the lowest of the limits that it meets."""
    taken = kernel.program
    place, rate = machine.moving(taken.bytes)
    limits = {
        place: taken.bytes / rate, "flops": taken.flops / machine.flops, "launch": machine.launch * taken.launches,
    }
    bound = max(limits, key=limits.__getitem__)
    return Measured(kernel, seconds, bound, limits[bound])


# The machine --------------------------------------------------------------------------------------------------------


@cache
def machine() -> Machine:
    """The limits of this machine, measured once in a process, in about a fifth of a second."""
    return Machine(_copied(IN_MEMORY), _flops(), _launch(), tuple(map(_copied, IN_CACHES)))


def fastest(work: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls."""
    times = []
    for _ in range(REPEATED):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _copied(size: int) -> float:
    """The bytes a second of a copy that reads and writes this number of bytes, with one thread or several."""
    source, target = np.zeros(size // 8, np.float32), np.ones(size // 8, np.float32)

    def copy(start: int, stop: int) -> None:
        np.copyto(target[start:stop], source[start:stop])

    return size / min([fastest(partial(in_blocks, copy, source.size, step)) for step in (BLOCK, source.size)])


def _flops() -> float:
    """The operations of a matrix product in a second, with the threads that programs use.

    A library computes one product, and a generated kernel that of windows.  Either may use more of the processor.
    """
    def of_windows(new: Replacing, x: Node) -> Node:
        matrix = new.windows(x, axis=(0,), size=(ORDER,), stride=(1,), dilation=(1,))
        return new.matmul(matrix, matrix)

    library = _of_step((ORDER, ORDER), lambda new, x: new.matmul(x, x))
    return 2 * ORDER**3 / min(library, _of_step((2 * ORDER - 1,), of_windows))


def _launch() -> float:
    """The seconds of a step that does almost nothing."""
    return _of_step((1,), lambda new, x: new.add(x, 1))


def _of_step(shape: tuple[int, ...], operation: Callable[[Replacing, Node], Node]) -> float:
    """The seconds of the fastest run of a step."""
    x = Source("tensor", None, shape, float32, CPU, current_mode())
    program, given = Program(Graph([x], [operation(Replacing(x), x)])), np.ones(shape, np.float32)

    def once() -> float:
        with profile() as run:
            program([given])
        return run.events[-1].end - run.events[0].begin

    once()
    return min([once() for _ in range(REPEATED)])
