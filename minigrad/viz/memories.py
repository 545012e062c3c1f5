"""`mg.viz.memory`: the bytes in use over the steps of a call, eagerly, with checkpoints and fused; or of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..compile.look.cost import Cost, eager_memory
from ..compile.running.plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Buffer, Call, Plan
from ..core.node import Node
from ..core.primitive import P
from ..core.programs import programs_run
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted
from .charts import DASHED, KINDS, Chart, Marks, legend, mark
from .compiled import Shown, jitted_once, not_jitted, programs_of, view_of
from .drawing import round_numbers
from .flipbook import Flipbook, Knob, Page
from .kept import SEGMENTS, Moment, Tape, peak, play, segments_of, share_again, tape_of
from .naming import operation_name, place_of
from .phases import PHASES, Section
from .sharing import shared_memory
from .svg import LINE, text_width
from .traced import ran_of

WIDTH, LEFT, RIGHT, TOP, HEIGHT = 1000.0, 70.0, 16.0, 30.0, 360.0
KINDS_OF = {SLOT: "kernel", LIBRARY: "library", RESULT: "result", IN_PLACE: "input"}  # the kind of bar of each buffer
PLACES = [*KINDS_OF]
LISTED = 8  # values in the facts about a layer
ROW = 34.0  # the height of a bar where the ways to run a function are compared
HEAD = ("way", "kept after the forward pass", "most at once", "computed again")


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show the bytes in use over the steps of a call, and where values are in memory.

    If a gradient flows through the function, a slider goes from eager mode, in which the tape keeps what the backward
    pass needs, over 1, 2, … checkpoints to the fused program.  For this, the function runs once eagerly, and what it
    writes is put back.  What checkpoints save is a model, by the rules of `mg.checkpoint`.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory of 1 launch: at most 4 kB in use, 12 kB node by node>
    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> book = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True))
    >>> print(book.text())
    way            kept after the forward pass  most at once  computed again
    eagerly                              512 B         512 B             0 %
    1 checkpoint                         256 B         256 B            49 %
    ...
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    if isinstance(what, Tensor):
        return shared_memory({f"tensor {i}": t for i, t in enumerate((what, *args))}, (), kwargs)
    jitted = jitted_once(what)
    try:
        shown = programs_of(jitted, args, kwargs, "memory")
    except MinigradError as problem:
        tape = tape_of(lambda: what(*args, **kwargs)) if jitted is not what else None
        if tape is None:
            raise
        return _without_program(tape, problem)
    tape = _tape_of_call(jitted, args, kwargs) if shown[0].keeps else None
    return view_of(shown, lambda each: memory_of(each, tape if each is shown[0] else None))


def _tape_of_call(what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tape | None:
    """The tape of a jitted function in eager mode.  Tensors that it writes get their numbers back."""
    ran = ran_of(what, args, kwargs)
    written = [place.find(ran.tensors).detach() for place, _ in ran.recording.writes]
    before = [tensor.copy() for tensor in written]
    try:
        return tape_of(lambda: not_jitted(what)(*args, **kwargs))
    finally:
        for tensor, values in zip(written, before):
            tensor[...] = values


class Life(NamedTuple):
    """A value in memory: its buffer, and the first and the last step that needs it."""

    buffer: Buffer
    lane: str
    begin: int
    end: int


class Layer(NamedTuple):
    """A part of what is in use: its bytes at each step, its name in the chart, and the facts about it."""

    name: str
    kind: str
    sizes: list[int]
    title: str
    rows: list[tuple[str, str]]


class Way(NamedTuple):
    """One way to run a function: its steps, and what is in use at each of them.  A model's outline is dashed."""

    name: str
    steps: list[str]
    layers: list[Layer]
    say: str
    figures: tuple[str, str, str] = ("", "", "")  # see HEAD
    kinds: tuple[tuple[str, str, str], ...] = ()  # for the legend
    lines: tuple[tuple[int, str, str], ...] = ()  # what other ways need: bytes, colour, words
    model: bool = False
    forward: int = 0  # the steps of the forward pass, where the backward pass follows

    @property
    def held(self) -> list[int]:
        """The bytes in use at each step."""
        return [sum(sizes) for sizes in zip(*[layer.sizes for layer in self.layers])] or [0] * len(self.steps)

    @property
    def most(self) -> int:
        """The most bytes in use."""
        return max(self.held, default=0)


