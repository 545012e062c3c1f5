"""`mg.viz.placement`: how long a graph takes with its operations on several devices, by the model of the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compile.look.placement import Placement, Prediction, System, measured_system, placed, predicted
from ..compile.look.ran import Ran
from ..compile.look.record import record_node_by_node
from ..compile.nodes.graph import Graph
from ..support.errors import ConversionError
from ..support.table import counted, time_text
from ..support.words import shown
from .charts import KINDS, Chart, Marks, legend, mark
from .flipbook import Flipbook, Page
from .traced import ran_of, without_detours

WIDTH, LEFT, RIGHT, TOP, LANE = 800.0, 110.0, 16.0, 36.0, 40.0


def placement(
    what: Any, *args: Any, device: Any = "cuda", system: System | None = None,
    others: Mapping[str, Placement] | None = None, **kwargs: Any,
) -> Flipbook:
    """Show when each operation of a graph or a function runs: as it is, all on a device, and placed by a search.

    `others` are more placements to show, by name: each from nodes of the graph to devices.  The times come from a model
    (see `minigrad.compile.look.placement`) and from a `system`: the limits of the devices and of the link between them.
    Without one, processors are measured, and other devices have the figures of a typical GPU.

    >>> from minigrad.compile.look.placement import GPU, Link, Machine, System
    >>> system = System({"cpu": Machine(1e10, 1e11, 1e-6), "cuda": GPU}, Link(1e10, 1e-5))
    >>> print(mg.viz.placement(lambda x: mg.tanh(x @ x), mg.ones((1000, 1000)), system=system).text())
    as it is: 20.8 ms, 0 transfers
    all on cuda: 934 µs, 2 transfers
    best found: 934 µs, 2 transfers
    """
    if not (isinstance(what, Graph) or callable(what)):
        raise ConversionError(f"placement: what is a graph or a function, not {shown(what)}")
    if not (system is None or isinstance(system, System)):
        raise ConversionError(f"placement: system is a System, not {shown(system)}")
    others = {} if others is None else others
    if not (isinstance(others, Mapping) and all(isinstance(each, Mapping) for each in others.values())):
        raise ConversionError(f"placement: others are dictionaries from nodes to devices, by name, not {shown(others)}")
    ran = None if isinstance(what, Graph) else ran_of(what, args, kwargs)
    graph = what if ran is None else without_detours(ran.graph)
    name = str(device)
    devices = dict.fromkeys([*[node.device.name for node in graph.nodes], name])
    system = system or measured_system(*devices)
    placements: dict[str, Placement] = {
        "as it is": {}, f"all on {name}": dict.fromkeys(graph.nodes, name),
        "best found": placed(graph, *devices, system=system), **others,
    }
    found = {title: predicted(graph, each, system) for title, each in placements.items()}
    lanes = sorted({(span.task.lane, span.stream) for each in found.values() for span in each.spans})
    marks: Marks = {}
    measured = _measured(graph, ran)
    pages = [_gantt(title, each, lanes, measured, marks) for title, each in found.items()]
    words = "\n".join([f"{title}: {_said(each)}" for title, each in found.items()])
    best = min(found, key=lambda title: found[title].seconds)
    gain = found["as it is"].seconds / (found[best].seconds or 1.0)
    says = "none is faster than as it is" if gain < 1.005 else f"{best!r} is {gain:.2f} times as fast"
    about = f"{counted(len(found), 'placement')}: by the model, {says}"
    return Flipbook(about, [pages], marks=marks, words=words)


def _said(found: Prediction) -> str:
    return f"{time_text(found.seconds)}, {counted(len(found.transfers), 'transfer')}"


def _measured(graph: Graph, ran: Ran | None) -> str:
    """How long the graph really takes node by node, as it is, in words."""
    if ran is None:
        return "Nothing was measured, because a graph has no arguments."
    found = record_node_by_node(graph, [ran.inputs[node] for node in graph.inputs])
    return f"Measured, node by node as it is: {time_text(found.seconds)}."


def _gantt(title: str, found: Prediction, lanes: list[tuple[str, int]], measured: str, marks: Marks) -> Page:
    bottom = TOP + LANE * len(lanes)
    chart = Chart(WIDTH, bottom + 30.0)
    scale = chart.ruler((LEFT, WIDTH - RIGHT), (TOP - 8.0, bottom + 6.0), found.seconds or 1.0, time_text)
    for row, (lane, stream) in enumerate(lanes):
        chart.lane(LEFT, TOP + LANE * row, LANE, f"{lane} ({stream + 1})" if stream else lane)
    for number, span in enumerate(found.spans):
        task = span.task
        x, y = LEFT + span.begin * scale, TOP + LANE * lanes.index((task.lane, span.stream)) + 4.0
        key, takes = f"{title}-{number}", time_text(task.seconds)
        rows = [("on", task.lane), ("begins", time_text(span.begin)), ("takes", takes)]
        marks[key] = mark(task.name, rows)
        kind = "other" if task.moves else "kernel"
        about = f"{task.name}, {takes}"
        chart.bar(x, y, task.seconds * scale, LANE - 12.0, kind, key, task.name, about, model=True)
    legend(chart, LEFT, 14.0, [(*KINDS["kernel"], "operation, by the model"), (*KINDS["other"], "transfer")])
    return Page(chart, f"By the model, {title}: {_said(found)}. {measured}", name=title)
