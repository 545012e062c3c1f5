"""Placement: a model of the time that a graph takes with its nodes on several devices, and of what moving parts gains.

The model: nodes run one by one, as programs on several devices do.  A node takes as long as its memory traffic or its
arithmetic, whichever is slower, and a launch.  A view takes no time.  A value that is read on another device is moved
there once, in the time of its bytes and the latency of the link.  Each device has `streams` that work at the same time
and do not slow each other down; each direction between two devices has one.  The work with the longest chain after it
begins first.  Inputs are where they are, and results are moved to where they are expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ...devices.registry import CPU, Device, as_device, available_devices
from ...support.errors import DeviceError
from ...support.table import as_table, counted
from ..fusion.count import Count, eager_count
from ..nodes.graph import Graph, Titled
from ..nodes.view import views_of
from .roofline import Machine, fastest, machine

Placement = Mapping[Node, Any]  # node -> device or its name; all other nodes stay where they are
# For devices that are not here: about a GPU of a data centre, and its link to the processor (PCIe 4).
GPU = Machine(bandwidth=2e12, flops=2e13, launch=5e-6)
MOVED = 1 << 22  # float32 numbers: a transfer that is measured
HEAVIEST = 8  # single nodes in a report
TRIED = 40  # parts that a search moves, the heaviest ones: the time of each try grows with the graph
LEAST_GAIN = 1e-6  # of a move: smaller ones are rounding
HEAD = ("part", "nodes", "here", "there", "transfers", "graph then", "gain")


@dataclass(frozen=True)
class Link:
    """A connection between devices: bytes a second, and the seconds before the first byte arrives."""

    bandwidth: float = 2e10
    latency: float = 1e-5


@dataclass(frozen=True)
class System:
    """The limits of devices, by name, the link between each two of them, and the streams of each device."""

    machines: Mapping[str, Machine]
    link: Link = field(default_factory=Link)
    streams: int = 1

    def seconds(self, count: Count, device: str) -> float:
        """How long a computation takes on a device."""
        if device not in self.machines:
            raise DeviceError(
                f"placement: there are no figures for the device {device!r}", expect=", ".join(self.machines),
                hint="System({..., name: Machine(bandwidth, flops, launch)}, link)",
            )
        one = self.machines[device]
        return max(count.bytes / one.bandwidth, count.flops / one.flops) + one.launch * count.launches


def measured_system(*devices: str) -> System:
    """The limits of these devices, and of the link to the last one.  CPUs are measured, others have those of `GPU`."""
    kinds = {name: as_device(name) for name in devices if name in available_devices() or not name.startswith("cuda")}
    machines = {name: machine() if name in kinds and kinds[name].is_standard else GPU for name in devices}
    last = kinds.get(devices[-1], CPU)
    return System(machines, Link() if last is CPU else _link(last))


@cache
def _link(device: Device) -> Link:
    small, large = np.ones(1, np.float32), np.ones(MOVED, np.float32)
    latency, time = [fastest(partial(device.receive, array, CPU)) for array in (small, large)]
    return Link(large.nbytes / time, latency)


class Task(NamedTuple):
    """Work on a lane, which is a device (`cuda`) or a direction (`cpu -> cuda`), after the tasks of these numbers."""

    name: str
    lane: str
    seconds: float
    after: tuple[int, ...]
    node: Any = None  # that is computed or moved
    moves: bool = False  # whether it is a transfer
    count: Count = Count()  # type: ignore[assignment]  # a tuple has a method of that name


class Span(NamedTuple):
    """A task with its times in seconds."""

    task: Task
    stream: int
    begin: float
    end: float


class Prediction(Titled):
    """The predicted times of a graph: `spans` are the bars of a Gantt chart, `seconds` is when the last one ends."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans, self.transfers = spans, [span for span in spans if span.task.moves]
        self.seconds = max([span.end for span in spans], default=0.0)

    def listing(self) -> str:
        """The work by lane and time."""
        spans = sorted(self.spans, key=lambda span: (span.task.lane, span.begin))
        rows = [(span.task.lane, span.task.name, _time(span.begin), _time(span.end)) for span in spans]
        table = as_table(("on", "what", "begins", "ends"), rows, left=2)
        return f"{table}\n{_time(self.seconds)} in all, with {counted(len(self.transfers), 'transfer')}"

    def __repr__(self) -> str:
        return f"<prediction: {_time(self.seconds)}, {counted(len(self.transfers), 'transfer')}>"


