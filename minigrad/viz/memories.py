"""`mg.viz.memory`: the buffers of a program over time; or, for tensors, which of them share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..compile.look.cost import Cost, eager_memory
from ..compile.running.plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Buffer, Call, Plan
from ..core.primitive import P
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.table import as_table, bytes_text, counted
from .charts import DASHED, KINDS, Chart, Marks, legend, mark
from .compiled import Shown, programs_of, view_of
from .drawing import round_numbers
from .flipbook import Flipbook, Page
from .phases import PHASES, Section
from .sharing import shared_memory
from .svg import LINE, text_width

WIDTH, LEFT, RIGHT, TOP, HEIGHT = 1000.0, 70.0, 16.0, 30.0, 360.0
KINDS_OF = {SLOT: "kernel", LIBRARY: "library", RESULT: "result", IN_PLACE: "input"}  # the kind of bar of each buffer
PLACES = [*KINDS_OF]


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show where values are in memory, and for how long: the buffers of a function's program over time.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory of 1 launch: at most 4 kB in use, 12 kB node by node>
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    if isinstance(what, Tensor):
        return shared_memory({f"tensor {i}": t for i, t in enumerate((what, *args))}, (), kwargs)
    return view_of(programs_of(what, args, kwargs, "memory"), memory_of)


class Life(NamedTuple):
    """A value in memory: its buffer, and the first and the last step that needs it."""

    buffer: Buffer
    lane: str
    begin: int
    end: int


def memory_of(shown: Shown) -> Flipbook:
    """The memory of a program over time, and its buffers, as two charts: heights are bytes in both."""
    program = shown.program
    plan, sections = program.plan, shown.sections
    lives = lives_of(plan)
    steps = [plan.steps[number].name for turn in plan.turns for number in turn]
    held, eager = _in_use(lives, len(steps)), max(eager_memory(program.graph), default=0)
    most = max(held, default=0)
    cost = Cost(program)
    about = f"memory of {counted(cost.program.launches, 'launch', 'launches')}: at most {bytes_text(most)} in use, "
    about += f"{bytes_text(eager)} node by node"
    homes = [sections[steps[life.begin]] for life in lives]
    marks: Marks = {}
    allocated = cost.memory.total
    pages = [
        Page(_over_time(lives, homes, steps, held, (eager, allocated), marks), about, name="in use, over time"),
        Page(_places(lives, homes, steps, marks), "the buffers: a value can take the place of one that is not needed "
             "any more", name="places in memory"),
    ]
    table = [(b.name, lane, steps[begin], steps[end], bytes_text(b.nbytes)) for b, lane, begin, end in lives]
    words = as_table(("value", "lies in", "from", "until", "bytes"), table, left=4)
    return Flipbook(about, [pages], marks=marks, words=words, unit="picture", cover=0)


def lives_of(plan: Plan) -> list[Life]:
    """The values that a program makes: each lives from the step that writes it to the last step that reads it."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    order = [number for turn in plan.turns for number in turn]
    home = {i: i for i in range(len(plan.buffers))}
    for at, number in enumerate(order):
        step = plan.steps[number]
        reads, writes = plan.uses(step)
        if isinstance(step, Call) and step.op is P.project:  # one of several results lies in the memory of all
            home[step.out] = home[reads[0]]
        for buffer in writes:
            begin.setdefault(home[buffer], at)
        end |= {home[buffer]: at for buffer in (*reads, *writes)}
    end |= {home[read.buffer]: len(order) - 1 for read in plan.outputs}
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


class _Axes(NamedTuple):
    """A chart of bytes over the steps of a program: its bottom, and the sizes of a step and of a byte in it."""

    chart: Chart
    bottom: float
    across: float
    up: float

    def at(self, step: float, size: float) -> tuple[float, float]:
        """The place of a number of bytes at a step."""
        return LEFT + step * self.across, self.bottom - size * self.up


def _axes(steps: Sequence[str], most: float, homes: Sequence[Section], more: list[tuple[str, str, str]]) -> _Axes:
    """The ticks, the legend, and below the chart the phases or the steps."""
    chart = Chart(WIDTH, TOP + HEIGHT + 40.0)
    axes = _Axes(chart, TOP + HEIGHT, (WIDTH - LEFT - RIGHT) / max(1, len(steps)), HEIGHT / (most or 1.0))
    for tick in round_numbers(0.0, most or 1.0, 5):
        y = axes.at(0, tick)[1]
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], "line", thick=0.8)
        chart.text(LEFT - 8.0, y + 3.5, bytes_text(tick), fill="quiet", anchor="end")
    phases = dict.fromkeys(home.phase for home in homes)
    kinds = [phase for phase in PHASES if phase in phases] or ["kernel"]
    words = "made in the {}" if len(kinds) > 1 else "values"
    names = {"forward": "forward pass", "backward": "backward pass"}
    legend(chart, LEFT, 14.0, [(*KINDS[kind], words.format(names.get(kind, kind))) for kind in kinds] + more)
    end = -1.0
    for number, step in enumerate(steps):  # as many names as there is room for
        x, wide = axes.at(number + 0.5, 0)[0], text_width(step, LINE) / 2
        if x - wide > end and x + wide < WIDTH:
            chart.text(x, axes.bottom + 15.0, step, fill="quiet", anchor="middle")
            end = x + wide + 8.0
    chart.text(WIDTH - RIGHT, axes.bottom + 32.0, "the steps, one after another", fill="quiet", anchor="end")
    return axes


