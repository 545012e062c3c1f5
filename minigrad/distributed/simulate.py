"""The time of a data-parallel step on more workers than there are here: a model with few numbers.

    machine = Machine(latency=20e-6, bandwidth=10e9)                     # or measure_machine(comm)
    step = Step.even(24, forward=0.05, backward=0.1, gradients=1e9)      # or measure_step(loss, parameters)
    step_time(step, machine, 1000)
    step_time(step, machine, 1000, bucket=1e6)                           # what if buckets were 1 MB?
    step_time(step, machine, 1000, slow=1, slowdown=1.1)                 # what if one worker is 10 % slower?

`ASSUMPTIONS` lists what the model takes for granted; `mg.viz.cluster` draws its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from itertools import accumulate, pairwise
from math import ceil, inf, log2
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..support.errors import DistributedError
from ..support.words import shown
from .communicators import Communicator

ASSUMPTIONS = (
    "A message of b bytes takes latency + b / bandwidth; all workers send at the same time, without congestion.",
    "All-reduce: the faster of a ring, 2 (n − 1) messages of b / n bytes, and a tree, 2 ⌈log₂ n⌉ messages of b bytes.",
    "A bucket is sent when the backward pass has filled it, one at a time; this does not slow down computing.",
    "All wait for the slowest: delays are exponential, with the mean jitter; slow workers are slow in each step.",
    "Each worker computes a whole batch; with fixed_batch, n workers share one and need 1 / n of the time.",
    "Sharded: a ring reduce-scatter of each bucket, 1 / n of the update, a ring all-gather of the parameters.",
)
DRAWS = 200  # steps in which the delays of all workers are drawn
MOST = 100_000  # buckets
EXACT = 1 - 1e-12  # rounding may leave a rest of a sum of bytes, which does not fill one more bucket
SIZES = tuple(4**power for power in range(1, 13))  # of the measured all-reduces, in bytes


class Transfer(NamedTuple):
    """A collective: its seconds, the bytes that the busiest worker sends, and the algorithm."""

    seconds: float
    bytes: float
    algorithm: str


@dataclass(frozen=True)
class Machine:
    """Equal workers and the network between them.

    `latency` is the seconds of an empty message, and `bandwidth` the bytes a second from one worker to another.
    `jitter` is the mean delay of a worker, as a fraction of its time; `slow` workers take `slowdown` times as long.

    >>> Machine(latency=20e-6, bandwidth=10e9).allreduce(100e6, 8)
    Transfer(seconds=0.01778, bytes=175000000.0, algorithm='ring')
    """

    latency: float
    bandwidth: float
    jitter: float = 0.0
    slow: int = 0
    slowdown: float = 1.0

    def ring(self, size: float, workers: int, rounds: int = 2) -> Transfer:
        """An all-reduce of `size` bytes in a ring; with `rounds=1`, a reduce-scatter or an all-gather."""
        messages, chunk = rounds * (workers - 1), size / workers
        return Transfer(messages * (self.latency + chunk / self.bandwidth), messages * chunk, "ring")

    def tree(self, size: float, workers: int) -> Transfer:
        """An all-reduce in a tree: up to one worker, which then sends the sum to log2(n) others."""
        levels = ceil(log2(workers))
        return Transfer(2 * levels * (self.latency + size / self.bandwidth), levels * size, "tree")

    def allreduce(self, size: float, workers: int, algorithm: str = "faster") -> Transfer:
        """An all-reduce of `size` bytes by "ring", "tree" or the faster of the two."""
        ways = {"ring": self.ring(size, workers), "tree": self.tree(size, workers)}
        return ways.get(algorithm) or min(ways.values())

    def slowest(self, workers: int) -> float:
        """How many times as long as an undisturbed worker the slowest one computes, on average over many steps.

        >>> [round(Machine(0, 1, jitter=0.01).slowest(n), 2) for n in (1, 100, 10_000)]
        [1.01, 1.05, 1.1]
        """
        return _slowest(self.jitter, self.slow, self.slowdown, workers)


@cache
def _slowest(jitter: float, slow: int, slowdown: float, workers: int) -> float:
    """The mean of drawn maxima.  A worker has the same delays in a run of more workers."""
    always = np.where(np.arange(workers) < slow, slowdown, 1.0)
    draws = [np.random.default_rng(seed).exponential(jitter, workers) for seed in range(DRAWS if jitter else 1)]
    return float(np.mean([(always + delays).max() for delays in draws]))


class Layer(NamedTuple):
    """The seconds of a layer forward and backward, and the bytes of its gradients, which are there at its end."""

    forward: float
    backward: float
    gradients: float


@dataclass(frozen=True)
class Step:
    """A training step of one worker: its layers in the order of the forward pass, and how gradients are summed.

    `update` is the seconds of the optimizer, and `bucket` the bytes that are sent together: buckets may divide a layer.
    With `overlap=False` the transfers begin after the backward pass.  `algorithm` is "ring", "tree" or "faster".
    """

    layers: Sequence[Layer]
    update: float = 0.0
    bucket: float = 25e6
    overlap: bool = True
    sharded: bool = False
    algorithm: str = "faster"
    fixed_batch: bool = False

    @classmethod
    def even(cls, layers: int, forward: float, backward: float, gradients: float, **more: Any) -> Step:
        """A step of equal layers; the seconds and bytes are those of all layers together.

        >>> Step.even(4, forward=0.1, backward=0.2, gradients=100e6, bucket=50e6).buckets()
        [(0.1, 50000000.0), (0.2, 50000000.0)]
        """
        return cls([Layer(forward / layers, backward / layers, gradients / layers) for _ in range(layers)], **more)

    @property
    def gradients(self) -> float:
        """The bytes of all gradients."""
        return float(sum(layer.gradients for layer in self.layers))

    @property
    def seconds(self) -> float:
        """The time of one worker alone."""
        return float(sum(layer.forward + layer.backward for layer in self.layers)) + self.update

    def buckets(self) -> list[tuple[float, float]]:
        """When each bucket is full, in seconds since the backward pass began, and its bytes."""
        times, filled = (list(accumulate(column)) for column in list(zip(*self.layers[::-1]))[1:])
        many = ceil(filled[-1] / self.bucket * EXACT)
        ends = [i * self.bucket for i in range(1, many)] + filled[-1:] * (many > 0)
        layers = np.searchsorted(filled, np.multiply(ends, EXACT))  # the layers that fill the buckets
        return [(times[layer], end - begin) for layer, begin, end in zip(layers, [0.0, *ends], ends)]


class Span(NamedTuple):
    """Something that happens in a step: its times, and the bytes sent; `lane` is "computing" or "network"."""

    lane: str
    name: str
    begin: float
    end: float
    bytes: float = 0.0


class StepTime(NamedTuple):
    """The time of a step on some workers: `compute` is the seconds in which the slowest one computes, `waiting` the
    fraction of the step in which it waits for the network, and `bytes` what the busiest worker sends.  The efficiency
    is the time that one undisturbed worker would need for its work, as a fraction of the step."""

    workers: int
    seconds: float
    compute: float
    waiting: float
    efficiency: float
    bytes: float
    spans: tuple[Span, ...]

    def __repr__(self) -> str:
        return (
            f"<{self.workers:,} worker{'s' * (self.workers > 1)}: {self.seconds * 1e3:.4g} ms a step, "
            f"efficiency {self.efficiency:.0%}, waiting for the network {self.waiting:.0%}>"
        )


def step_time(step: Step, machine: Machine, workers: int, **what_if: Any) -> StepTime:
    """How long a step takes on a number of workers.  `what_if` replaces fields of the step or of the machine.

    >>> machine = Machine(latency=20e-6, bandwidth=10e9)
    >>> step = Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    >>> step_time(step, machine, 1000)
    <1,000 workers: 1852 ms a step, efficiency 8%, waiting for the network 92%>
    >>> step_time(step, machine, 1000, bucket=500e6)
    <1,000 workers: 379.7 ms a step, efficiency 40%, waiting for the network 60%>
    """
    step, machine = changed(step, machine, what_if)
    _check(workers, step, machine)
    slower, batch = machine.slowest(workers), 1 / workers if step.fixed_batch else 1.0
    spans = list[Span]()

    def then(lane: str, name: str, begin: float, seconds: float, sent: float = 0.0) -> float:
        spans.append(Span(lane, name, begin, begin + seconds, sent))
        return begin + seconds

    now = free = 0.0
    for layer in step.layers:
        now = then("computing", "forward", now, slower * batch * layer.forward)
    begun = now
    for layer in step.layers[::-1]:
        now = then("computing", "backward", now, slower * batch * layer.backward)
    for full, size in step.buckets():
        how = machine.ring(size, workers, 1) if step.sharded else machine.allreduce(size, workers, step.algorithm)
        begin = max(free, begun + slower * batch * full if step.overlap else now)
        free = then("network", "reduce-scatter" if step.sharded else how.algorithm, begin, how.seconds, how.bytes)
    end = then("computing", "update", max(now, free), slower * step.update / (workers if step.sharded else 1))
    compute = end - max(0.0, free - now)
    if step.sharded:
        how = machine.ring(step.gradients, workers, 1)
        end = then("network", "all-gather", end, how.seconds, how.bytes)
    share, waits = (batch * step.seconds / end, 1 - compute / end) if end else (1.0, 0.0)
    return StepTime(workers, end, compute, waits, share, sum(span.bytes for span in spans), tuple(spans))


def changed(step: Step, machine: Machine, what_if: dict[str, Any]) -> tuple[Step, Machine]:
    """The step and the machine with other values of some fields, by name."""
    known = [field.name for each in (step, machine) for field in fields(each)]
    if unknown := what_if.keys() - known:
        raise DistributedError(f"neither Step nor Machine has a field {shown(min(unknown))}", expect=", ".join(known))
    ours, theirs = ({n: v for n, v in what_if.items() if hasattr(each, n)} for each in (step, machine))
    return replace(step, **ours), replace(machine, **theirs)


def _check(workers: int, step: Step, machine: Machine) -> None:
    least = {"update": 0, "bucket": max(step.gradients / MOST, 1), "latency": 0, "bandwidth": 1, "jitter": 0, "slow": 0,
             "slowdown": 1, "workers": 1}
    for name, value in {**vars(step), **vars(machine), "workers": workers}.items():
        if name in least and not least[name] <= value < inf:
            raise DistributedError(f"step_time: {name}={shown(value)}", expect=f"a number from {least[name]:,.0f}")
    if step.algorithm not in ("ring", "tree", "faster"):
        raise DistributedError(f"step_time: algorithm={shown(step.algorithm)}", expect="'ring', 'tree' or 'faster'")
    if not step.layers or not all(0 <= number < inf for layer in step.layers for number in layer):
        raise DistributedError("step_time: a step has layers, whose seconds and bytes are not negative")


# Measured -------------------------------------------------------------------------------------------------------------


def measure_machine(comm: Communicator, sizes: Sequence[int] = SIZES, runs: int = 20) -> Machine:
    """Latency and bandwidth, fitted to the fastest all-reduces of some sizes in bytes; all ranks call it."""
    if comm.size == 1:
        raise DistributedError("measure_machine: one rank sends nothing",
                               hint="python -m minigrad.distributed -n 2 train.py starts two ranks")
    buffers = [np.zeros(size // 4, np.float32) for size in sizes]
    times = [_seconds(partial(_allreduce, comm, buffer), runs, comm.barrier) for buffer in buffers]
    longest = comm.allreduce(np.array(times), "max")[:, None]
    fit, units = Machine(0.0, 1.0), (Machine(1.0, 1e300), Machine(0.0, 1.0))
    for _ in range(10):  # the faster algorithm depends on the fit, which begins with rings
        ways = [fit.allreduce(b.nbytes, comm.size).algorithm for b in buffers]
        parts = [[u.allreduce(b.nbytes, comm.size, way).seconds for u in units] for b, way in zip(buffers, ways)]
        latency, byte = np.linalg.lstsq(np.array(parts) / longest, np.ones(len(parts)), rcond=None)[0]
        fit = Machine(max(float(latency), 0.0), 1 / max(float(byte), 1e-15))
    return fit


def _allreduce(comm: Communicator, buffer: Any) -> None:
    comm.start_allreduce(buffer).wait()


def _seconds(work: Callable[[], Any], runs: int, before: Callable[[], Any] = lambda: None) -> float:
    times = []
    for _ in range(runs + 1):
        before()
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times[1:])  # the first run warms up; delays are not part of the calibration


def measure_step(
    loss: Callable[[], Tensor], parameters: Iterable[Tensor], update: Callable[[], Any] = lambda: None,
    jitted: Callable[[], Any] | None = None, runs: int = 7,
) -> Step:
    """The step of a model: the fastest of some runs of `loss()`, its backward pass, and `update()`.

    Each parameter counts as a layer.  Its gradient is there when its hook runs, and it gets the same part of the
    forward pass as of the backward pass.  Times are scaled to those of `jitted()`, the same step as a program.

    >>> net = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Tanh(), mg.nn.Linear(8, 2))
    >>> step = measure_step(lambda: net(mg.ones((3, 4))).sum(), net.parameters())
    >>> len(step.layers), step.gradients
    (4, 232.0)
    """
    given = list(parameters)
    step = min([_timed_step(loss, given, update) for _ in range(runs + 1)][1:], key=lambda step: step.seconds)
    scale = 1.0 if jitted is None else _seconds(jitted, runs) / step.seconds
    layers = [Layer(layer.forward * scale, layer.backward * scale, layer.gradients) for layer in step.layers]
    return replace(step, layers=layers, update=step.update * scale)


def _timed_step(loss: Callable[[], Tensor], parameters: list[Tensor], update: Callable[[], Any]) -> Step:
    arrived: list[tuple[float, int]] = []
    hooks = [p.register_hook(lambda g: arrived.append((perf_counter(), g.nbytes))) for p in parameters]
    times = [perf_counter()]
    value = loss()
    for work in (value.backward, update):
        times.append(perf_counter())
        work()
    begin, middle, end, updated = *times, perf_counter()
    for parameter, remove in zip(parameters, hooks):
        remove()
        parameter.grad = None
    if not arrived:
        raise DistributedError("measure_step: the loss has no gradient with respect to these parameters")
    ends, share = [middle, *[time for time, _ in arrived[:-1]], end], (middle - begin) / (end - middle)
    layers = [Layer((b - a) * share, b - a, size) for (a, b), (_, size) in zip(pairwise(ends), arrived)]
    return Step(layers[::-1], updated - end)