def predicted(graph: Graph, placement: Placement | None = None, system: System | None = None) -> Prediction:
    """How long a graph takes by the model, with the nodes in `placement` on these devices.

    The transfers in the graph itself do not matter: a value is moved to where the placement needs it.

    >>> graph = mg.trace(lambda x: mg.tanh(x @ x), mg.ones((1000, 1000)))
    >>> system = System({"cpu": Machine(1e10, 1e11, 1e-6), "cuda": GPU}, Link(1e10, 1e-5))
    >>> print(predicted(graph, {graph.nodes[0]: "cuda"}, system))
    on           what        begins        ends
    cpu          tanh_1    925.0 µs  1,726.0 µs
    cpu -> cuda  tensor_1    0.0 µs    410.0 µs
    cuda         matmul_1  410.0 µs    515.0 µs
    cuda -> cpu  matmul_1  515.0 µs    925.0 µs
    1,726.0 µs in all, with 2 transfers
    """
    return _Model(graph, system, (placement or {}).values()).predicted(placement or {})


class _Model:
    """What the predictions of one graph share."""

    def __init__(self, graph: Graph, system: System | None, devices: Iterable[Any] = ()) -> None:
        self.graph, self.names, views = graph, graph.names(), views_of(graph)
        moves = {node: Count() for node in graph.nodes if node.op is P.to_device}
        self.counts = {node: eager_count(node, views) for node in graph.nodes} | moves
        self.work = [node for node, count in self.counts.items() if count.launches]
        self.home = {node: node.device.name for node in (*graph.inputs, *graph.nodes)}
        self.system = system or measured_system(*dict.fromkeys([*self.home.values(), *map(str, devices)]))

    def seconds(self, nodes: Iterable[Node], device: str | None = None) -> float:
        """How long these nodes take on a device, one after the other; None: where they are."""
        return sum([self.system.seconds(self.counts[node], device or self.home[node]) for node in nodes])

    def predicted(self, placement: Placement) -> Prediction:
        """The times with this placement."""
        tasks: list[Task] = []
        made: dict[Node, tuple[str, tuple[int, ...]]] = {}  # where a value is, and the tasks that compute it
        moved: dict[tuple[Node, str], int] = {}  # the numbers of the transfers

        def found(node: Node) -> tuple[str, tuple[int, ...]]:
            return made.get(node) or (self.home[node], ())

        def ready(node: Node, device: str) -> tuple[int, ...]:
            """The tasks after which the value is on the device."""
            while node.op is P.to_device:
                node = node.inputs[0]
            home, after = found(node)
            if home == device:
                return after
            if (node, device) not in moved:
                moved[node, device] = len(tasks)
                seconds = self.system.link.latency + node.nbytes / self.system.link.bandwidth
                lane, count = f"{home} -> {device}", Count(node.nbytes)
                tasks.append(Task(self.names[node], lane, seconds, after, node, moves=True, count=count))
            return (moved[node, device],)

        for node, count in self.counts.items():
            inputs = [i for i in node.inputs if isinstance(i, Node)]
            if not count.launches and inputs:
                made[node] = found(inputs[0])  # a view is where its memory is
                continue
            device = str(placement.get(node, self.home[node]))
            after = tuple(dict.fromkeys([task for i in inputs for task in ready(i, device)]))
            made[node] = device, (len(tasks),)
            tasks.append(Task(self.names[node], device, self.system.seconds(count, device), after, node, count=count))
        for node in self.graph.outputs:
            ready(node, self.home[node])
        return Prediction(scheduled(tasks, self.system.streams))


def scheduled(tasks: Sequence[Task], streams: int = 1) -> list[Span]:
    """When each task runs: a device has several streams, a direction between two has one.

    A free stream takes, among the tasks that are ready, the one with the longest chain of tasks after it.
    """
    readers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for before in task.after:
            readers[before].append(number)
    ahead = [task.seconds for task in tasks]  # the longest chain from a task to the end
    for number in reversed(range(len(tasks))):
        ahead[number] += max([ahead[reader] for reader in readers[number]], default=0.0)
    waits = [len(task.after) for task in tasks]
    ready: dict[str, list[tuple[float, int]]] = {task.lane: [] for task in tasks}
    free = {task.lane: [*range(1 if task.moves else streams)] for task in tasks}
    for number, task in enumerate(tasks):
        if not task.after:
            heappush(ready[task.lane], (-ahead[number], number))
    running: list[tuple[float, int, int]] = []  # (its end, the task, the stream)
    now, spans = 0.0, []
    while running or any(ready.values()):
        for lane in ready:
            while ready[lane] and free[lane]:
                number = heappop(ready[lane])[1]
                stream = heappop(free[lane])
                end = now + tasks[number].seconds
                spans.append(Span(tasks[number], stream, now, end))
                heappush(running, (end, number, stream))
        now, number, stream = heappop(running)
        heappush(free[tasks[number].lane], stream)
        for reader in readers[number]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready[tasks[reader].lane], (-ahead[reader], reader))
    return spans