def memory_of(shown: Shown, tape: Tape | None = None) -> Flipbook:
    """The memory of a program over time, and its buffers; with a tape, also that of eager mode and of checkpoints."""
    program, sections = shown.program, shown.sections
    plan = program.plan
    lives = lives_of(plan)
    steps = [plan.steps[number].name for turn in plan.turns for number in turn]
    homes = [sections[steps[life.begin]] for life in lives]
    eager, cost = max(eager_memory(program.graph), default=0), Cost(program)
    fused = _fused(shown, lives, homes, steps)
    about = f"memory of {counted(cost.program.launches, 'launch', 'launches')}: {fused.say}, "
    about += f"{bytes_text(eager)} node by node"
    allocated = cost.memory.total
    lines = (eager, "ink", f"node by node, at most {bytes_text(eager)}"), (
        allocated, "library", f"allocated for the fused program: {bytes_text(allocated)}"
    )
    ways = [fused._replace(lines=lines)]
    if tape:
        taped = _taped(tape)
        line = fused.most, "library", f"fused, at most {bytes_text(fused.most)}"
        ways = [*[way._replace(lines=(*way.lines, line)) for way in taped], *ways]
        about += f"; eagerly, {taped[0].figures[0]} are kept for the backward pass"
    marks: Marks = {}
    say = "the buffers of the fused program: a value can take the place of one that is not needed any more"
    places = Page(_places(lives, homes, steps, marks), say, name="places in memory")
    table = [(b.name, lane, steps[begin], steps[end], bytes_text(b.nbytes)) for b, lane, begin, end in lives]
    return _book(about, ways, [places], as_table(("value", "lies in", "from", "until", "bytes"), table, left=4), marks)


def _without_program(tape: Tape, problem: MinigradError) -> Flipbook:
    """The memory of a function that cannot be traced, or of a device without kernels."""
    ways = _taped(tape)
    about = f"memory of eager mode: {ways[0].figures[0]} are kept for the backward pass; there is no fused program: "
    return _book(about + str(problem).splitlines()[0], ways, [], "", {})


def _book(about: str, ways: Sequence[Way], more: list[Page], words: str, marks: Marks) -> Flipbook:
    """A chart for each way to run the function, all with one axis of bytes, and `more` pages."""
    top = 1.06 * max([way.most for way in ways] + [size for way in ways for size, *_ in way.lines])
    alone = len(ways) == 1 and not ways[0].forward
    if not alone:
        more = [*more, Page(_compared(ways, marks), "the most bytes in use at once, for each way to run the function",
                            name="all ways")]
        table = as_table(HEAD, [(way.name, *way.figures) for way in ways], left=1)
        words = "\n\n".join(filter(None, (table, words)))
    pages = []
    for number, way in enumerate(ways):
        say = about if alone else f"{way.name}: {way.say}"
        pages.append([Page(_over_time(way, top, f"s{number}.", marks), say, name="in use, over time"), *more])
    knobs = () if alone else (Knob("runs", tuple([way.name for way in ways])),)
    return Flipbook(about, pages, knobs, marks=marks, words=words, unit="picture", cover=0)


# The fused program --------------------------------------------------------------------------------------------------


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
    """The bytes of the values that live at each step."""
    return [sum(life.buffer.nbytes for life in lives if life.begin <= n <= life.end) for n in range(steps)]


def _fused(shown: Shown, lives: Sequence[Life], homes: Sequence[Section], steps: list[str]) -> Way:
    """What the program has in use: a layer for each part of it.  The memory of an input belongs to the caller."""
    made: dict[Section, list[Life]] = {}
    for life, home in sorted(zip(lives, homes), key=lambda pair: pair[0].begin):
        if life.buffer.kind != IN_PLACE:
            made.setdefault(home, []).append(life)
    nodes = {name: node for node, name in shown.program.final.names().items()}
    layers = []
    for home, members in made.items():
        sizes = _in_use(members, len(steps))
        rows = [("at most", bytes_text(max(sizes))), ("values", str(len(members)))]
        for buffer, _, _, end in sorted(members, key=lambda life: -life.buffer.nbytes)[:LISTED]:
            line = _line(nodes.get(buffer.name))
            rows.append((buffer.name, f"{bytes_text(buffer.nbytes)}, until {steps[end]}{line}"))
        title = home.title or members[0].buffer.name
        layers.append(Layer(home.layer or title, home.phase or "kernel", sizes, title, rows))
    way = Way("fused", steps, layers, "", kinds=tuple(_kinds(homes)))
    most = bytes_text(way.most)
    return way._replace(say=f"at most {most} in use", figures=("", most, ""))


def _line(node: Node | None) -> str:
    """Where a value was made, in words."""
    place = place_of(node) if node is not None else None
    return f", made at line {place[1]}" if place else ""


