"""What models predict for a timeline: a program on several workers or at the limits of the machine, a graph on devices.

The time of a step on a worker is the one that was measured.  Where nothing was, it is the compiler's estimate in bytes
of memory traffic, which is the same on every machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..compile.look.placement import (
    Placement,
    Prediction,
    System,
    Task,
    measured_system,
    placed,
    predicted,
    scheduled,
)
from ..compile.look.record import is_busy, stretches
from ..compile.nodes.graph import Graph
from ..compile.running.profiler import Event
from ..compile.running.schedule import Schedule
from ..support.table import counted, time_text
from .compiled import FunctionCall, without_detours
from .lanes import Band, Bar, Lane, Work
from .naming import operation_name


def measured(plan: Schedule, events: Iterable[Event]) -> Schedule:
    """The schedule in which each step costs the seconds of its launches and checks in a call."""
    taken, found = defaultdict[str, list[Event]](list), object.__new__(Schedule)
    for event in filter(is_busy, events):
        taken[event.name.partition("/")[0]].append(event)
    found.steps = [s._replace(cost=sum([end - begin for begin, end in stretches(taken[s.name])])) for s in plan.steps]
    return found


def on_workers(title: str, plan: Schedule, works: Mapping[str, Work], count: int) -> Band:
    """A program on some workers; `works` says what the steps are.

    >>> plan = mg.jit(lambda x, y: (x @ x, y @ y)).program(mg.ones((2, 2)), mg.ones((2, 2))).schedule
    >>> band = on_workers("", plan, {step.name: Work(step.name) for step in plan.steps}, 2)
    >>> [(lane.name, bar.work.name, bar.begin) for lane in band.lanes for bar in lane.bars]
    [('worker 1', 'matmul_1', 0.0), ('worker 2', 'matmul_2', 0.0)]
    """
    critical = {step.name for step in plan.critical_path}
    found = Prediction(scheduled([Task(step.name, "", step.cost, step.after) for step in plan.steps], count))
    lanes = [Lane(f"worker {number + 1}", list[Bar]()) for number in range(count)]
    for (name, *_), worker, begin, end in found.spans:
        lanes[worker].bars.extend([Bar(begin, end, works[name], name in critical)] * (end > begin))
    gain, limit = (plan.work / time if time else 1.0 for time in (found.seconds, plan.span))
    says = f"by the model, {gain:.2f} times as fast as one worker; any number of workers is at most {limit:.2f} times"
    return Band(f"{title}, on {counted(count, 'worker')}".removeprefix(", "), lanes, says, True, count)


def on_devices(call: FunctionCall, devices: Sequence[str], system: System | None) -> list[Band]:
    """A graph node by node: as it is, all on each device, and as a search places it."""
    graph = call.what if isinstance(call.what, Graph) else without_detours(call.ran().graph)
    names = [*dict.fromkeys([*[node.device.name for node in graph.nodes], *devices])]
    system = system or measured_system(*names)
    tried: dict[str, Placement] = {
        "as it is": {}, **{f"all on {name}": dict.fromkeys(graph.nodes, name) for name in devices},
        "best found": placed(graph, *names, system=system),
    }
    found = {title: predicted(graph, placement, system) for title, placement in tried.items()}
    return [placed_band(title, each, found["as it is"]) for title, each in found.items()]


def placed_band(title: str, found: Prediction, now: Prediction) -> Band:
    """A lane for each stream of each device, and for each direction between two devices; `now` is as it is."""
    lanes: dict[tuple[str, int], list[Bar]] = {}
    for span in found.spans:
        task = span.task
        work = Work(task.name, operation_name(task.node) if task.node.op else task.name,
                    kind="other" if task.moves else "kernel", cost=task.count, rows=(("on", task.lane),))
        lanes.setdefault((task.lane, span.stream), []).append(Bar(span.begin, span.end, work))
    rows = [Lane(lane + f" ({stream + 1})" * (stream > 0), bars) for (lane, stream), bars in sorted(lanes.items())]
    says = f"by the model, {time_text(found.seconds)}, {counted(len(found.transfers), 'transfer')}"
    if now is not found and found.seconds:
        says += f": {now.seconds / found.seconds:.2f} times as fast as it is"
    return Band(title, rows, says, True)
