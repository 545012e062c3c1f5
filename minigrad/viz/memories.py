"""`mg.viz.memory`: where values lie and how long, in a program; and which tensors share memory, outside of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..compile.look.cost import Cost, eager_memory
from ..compile.running.plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Buffer, Plan
from ..compile.running.program import Executable
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.table import as_table, bytes_text
from .charts import Chart
from .compiled import programs_of, view_of
from .drawing import round_numbers
from .exhibit import Charted, Frame, mark
from .sharing import shared_memory

WIDTH, LEFT, RIGHT, LANE, CURVE = 860.0, 108.0, 16.0, 24.0, 130.0
KINDS = {SLOT: "kernel", LIBRARY: "library", RESULT: "result", IN_PLACE: "input"}  # of a bar, by where the buffer lies
PLACES = [*KINDS]


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Charted:
    """Where values lie, and how long: in the program of a function for these arguments, its buffers over time.

    Of tensors, given by name, in a dictionary or as a model: which of them lie in the same memory, and where in it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory of 1 step: 4 kB at once, 12 kB node by node>
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    if isinstance(what, Tensor):
        return shared_memory({f"tensor {i}": t for i, t in enumerate((what, *args))}, (), kwargs)
    return view_of(programs_of(what, args, kwargs, "memory"), lambda each: _of_program(each.program))


class Life(NamedTuple):
    """A value in memory: where, and from which step to which."""

    buffer: Buffer
    lane: str
    begin: int
    end: int


def _of_program(program: Executable) -> Charted:
    chart, marks, words = timeline(program)
    cost = Cost(program)
    steps = len(program.plan.steps)
    about = (
        f"memory of {steps} step{'s' * (steps != 1)}: {bytes_text(cost.memory.total)} at once, "
        f"{bytes_text(cost.eager_peak)} node by node"
    )
    return Charted(about, [Frame("memory", chart, about)], marks, words)


def timeline(program: Executable) -> tuple[Chart, dict[str, dict[str, Any]], str]:
    """The buffers of a program over time as a picture, what is known about each, and the same in words."""
    plan = program.plan
    lives = lives_of(plan)
    steps = [plan.steps[number].name for turn in plan.turns for number in turn]
    lanes = list(dict.fromkeys(life.lane for life in lives))
    chart = Chart(WIDTH, CURVE + 46.0 + LANE * len(lanes) + 30.0)
    across = (WIDTH - LEFT - RIGHT) / max(1, len(steps))
    _curves(chart, program, lives, len(steps), across)
    top = CURVE + 40.0
    marks: dict[str, dict[str, Any]] = {}
    for number, lane in enumerate(lanes):
        y = top + LANE * number
        chart.text(LEFT - 8.0, y + LANE / 2 + 3.0, lane, fill="quiet", anchor="end")
        chart.path([(LEFT, y + LANE), (WIDTH - RIGHT, y + LANE)], "line", thick=1.0)
    for number, life in enumerate(lives):
        name, size, key = life.buffer.name, bytes_text(life.buffer.nbytes), f"v{number}"
        y = top + LANE * lanes.index(life.lane) + 2.0
        x, wide = LEFT + across * life.begin, across * (life.end - life.begin + 1)
        chart.bar(x + 1.0, y, wide - 2.0, LANE - 4.0, KINDS[life.buffer.kind], key, name, f"{name}, {size}")
        rows = [("lies in", life.lane), ("takes", size), ("from", steps[life.begin])]
        same = [f"v{i}" for i, other in enumerate(lives) if other.lane == life.lane and i != number]
        marks[key] = mark(name, [*rows, ("until", steps[life.end])], same)
    bottom = top + LANE * len(lanes) + 16.0
    for number, step in enumerate(steps):
        if across > 46.0 or number % (int(46.0 / across) + 1) == 0:
            chart.text(LEFT + across * (number + 0.5), bottom, step[:14], fill="quiet", anchor="middle")
    table = [(b.name, lane, steps[begin], steps[end], bytes_text(b.nbytes)) for b, lane, begin, end in lives]
    words = as_table(("value", "lies in", "from", "until", "bytes"), table, left=4)
    return chart, marks, words


def lives_of(plan: Plan) -> list[Life]:
    """What lies in memory and did not come in: from the step that writes it to the last one that reads it."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    order = [number for turn in plan.turns for number in turn]
    for at, number in enumerate(order):
        reads, writes = plan.uses(plan.steps[number])
        for buffer in writes:
            begin.setdefault(buffer, at)
        end |= dict.fromkeys((*reads, *writes), at)
    end |= {read.buffer: len(order) - 1 for read in plan.outputs}
    lives = [Life(plan.buffers[i], _lane(plan.buffers[i]), first, end[i]) for i, first in begin.items()]
    return sorted(lives, key=lambda life: (PLACES.index(life.buffer.kind), _number(life.buffer), life.begin))


def _number(buffer: Buffer) -> int:
    return 0 if buffer.kind == LIBRARY else buffer.number


def _lane(buffer: Buffer) -> str:
    """Where a value lies, in words."""
    if buffer.kind == LIBRARY:
        return "of a library"
    return f"{INPUT if buffer.kind == IN_PLACE else buffer.kind} {buffer.number}"


def _curves(chart: Chart, program: Executable, lives: list[Life], steps: int, across: float) -> None:
    """What is held at the same time, step by step, and the same node by node."""
    new = [life for life in lives if life.buffer.kind != IN_PLACE]  # the memory of an input is the caller's
    held = [sum(life.buffer.nbytes for life in new if life.begin <= n <= life.end) for n in range(steps)]
    eager = eager_memory(program.graph)
    most = max([*held, *eager], default=0) or 1
    scale = (CURVE - 34.0) / most
    bottom = CURVE
    for tick in round_numbers(0.0, most, 4):
        y = bottom - tick * scale
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], "line", thick=1.0)
        chart.text(LEFT - 8.0, y + 3.5, bytes_text(tick), fill="quiet", anchor="end")
    whole = across * max(1, steps)
    _stairs(chart, eager, whole, bottom, scale, "quiet")
    _stairs(chart, held, whole, bottom, scale, "back")
    chart.text(LEFT, 14.0, "held at the same time:", bold=True)
    chart.text(LEFT + 134.0, 14.0, f"— node by node, at most {bytes_text(max(eager, default=0))}", fill="quiet")
    chart.text(LEFT + 330.0, 14.0, f"— fused, at most {bytes_text(max(held, default=0))}", fill="back")


def _stairs(chart: Chart, values: list[int], width: float, bottom: float, scale: float, colour: str) -> None:
    if not values:
        return
    step = width / len(values)
    points = []
    for number, value in enumerate(values):
        y = bottom - value * scale
        points += [(LEFT + step * number, y), (LEFT + step * (number + 1), y)]
    chart.path(points, colour, thick=1.6)
