"""`mg.viz.memory`: the buffers of a program over time; or, for tensors, which of them share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..compile.look.cost import Cost, eager_memory
from ..compile.running.plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Buffer, Plan
from ..compile.running.program import Executable
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.table import as_table, bytes_text
from .charts import Chart, Marks, mark
from .compiled import programs_of, view_of
from .drawing import counted, round_numbers
from .flipbook import Flipbook, Page
from .sharing import shared_memory

WIDTH, LEFT, RIGHT, LANE, CURVE = 860.0, 108.0, 16.0, 24.0, 130.0
KINDS = {SLOT: "kernel", LIBRARY: "library", RESULT: "result", IN_PLACE: "input"}  # the kind of bar of each buffer
PLACES = [*KINDS]


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show where values are in memory, and for how long: the buffers of a function's program over time.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory of 1 step: at most 4 kB in use, 12 kB node by node>
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    if isinstance(what, Tensor):
        return shared_memory({f"tensor {i}": t for i, t in enumerate((what, *args))}, (), kwargs)
    return view_of(programs_of(what, args, kwargs, "memory"), lambda each: memory_of(each.program))


class Life(NamedTuple):
    """A value in memory: its buffer, and the first and the last step that needs it."""

    buffer: Buffer
    lane: str
    begin: int
    end: int


def memory_of(program: Executable) -> Flipbook:
    """The buffers of a program over time, as a chart."""
    plan = program.plan
    lives = lives_of(plan)
    steps = [plan.steps[number].name for turn in plan.turns for number in turn]
    held, eager = _in_use(lives, len(steps)), eager_memory(program.graph)
    most, eager_most = (bytes_text(max(each, default=0)) for each in (held, eager))
    about = f"memory of {counted(len(steps), 'step')}: at most {most} in use, {eager_most} node by node"
    lanes = list(dict.fromkeys(life.lane for life in lives))
    chart = Chart(WIDTH, CURVE + 46.0 + LANE * len(lanes) + 30.0)
    across = (WIDTH - LEFT - RIGHT) / max(1, len(steps))
    _curves(chart, held, eager, Cost(program).memory.total)
    marks = _bars(chart, lives, lanes, steps, across)
    bottom = CURVE + 56.0 + LANE * len(lanes)
    for number, step in enumerate(steps):
        if across > 46.0 or number % (int(46.0 / across) + 1) == 0:
            chart.text(LEFT + across * (number + 0.5), bottom, step[:14], fill="quiet", anchor="middle")
    table = [(b.name, lane, steps[begin], steps[end], bytes_text(b.nbytes)) for b, lane, begin, end in lives]
    words = as_table(("value", "lies in", "from", "until", "bytes"), table, left=4)
    return Flipbook(about, [[Page(chart, about, name="memory")]], marks=marks, words=words)


def lives_of(plan: Plan) -> list[Life]:
    """The values that a program makes: each lives from the step that writes it to the last step that reads it."""
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
    """The place of a value, in words."""
    if buffer.kind == LIBRARY:
        return "of a library"
    return f"{INPUT if buffer.kind == IN_PLACE else buffer.kind} {buffer.number}"


def _in_use(lives: Sequence[Life], steps: int) -> list[int]:
    """The bytes of the values that live at each step.  The memory of an input belongs to the caller."""
    new = [life for life in lives if life.buffer.kind != IN_PLACE]
    return [sum(life.buffer.nbytes for life in new if life.begin <= n <= life.end) for n in range(steps)]


def _bars(chart: Chart, lives: Sequence[Life], lanes: list[str], steps: Sequence[str], across: float) -> Marks:
    """A row for each place in memory, with a bar for each value that lives there."""
    top = CURVE + 40.0
    for number, lane in enumerate(lanes):
        y = top + LANE * number
        chart.lane(LEFT, y, LANE, lane)
        chart.path([(LEFT, y + LANE), (WIDTH - RIGHT, y + LANE)], "line", thick=1.0)
    marks: Marks = {}
    for number, (buffer, lane, begin, end) in enumerate(lives):
        size, key = bytes_text(buffer.nbytes), f"v{number}"
        x, y, wide = LEFT + across * begin, top + LANE * lanes.index(lane) + 2.0, across * (end - begin + 1)
        about = f"{buffer.name}, {size}"
        chart.bar(x + 1.0, y, wide - 2.0, LANE - 4.0, KINDS[buffer.kind], key, buffer.name, about)
        rows = [("lies in", lane), ("takes", size), ("from", steps[begin]), ("until", steps[end])]
        same = [f"v{i}" for i, other in enumerate(lives) if other.lane == lane and i != number]
        marks[key] = mark(buffer.name, rows, same)
    return marks


def _curves(chart: Chart, held: Sequence[int], eager: Sequence[int], allocated: int) -> None:
    """The bytes in use at each step of the program and at each node, and what the program allocates for all steps."""
    scale = (CURVE - 34.0) / (max([*held, *eager, allocated], default=0) or 1)
    for tick in round_numbers(0.0, (CURVE - 34.0) / scale, 4):
        y = CURVE - tick * scale
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], "line", thick=1.0)
        chart.text(LEFT - 8.0, y + 3.5, bytes_text(tick), fill="quiet", anchor="end")
    level = CURVE - allocated * scale
    chart.path([(LEFT, level), (WIDTH - RIGHT, level)], "back", thick=1.0, dashes="4 3")
    _stairs(chart, eager, scale, "quiet")
    _stairs(chart, held, scale, "back")
    most, eager_most = (bytes_text(max(each, default=0)) for each in (held, eager))
    chart.text(LEFT, 14.0, "memory in use:", bold=True)
    chart.text(LEFT + 110.0, 14.0, f"— node by node, at most {eager_most}", fill="quiet")
    chart.text(LEFT + 306.0, 14.0, f"— fused, at most {most}", fill="back")
    chart.text(LEFT + 462.0, 14.0, f"- - allocated for the fused program: {bytes_text(allocated)}", fill="back")


def _stairs(chart: Chart, values: Sequence[int], scale: float, colour: str) -> None:
    """A line with one level stretch for each value."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    levels = [(number, CURVE - value * scale) for number, value in enumerate(values)]
    chart.path([(LEFT + step * (n + end), y) for n, y in levels for end in (0, 1)], colour, thick=1.6)