def _kinds(homes: Sequence[Section]) -> list[tuple[str, str, str]]:
    """The entries of the legend for the phases of a program."""
    phases = dict.fromkeys(home.phase for home in homes)
    kinds = [phase for phase in PHASES if phase in phases] or ["kernel"]
    words = "made in the {}" if len(kinds) > 1 else "values"
    names = {"forward": "forward pass", "backward": "backward pass"}
    return [(*KINDS[kind], words.format(names.get(kind, kind))) for kind in kinds]


# Eager mode, and checkpoints ------------------------------------------------------------------------------------------


def _taped(tape: Tape) -> list[Way]:
    """Eager mode, and the model of each number of checkpoints."""
    plans = [segments_of(tape, count) for count in range(min(SEGMENTS, len(tape.units) - 1) + 1)]
    ways = [_taped_way(tape, segments) for segments in plans]
    line = ways[0].most, "ink", f"eagerly, at most {ways[0].figures[1]}"
    return [way._replace(lines=(line,)) for way in ways]


def _taped_way(tape: Tape, segments: Sequence[range]) -> Way:
    """What the tape keeps with these checkpoints: up to two layers for each part of the forward pass."""
    history = play(tape, segments)
    moments = history[1:]  # at first, nothing is kept
    steps = [tape.units[moment.unit].name for moment in moments]
    unit_of = {node: i for i, unit in enumerate(tape.units) for node in unit.nodes}
    home = {key: unit_of[tape.made[key]] for moment in moments for key in moment.kept}
    users: dict[int, int] = {}
    for needs in tape.needs.values():
        users |= {key: users.get(key, 0) + 1 for key in needs}
    layers = []
    for i, unit in enumerate(tape.units):
        for kind, how in (("forward", "kept for the backward pass"), ("backward", "computed again for it")):
            mine = [[k for k in m.kept if home[k] == i and (k in m.again) == (kind == "backward")] for m in moments]
            sizes = [sum(tape.size[key] for key in keys) for keys in mine]
            if any(sizes):
                rows = [("at most", bytes_text(max(sizes))), ("why", how)]
                rows += _facts(tape, {key for keys in mine for key in keys}, moments, users)
                name = "again" if kind == "backward" else unit.name
                layers.append(Layer(name, kind, sizes, f"{unit.name}: {how}", rows))
    kept, most = bytes_text(history[len(tape.units)].bytes), bytes_text(peak(history))
    again = f"{100 * share_again(tape, segments):.0f} %"
    say = f"{kept} are kept after the forward pass, at most {most} at once, {again} of it is computed again"
    say += "; a model, by the rules of mg.checkpoint" * bool(segments)
    say += f". Not counted: {bytes_text(tape.outside)} of data and parameters, which exist without the tape too."
    say += " Eager mode runs composed functions as programs; here they run operation by operation." * programs_run()
    kinds = [(*KINDS["forward"], "kept"), *([(*KINDS["backward"], "computed again")] if segments else [])]
    name = counted(len(segments), "checkpoint") if segments else "eagerly"
    return Way(name, steps, layers, say, (kept, most, again), tuple(kinds), (), bool(segments), len(tape.units))


def _facts(tape: Tape, keys: set[int], moments: Sequence[Moment], users: Mapping[int, int]) -> list[tuple[str, str]]:
    """The largest of some arrays: their bytes, the rules that need them, the line, and until when they are kept."""
    rows = []
    for key in sorted(keys, key=lambda key: (-tape.size[key], key))[:LISTED]:
        node = tape.made[key]
        last = max(n for n, moment in enumerate(moments) if key in moment.kept)
        end = tape.units[moments[min(last + 1, len(moments) - 1)].unit].name
        why = f"for {counted(users[key], 'rule')}" if key in users else "to compute again"
        rows.append((f"{operation_name(node)}, {_shape(node)}", f"{bytes_text(tape.size[key])}, {why}, until back "
                     f"through {end}{_line(node)}"))
    return rows


def _shape(node: Node) -> str:
    return "several" if isinstance(node.dtype, tuple) else "×".join(map(str, node.shape)) or "scalar"


# The charts -----------------------------------------------------------------------------------------------------------


class _Axes(NamedTuple):
    """A chart of bytes over the steps of a program: its bottom, and the sizes of a step and of a byte in it."""

    chart: Chart
    bottom: float
    across: float
    up: float

    def at(self, step: float, size: float) -> tuple[float, float]:
        """The place of a number of bytes at a step."""
        return LEFT + step * self.across, self.bottom - size * self.up


