"""What models predict for a timeline: a program on several workers or at the limits of the machine, a graph on devices.

The time of a step on a worker is the one that was measured.  Where nothing was, it is the compiler's estimate in bytes
of memory traffic, which is the same on every machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ..compile.look.placement import Placement, Prediction, System, measured_system, placed, predicted
from ..compile.look.record import is_busy, stretches
from ..compile.nodes.graph import Graph
from ..compile.running.profiler import Event
from ..compile.running.schedule import Schedule, ScheduledStep
from ..support.table import counted, time_text
from .lanes import Band, Bar, Lane, Work
from .naming import operation_name
from .traced import FunctionCall, without_detours


class Turn(NamedTuple):
    """A step that a worker runs: when it begins and ends."""

    step: ScheduledStep
    worker: int
    begin: float
    end: float


def turns(plan: Schedule, workers: int) -> list[Turn]:
    """Which worker runs which step when.

    A free worker takes, among the steps that are ready, the step with the longest chain
    of steps after it.

    >>> x, y = mg.ones((2, 2)), mg.ones((2, 2))
    >>> plan = mg.jit(lambda x, y: (x @ x, y @ y)).program(x, y).schedule
    >>> [(turn.step.name, turn.worker, turn.begin) for turn in turns(plan, 2)]
    [('matmul_1', 0, 0.0), ('matmul_2', 1, 0.0)]
    """
    left, waiting = {step.number: len(step.after) for step in plan.steps}, defaultdict[int, list[ScheduledStep]](list)
    for step in plan.steps:
        for before in step.after:
            waiting[before].append(step)
    ahead: dict[int, float] = {}  # the longest chain from a step to the end
    for step in reversed(plan.steps):
        later = [ahead[other.number] for other in waiting[step.number]]
        ahead[step.number] = step.cost + max(later, default=0.0)
    ready = [(-ahead[s.number], s.number) for s in plan.steps if not s.after]
    ready.sort()
    free = list(range(workers))
    running: list[tuple[float, int, int]] = []  # (its end, the step, the worker)
    now, done = 0.0, []
    while ready or running:
        while ready and free:
            number = heappop(ready)[1]
            worker = heappop(free)
            step = plan.steps[number]
            done.append(Turn(step, worker, now, now + step.cost))
            heappush(running, (now + step.cost, number, worker))
        now, number, worker = heappop(running)
        heappush(free, worker)
        for step in waiting[number]:
            left[step.number] -= 1
            if not left[step.number]:
                heappush(ready, (-ahead[step.number], step.number))
    return done


def measured(plan: Schedule, events: Iterable[Event]) -> Schedule:
    """The schedule in which each step costs the seconds of its launches and checks in a call."""
    taken, found = defaultdict[str, list[Event]](list), object.__new__(Schedule)
    for event in filter(is_busy, events):
        taken[event.name.partition("/")[0]].append(event)
    found.steps = [s._replace(cost=sum([end - begin for begin, end in stretches(taken[s.name])])) for s in plan.steps]
    return found


def on_workers(title: str, plan: Schedule, works: Mapping[str, Work], count: int) -> Band:
    """A program on some workers; `works` says what the steps are."""
    critical, done = {step.number for step in plan.critical_path}, turns(plan, count)
    lanes = [Lane(f"worker {number + 1}", list[Bar]()) for number in range(count)]
    for step, worker, begin, end in done:
        lanes[worker].bars.extend([Bar(begin, end, works[step.name], step.number in critical)] * (end > begin))
    whole = max([turn.end for turn in done], default=0.0)
    gain, limit = (plan.work / time if time else 1.0 for time in (whole, plan.span))
    says = f"by the model, {gain:.2f} times as fast as one worker; any number of workers is at most {limit:.2f} times"
    return Band(f"{title}, on {counted(count, 'worker')}".removeprefix(", "), lanes, says, True, count)


def on_devices(call: FunctionCall, devices: Sequence[str], system: System | None) -> list[Band]:
    """A graph node by node: as it is, all on each device, and as a search places it."""
    graph = call.what if isinstance(call.what, Graph) else without_detours(call.ran().graph)
    names = [*dict.fromkeys([*[node.device.name for node in graph.nodes], *devices])]
    system = system or measured_system(*names)
    tried: dict[str, Placement] = {f"all on {name}": dict.fromkeys(graph.nodes, name) for name in devices}
    tried = {"as it is": {}, **tried, "best found": placed(graph, *names, system=system)}
    found = {title: predicted(graph, placement, system) for title, placement in tried.items()}
    return [placed_band(title, each, found["as it is"]) for title, each in found.items()]


def placed_band(title: str, found: Prediction, now: Prediction) -> Band:
    """A lane for each stream of each device, and for each direction between two devices; `now` is as it is."""
    lanes: dict[tuple[str, int], list[Bar]] = {}
    for span in found.spans:
        task = span.task
        kind = "other" if task.moves else "kernel"
        label = operation_name(task.node) if task.node.op else task.name
        bar = Bar(span.begin, span.end, Work(task.name, label, kind=kind, cost=task.count, rows=(("on", task.lane),)))
        lanes.setdefault((task.lane, span.stream), []).append(bar)
    names = {key: f"{key[0]} ({key[1] + 1})" if key[1] else key[0] for key in sorted(lanes)}
    says = f"by the model, {time_text(found.seconds)}, {counted(len(found.transfers), 'transfer')}"
    if now is not found and found.seconds:
        says += f": {now.seconds / found.seconds:.2f} times as fast as it is"
    return Band(title, [Lane(name, lanes[key]) for key, name in names.items()], says, True)