class Offloaded(NamedTuple):
    """A part of a graph that may move: its times in seconds, that of the graph after the move, and what that gains."""

    name: str
    nodes: list[Node]
    here: float
    there: float
    transfers: float
    then: float
    gain: float


class Offloading(Titled):
    """What moving parts of a graph to a device would gain: `parts`, the best first; `now` is the time of the graph."""

    def __init__(self, device: str, parts: list[Offloaded], now: float) -> None:
        self.device, self.parts, self.now = device, parts, now

    def listing(self) -> str:
        """A table of the parts, and the time of the graph."""
        rows = [(part.name, str(len(part.nodes)), *map(_time, part[2:])) for part in self.parts]
        return f"{as_table(HEAD, rows, left=1)}\nnow {_time(self.now)}; there: on {self.device}"

    __repr__ = Titled.__str__


def offloading(graph: Graph, device: Any = "cuda", system: System | None = None) -> Offloading:
    """What moving parts of a graph to another device would gain: everything, each scope, and the heaviest nodes.

    Without a `system`, devices that are here are measured, and others have typical figures (`GPU`).

    >>> graph = mg.trace(lambda x: mg.tanh(x @ x).sum(), mg.ones((1000, 1000)))
    >>> system = System({"cpu": Machine(1e10, 1e11, 1e-6), "cuda": GPU}, Link(1e10, 1e-5))
    >>> print(graph.offloading("cuda", system))
    part        nodes         here     there  transfers  graph then         gain
    everything      3  21,203.0 µs  121.0 µs   420.0 µs    541.0 µs  20,662.0 µs
    matmul_1        1  20,001.0 µs  105.0 µs   820.0 µs  2,127.0 µs  19,076.0 µs
    sum_1           1     401.0 µs    7.0 µs   420.0 µs  21,229.0 µs     -26.0 µs
    tanh_1          1     801.0 µs    9.0 µs   820.0 µs  21,231.0 µs     -28.0 µs
    now 21,203.0 µs; there: on cuda
    """
    name = str(device)
    model = _Model(graph, system, [name])
    now, found = model.predicted({}).seconds, []
    for part, nodes in _parts(model, HEAVIEST).items():
        then = model.predicted(dict.fromkeys(nodes, name))
        moving = sum([span.task.seconds for span in then.transfers])
        takes = model.seconds(nodes), model.seconds(nodes, name), moving, then.seconds
        found.append(Offloaded(part, nodes, *takes, now - then.seconds))
    return Offloading(name, sorted(found, key=lambda part: -part.gain), now)


def _parts(model: _Model, most: int) -> dict[str, list[Node]]:
    """The parts that may move: everything, each scope, and the heaviest nodes."""
    found: dict[str, list[Node]] = {"everything": list(model.work)}
    for node in model.work:
        for depth in range(len(node.scope)):
            found.setdefault(".".join(node.scope[: depth + 1]), []).append(node)
    heaviest = sorted(model.work, key=lambda node: -model.seconds([node]))
    return found | {model.names[node]: [node] for node in heaviest[:most]}


def placed(graph: Graph, *devices: Any, system: System | None = None) -> dict[Node, str]:
    """A placement on these devices that is fast by the model, found by moving parts as long as that gains.

    The search begins with the graph as it is, or with all nodes on one of the devices, whichever is fastest.

    >>> graph = mg.trace(lambda x: mg.tanh(x @ x).sum(), mg.ones((1000, 1000)))
    >>> system = System({"cpu": Machine(1e10, 1e11, 1e-6), "cuda": GPU}, Link(1e10, 1e-5))
    >>> [node.name for node in placed(graph, "cpu", "cuda", system=system)]
    ['matmul', 'tanh', 'sum']
    """
    names = list(map(str, devices))
    model = _Model(graph, system, names)
    parts = sorted(_parts(model, TRIED).values(), key=lambda part: -model.seconds(part))[:TRIED]
    moves = [dict.fromkeys(part, name) for part in parts for name in names]
    starts = [{}, *[dict.fromkeys(model.work, name) for name in names]]
    time, now = min([(model.predicted(start).seconds, start) for start in starts], key=itemgetter(0))
    last = None
    while last != now:
        last = now
        for move in moves:
            then = now | move
            seconds = time if then == now else model.predicted(then).seconds
            if seconds < time * (1 - LEAST_GAIN):
                time, now = seconds, then
    return now


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"