def _axes(steps: Sequence[str], most: float, entries: list[tuple[str, str, str]]) -> _Axes:
    """The ticks, the legend, and below the chart the steps."""
    chart = Chart(WIDTH, TOP + HEIGHT + 40.0)
    axes = _Axes(chart, TOP + HEIGHT, (WIDTH - LEFT - RIGHT) / max(1, len(steps)), HEIGHT / (most or 1.0))
    for tick in round_numbers(0.0, most or 1.0, 5):
        y = axes.at(0, tick)[1]
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], "line", thick=0.8)
        chart.text(LEFT - 8.0, y + 3.5, bytes_text(tick), fill="quiet", anchor="end")
    legend(chart, LEFT, 14.0, entries)
    end = -1.0
    for number, step in enumerate(steps):  # as many names as there is room for
        x, wide = axes.at(number + 0.5, 0)[0], text_width(step, LINE) / 2
        if x - wide > end and x + wide < WIDTH:
            chart.text(x, axes.bottom + 15.0, step, fill="quiet", anchor="middle")
            end = x + wide + 8.0
    chart.text(WIDTH - RIGHT, axes.bottom + 32.0, "the steps, one after another", fill="quiet", anchor="end")
    return axes


def _over_time(way: Way, top: float, key: str, marks: Marks) -> Chart:
    """The bytes in use at each step, as a stack of layers, with lines for what other ways need."""
    steps, count, most = way.steps, len(way.steps), way.most
    axes = _axes(steps, top, [*way.kinds, *[(colour, "", text) for _, colour, text in way.lines]])
    chart = axes.chart
    below = [0] * count
    for number, layer in enumerate(way.layers):
        above = [a + b for a, b in zip(below, layer.sizes)]
        name = f"{key}{number}"
        for some, run in groupby(range(count), lambda n: bool(layer.sizes[n])):  # noqa: B023
            if some:
                corners = [(n + end, n) for n in run for end in (0, 1)]
                upper, lower = [[axes.at(x, line[n]) for x, n in corners] for line in (above, below)]
                about = f"{layer.title}: at most {bytes_text(max(layer.sizes))}"
                chart.area(upper, lower, layer.kind, name, about)
        marks[name] = mark(layer.title, layer.rows)
        _label(axes, layer.name, layer.sizes, below)
        below = above
    if way.model:
        chart.path([axes.at(n + end, size) for n, size in enumerate(below) for end in (0, 1)], thick=1.8, dashes=DASHED)
    if way.forward:
        x = axes.at(way.forward, 0)[0]
        chart.path([(x, TOP), (x, axes.bottom)], "line", dashes="2 3")
        chart.text(x, axes.bottom + 32.0, "◂ forward | backward ▸", fill="quiet", anchor="middle")
    for size, colour, _ in way.lines:
        y = axes.at(0, size)[1]
        chart.path([(LEFT, y), (WIDTH - RIGHT, y)], colour, thick=1.6, dashes=DASHED)
    if not most:
        chart.text(WIDTH / 2, TOP + HEIGHT / 2, "no new memory is in use", fill="quiet", anchor="middle")
        return chart
    x, y = axes.at(way.held.index(most) + 0.5, most)
    chart.dot(x, y)
    text = f"at most {bytes_text(most)} in use"
    anchor = "end" if x + text_width(text, LINE, bold=True) + 12.0 > WIDTH - RIGHT else "start"
    chart.text(x + (-9.0 if anchor == "end" else 9.0), y - 5.0, text, anchor=anchor, bold=True)
    return chart


def _compared(ways: Sequence[Way], marks: Marks) -> Chart:
    """A bar for each way to run the function: as long as the most bytes in use are many."""
    chart = Chart(WIDTH, ROW * len(ways) + 24.0)
    scale = 480.0 / (max(way.most for way in ways) or 1)
    for number, way in enumerate(ways):
        y, wide, (kept, most, again) = 10.0 + ROW * number, way.most * scale, way.figures
        kind = "forward" if way.forward else "library"
        chart.lane(130.0, y, ROW - 8.0, way.name, room=116.0)
        chart.bar(130.0, y, wide, ROW - 8.0, kind, f"w{number}", "", f"{way.name}: {most}", model=way.model)
        text = f"{most}; {kept} after the forward pass; {again} computed again" if kept else most
        chart.text(140.0 + wide, y + ROW / 2 - 1.0, text)
        rows = [(name, value) for name, value in zip(HEAD[1:], way.figures) if value]
        marks[f"w{number}"] = mark(way.name + ", a model" * way.model, rows)
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
    about = ("ink", "", f"{counted(len(sizes), 'buffer')} of {bytes_text(total)}")
    axes = _axes(steps, total, [*_kinds(homes), about])
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