def _over_time(
    lives: Sequence[Life], homes: Sequence[Section], steps: Sequence[str], held: Sequence[int],
    others: tuple[int, int], marks: Marks,
) -> Chart:
    """The bytes in use at each step, as a stack: a layer for each part of the program that made them."""
    eager, allocated = others
    most = max(held, default=0)
    more = [("ink", "", f"node by node, at most {bytes_text(eager)}")]
    more.append(("library", "", f"allocated for the fused program: {bytes_text(allocated)}"))
    axes = _axes(steps, 1.06 * max(most, eager, allocated), homes, more)
    chart = axes.chart
    new = [(life, home) for life, home in zip(lives, homes) if life.buffer.kind != IN_PLACE]
    layers: dict[Section, list[Life]] = {}
    for life, home in sorted(new, key=lambda pair: pair[0].begin):
        layers.setdefault(home, []).append(life)
    below = [0] * len(steps)
    for number, (home, members) in enumerate(layers.items()):
        sizes = [sum(life.buffer.nbytes for life in members if life.begin <= n <= life.end) for n in range(len(steps))]
        above = [a + b for a, b in zip(below, sizes)]
        key, title, top = f"s{number}", home.title or members[0].buffer.name, max(sizes)
        for some, run in groupby(range(len(steps)), lambda n: bool(sizes[n])):  # noqa: B023
            if some:
                corners = [(n + end, n) for n in run for end in (0, 1)]
                upper, lower = [[axes.at(x, line[n]) for x, n in corners] for line in (above, below)]
                chart.area(upper, lower, home.phase or "kernel", key, f"{title}: at most {bytes_text(top)}")
        rows = [("at most", bytes_text(top)), ("values", str(len(members)))]
        largest = sorted(members, key=lambda life: -life.buffer.nbytes)[:8]
        rows += [(life.buffer.name, f"{bytes_text(life.buffer.nbytes)}, until {steps[life.end]}") for life in largest]
        marks[key] = mark(title, rows)
        _label(axes, home.layer or title, sizes, below)
        below = above
    for size, colour in ((eager, "ink"), (allocated, "library")):
        y = axes.at(0, size)[1]
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], colour, thick=1.6, dashes=DASHED)
    at = held.index(most) if most else 0
    x, y = axes.at(at + 0.5, most)
    chart.dot(x, y)
    text = f"at most {bytes_text(most)} in use"
    anchor = "end" if x + text_width(text, LINE, bold=True) + 12.0 > WIDTH - RIGHT else "start"
    chart.text(x + (-9.0 if anchor == "end" else 9.0), y - 5.0, text, anchor=anchor, bold=True)
    return chart


def _label(axes: _Axes, name: str, sizes: Sequence[int], below: Sequence[int]) -> None:
    """The name of a layer in the middle of the longest stretch that has room for it."""
    best: tuple[int, int] = (0, 0)
    start = 0
    for n in range(len(sizes) + 1):
        tall = n < len(sizes) and sizes[n] * axes.up >= 13.0 and below[n] == below[start] and sizes[n] == sizes[start]
        if not tall:
            best = max(best, (n - start, -start))
            start = n if n < len(sizes) and sizes[n] * axes.up >= 13.0 else n + 1
            if start >= len(sizes):
                break
    count, begin = best[0], -best[1]
    if count * axes.across > text_width(name, LINE) + 6.0:
        x, y = axes.at(begin + count / 2, below[begin] + sizes[begin] / 2)
        axes.chart.text(x, y + 3.5, name, anchor="middle")


def _places(lives: Sequence[Life], homes: Sequence[Section], steps: Sequence[str], marks: Marks) -> Chart:
    """The buffers on top of each other, each as high as its largest value, and a bar for each value in them."""
    sizes: dict[str, int] = {}
    for life in lives:
        if life.buffer.kind == LIBRARY:  # the library allocates each of its results
            sizes[life.buffer.name] = life.buffer.nbytes
        elif life.buffer.kind != IN_PLACE:
            sizes[life.lane] = max(sizes.get(life.lane, 0), life.buffer.nbytes)
    start, total = {}, 0
    for lane, size in sizes.items():
        start[lane] = total
        total += size
    axes = _axes(steps, total, homes, [("ink", "", f"{counted(len(sizes), 'buffer')} of {bytes_text(total)}")])
    for number, (life, home) in enumerate(zip(lives, homes)):
        buffer, lane, begin, end = life
        lane = buffer.name if buffer.kind == LIBRARY else lane
        if lane not in start:
            continue
        taken, key = bytes_text(buffer.nbytes), f"v{number}"
        x, y = axes.at(begin, start[lane] + buffer.nbytes)
        wide, high = axes.across * (end - begin + 1), buffer.nbytes * axes.up
        label = buffer.name if high >= 12.0 else ""
        kind, about = home.phase or KINDS_OF[buffer.kind], f"{buffer.name}, {taken}"
        axes.chart.bar(x, y, wide, max(high, 0.6), kind, key, label, about)
        rows = [("lies in", life.lane), ("takes", taken), ("from", steps[begin]), ("until", steps[end])]
        rows += [("made in", home.title)] * bool(home.title)
        same = [f"v{i}" for i, other in enumerate(lives) if other.lane == life.lane and i != number]
        marks[key] = mark(buffer.name, rows, same)
    return axes.chart
