"""`mg.viz.memory`: the bytes in use over the steps of a call, eagerly, with checkpoints and fused; or of tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby, product
from typing import Any, NamedTuple

from ..compile.look.cost import eager_lives
from ..compile.nodes.graph import Graph
from ..compile.running.plan import IN_PLACE, INPUT, LIBRARY, Buffer, Call, Plan
from ..core.primitive import P
from ..core.programs import programs_run
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.source import Where, line_of
from ..support.table import bytes_text, bytes_unit, counted
from .charts import DASHED, KINDS, Chart, Marks, legend, mark
from .compiled import Shown, jitted_once, not_jitted, programs_of, view_of
from .drawing import Axes
from .flipbook import Flipbook, Knob, Page
from .kept import SEGMENTS, Tape, peak, play, segments_of, share_again, tape_of
from .naming import operation_name
from .phases import BACKWARD
from .sharing import shared_memory
from .svg import LINE, text_width
from .titles import Titles
from .traced import FunctionCall

WIDTH, TOP, HEIGHT = 1000.0, 24.0, 370.0
NAMES, WORDS = (15.0, 29.0), 46.0  # below the axis: names of steps on two levels, and words about them
FAR = 2.0  # what is more than so many times as much has no room in a chart
OPENED = " Eager mode runs composed functions as programs; here they run operation by operation."
MANY = 200  # parts: of more, eager mode has a layer for each phase, and none for each part
LISTED = 8  # values in the facts about a layer
TALL = 13.0  # the height of a layer that has room for its name
# what the colours of layers mean: of a program, and of the tape
MADE = {
    "forward": "made in the forward pass", "backward": "made in the backward pass", "update": "made in the update",
    "kernel": "made in the program",
}
KEPT = {"forward": "kept for the backward pass", "backward": "computed again for it"}
Line = tuple[int, str, str]  # something to compare with: bytes, a colour, and words



def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show the bytes in use over the steps of a call, and where values are in memory.

    A slider goes from eager mode to the fused program.  If a gradient flows through the function, eager mode is what
    the tape keeps for the backward pass, and 1, 2, … checkpoints come between the two.  For this, the function runs
    once eagerly, and what it writes is put back.  What checkpoints save is a model, by the rules of `mg.checkpoint`;
    the function's own are counted as they are.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory of 1 launch: eagerly at most 12 kB in use, fused at most 4 kB in use>
    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> book = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True))
    >>> print(book.text())
    eagerly: 512 B are kept for the backward pass, at most 512 B at once
    1 checkpoint: 256 B are kept for the backward pass, at most 256 B at once, 49 % of the forward pass computed again
    2 checkpoints: ...
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    if isinstance(what, Tensor):
        return shared_memory({f"tensor {i}": t for i, t in enumerate((what, *args))}, (), kwargs)
    given = FunctionCall(what, args, kwargs)
    call = jitted_once(given)
    try:
        shown = programs_of(call, "memory")
    except MinigradError as problem:
        tape = tape_of(given.run) if call is not given else None
        if tape is None:
            raise
        ways, why = _taped(tape), str(problem).splitlines()[0]
        return _book(f"memory of eager mode: {ways[0].say}; there is no fused program: {why}", ways)
    tape = _tape_of_call(call) if shown[0].keeps else None
    return view_of(shown, lambda each: memory_of(each, tape if each is shown[0] else None))


def _tape_of_call(call: FunctionCall) -> Tape | None:
    """The tape of a jitted function in eager mode.  Tensors that it writes get their numbers back."""
    ran = call.ran()
    written = [place.find(ran.tensors).detach() for place, _ in ran.recording.writes]
    before = [tensor.copy() for tensor in written]
    try:
        return tape_of(call._replace(what=not_jitted(call.what)).run)
    finally:
        for tensor, values in zip(written, before):
            tensor[...] = values


class Life(NamedTuple):
    """A value in memory: where it lies, or why it is kept; the first and the last step at which it is there; a line."""

    name: str
    bytes: int
    place: str
    begin: int
    end: int
    where: Where | None


class Layer(NamedTuple):
    """Values that are drawn as one, in the colour of their kind, over the layers before, or at a place of their own."""

    name: str
    kind: str
    values: list[Life]
    floor: int | None = None

    def sizes(self, count: int) -> list[int]:
        """The bytes in use at each of some steps."""
        found = [0] * count
        for value in self.values:
            for step in range(value.begin, value.end + 1):
                found[step] += value.bytes
        return found


class Way(NamedTuple):
    """One way to run a function: its steps, and what is in use at each of them.  A model's outline is dashed."""

    name: str
    steps: list[str]
    layers: list[Layer]
    say: str
    kinds: Mapping[str, str]  # what the colours of the layers mean
    lines: tuple[Line, ...]
    model: bool = False
    forward: int = 0  # the steps of the forward pass, where the backward pass follows

    @property
    def held(self) -> list[int]:
        """The bytes in use at each step."""
        count = len(self.steps)
        return [sum(sizes) for sizes in zip([0] * count, *[layer.sizes(count) for layer in self.layers])]

    @property
    def most(self) -> int:
        """The most bytes in use."""
        return max(self.held, default=0)

    def about(self, life: Life) -> str:
        """A value in words: its bytes, place, steps and line."""
        until = f"back through {self.steps[life.end + 1]}" if self.forward else self.steps[life.end]
        line = f", made at line {line_of(life.where)[1]}" if life.where else ""
        return f"{bytes_text(life.bytes)}, {life.place}, from {self.steps[life.begin]} until {until}{line}"


def memory_of(shown: Shown, tape: Tape | None = None) -> Flipbook:
    """The memory of a program over time, and its buffers; with a tape, also that of eager mode and of checkpoints."""
    plan, titles = shown.program.plan, Titles(shown)
    steps = [plan.steps[number].name for turn in plan.turns for number in turn]
    lives = lives_of(plan)
    fused, *places = _fused(titles, steps, lives)
    most = f"at most {bytes_text(fused.most)}"
    if tape:
        alone = "in the forward pass alone, with its results"
        say = f"{most} {alone}: the gradient is a program of its own, which is not counted here"
        ways = _taped(tape, (fused.most, "library", "fused, the forward pass with its results:"))
    else:
        say = most
        ways = [_node_by_node(shown.program.graph, titles, (fused.most, "library", "fused, at most"))]
        if any(layer.kind == BACKWARD for layer in fused.layers):
            say += ". The backward pass is a part of this program: mg.viz.memory(loss, x, y), for the function of the "
            say += "loss alone, shows checkpoints"
    about = f"memory of {counted(titles.cost.program.launches, 'launch', 'launches')}: eagerly at most "
    about += f"{bytes_text(ways[0].most)} {'kept for the backward pass' if tape else 'in use'}, fused {most} in use"
    ways.append(fused._replace(say=say))
    return _book(about, ways, places, [f"  {life.name}: {fused.about(life)}" for life in lives])


def _book(about: str, ways: Sequence[Way], places: Sequence[Way] = (), values: Sequence[str] = ()) -> Flipbook:
    """A chart for each way to run the function, and one of the places in memory.

    All have one axis of bytes, but a way that needs much more than the first has an axis of its own.  What is larger
    than all ways is beyond the axis.
    """
    marks: Marks = {"most": mark("all ways", [(way.name, way.say) for way in ways])}
    first = next((way.most for way in ways if way.most), 0)
    top = max([way.most for way in ways if way.most <= FAR * first])
    more = [Page(_drawn(way, way.lines[0][0], "v", marks), way.say, name=way.name) for way in places]
    pages = []
    for number, way in enumerate(ways):
        chart = _drawn(way, max(top, way.most), f"s{number}.", marks)
        chart.peak(way)
        say = f"{way.name}: {way.say}" + "; a model, by the rules of mg.checkpoint" * way.model
        say += ". Data and parameters are not counted." * bool(way.forward)
        say += OPENED * (bool(way.forward) and programs_run())
        pages.append([Page(chart, say, name="in use, over time"), *more])
    knobs = (Knob("runs", tuple([way.name for way in ways])),) if len(ways) > 1 else ()
    words = "\n".join([*[f"{way.name}: {way.say}" for way in ways], *values])
    return Flipbook(about, pages, knobs, marks=marks, words=words, unit="picture", cover=0)


# The fused program --------------------------------------------------------------------------------------------------


def lives_of(plan: Plan) -> list[Life]:
    """The values that a program makes: each lives from the step that writes it to the last step that reads it.

    Values in the memory of an input, which belongs to the caller, are not among them.
    """
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    order = [number for turn in plan.turns for number in turn]
    home = {i: i for i in range(len(plan.buffers))}
    for at, number in enumerate(order):
        step = plan.steps[number]
        reads, writes = plan.uses(step)
        if isinstance(step, Call) and (step.in_place or step.op is P.project):  # it lies in the memory of all results
            home[step.out] = home[step.reads[0].buffer]
        for buffer in writes:
            begin.setdefault(home[buffer], at)
        end |= {home[buffer]: at for buffer in (*reads, *writes)}
    end |= {home[read.buffer]: len(order) - 1 for read in plan.outputs}
    made = [(plan.buffers[i], first, end[i]) for i, first in begin.items()]
    return [Life(buffer.name, buffer.nbytes, _place(buffer), a, b, buffer.where) for buffer, a, b in made
            if buffer.kind not in (INPUT, IN_PLACE)]


def _place(buffer: Buffer) -> str:
    """The place of a value, in words.  A library allocates each of its results."""
    return f"{buffer.kind} {buffer.name if buffer.kind == LIBRARY else buffer.number}"


def _node_by_node(graph: Graph, titles: Titles, *lines: Line) -> Way:
    """What eager mode has in use: a layer for each part of the program, or of many parts for each phase."""
    steps, parts = [*map(titles.part, graph.nodes)], dict[tuple[str, str], Layer]()
    many = len({*steps}) > MANY
    for node, (begin, end) in eager_lives(graph).items():
        phase, _ = titles.places.get(node, ("", ()))
        life = Life(f"{operation_name(node)} {node.shape}", node.nbytes, "as written", begin, end, node.where)
        _add(parts, phase, phase or "values" if many else steps[begin], life)
    way = Way("eagerly", steps, [*parts.values()], "", MADE, lines)
    return way._replace(say=f"node by node, at most {bytes_text(way.most)}")


def _add(parts: dict[tuple[str, str], Layer], phase: str, name: str, life: Life) -> None:
    """Add a value to the layer of its part."""
    kind = phase or "kernel"
    parts.setdefault((kind, name), Layer(name, kind, [])).values.append(life)


def _fused(titles: Titles, steps: list[str], lives: Sequence[Life]) -> tuple[Way, Way]:
    """What the program has in use: a layer for each part of it, and for each value in its place."""
    cost = titles.cost
    names, parts = [*map(titles.of, steps)], dict[tuple[str, str], Layer]()
    sizes: dict[str, int] = {}
    for life in lives:
        sizes[life.place] = max(sizes.get(life.place, 0), life.bytes)
    floors, placed = dict(zip(sizes, accumulate(sizes.values(), initial=0))), []
    for life in lives:
        made = names[life.begin]
        home, life = titles.sections[steps[life.begin]], life._replace(name=made)
        _add(parts, home.phase, home.layer or made, life)
        placed.append(Layer(life.name, home.phase or "kernel", [life], floors[life.place]))
    whole, filled = cost.memory.total, sum(sizes.values())
    lines = (cost.eager_peak, "ink", "node by node, at most"), (whole, "library", "allocated for the fused program:")
    total = filled, "ink", f"{counted(len(sizes), 'buffer')},"
    say = "the buffers of the fused program: a value can take the place of one that is not needed any more"
    copied = sum([kernel.program.bytes_written for kernel in cost.kernels if kernel.kind == "copies"])
    other = (cost.memory.scratch, "scratch"), (copied, "copied results")
    more = [f"{bytes_text(size)} of {what}" for size, what in other if size]
    if whole > filled:
        say += f". With {', '.join([*more, 'gaps between buffers'])}, {bytes_text(whole)} are allocated"
    places = Way("places in memory", names, placed, say, MADE, (total,))
    return Way("fused", names, [*parts.values()], "", MADE, lines), places


# Eager mode, and checkpoints ------------------------------------------------------------------------------------------


def _taped(tape: Tape, *lines: Line) -> list[Way]:
    """Eager mode as the function is written, and the model of each number of checkpoints."""
    plans = [segments_of(tape, count) for count in range(min(SEGMENTS, len(tape.units) - 1) + 1)]
    line = peak(play(tape, tape.own)), "ink", "eagerly, at most"
    ways = [_taped_way(tape, segments, (line, *lines)) for segments in (tape.own, *plans[not tape.own :])]
    return [ways[0]._replace(name="eagerly", model=False), *ways[1:]]


def _taped_way(tape: Tape, segments: Sequence[range], lines: tuple[Line, ...]) -> Way:
    """What the tape keeps with these checkpoints: up to two layers for each part of the forward pass."""
    _, *moments = history = play(tape, segments)  # at first, nothing is kept
    steps = [tape.units[moment.unit].name for moment in moments]
    users = Counter([made for needs in tape.needs.values() for made in needs])
    layers = []
    for unit, again in product(tape.units, (False, True)):
        lives = []
        for node in unit.nodes:
            at = [n for n, moment in enumerate(moments) if node in moment.kept and (node in moment.again) == again]
            if at:
                why = f"for {counted(users[node], 'rule')}" if node in users else "to compute again"
                what = f"{operation_name(node)} {node.shape}"
                lives.append(Life(what, tape.size[node], why, at[0], at[-1], node.where))
        if lives:
            layers.append(Layer(unit.name, "backward" if again else "forward", lives))
    kept, most = bytes_text(history[len(tape.units)].bytes), bytes_text(peak(history))
    say = f"{kept} are kept for the backward pass, at most {most} at once"
    say += f", {100 * share_again(tape, segments):.0f} % of the forward pass computed again" * bool(segments)
    say = f"{counted(len(segments), 'checkpoint')} of its own: {say}" if segments and segments is tape.own else say
    return Way(counted(len(segments), "checkpoint"), steps, layers, say, KEPT, lines, True, len(tape.units))


# The charts -----------------------------------------------------------------------------------------------------------


def _drawn(way: Way, most: int, key: str, marks: Marks) -> _Stack:
    """The bytes in use at each step, as a stack of layers, with lines for what other ways need."""
    top = 1.06 * most or 1.0
    chart, count = _Stack(way, top), len(way.steps)
    above = [0] * count
    for number, layer in enumerate(way.layers):
        sizes = layer.sizes(count)
        below = above if layer.floor is None else [layer.floor] * count
        above = [a + b for a, b in zip(below, sizes)]
        title = f"{layer.name}, {way.kinds[layer.kind]}: at most {bytes_text(max(sizes))}"
        largest = sorted(layer.values, key=lambda life: -life.bytes)[:LISTED]
        marks[f"{key}{number}"] = mark(title, [(life.name, way.about(life)) for life in largest])
        chart.layer(layer, below, above, f"{key}{number}", title)
    for size, colour, _ in way.lines:
        if size <= top:
            chart.line([(0, size), (count, size)], colour)
    return chart


class _Stack(Chart):
    """A chart of bytes over the steps of a way."""

    def __init__(self, way: Way, top: float) -> None:
        super().__init__(WIDTH, TOP + HEIGHT + WORDS - 12.0)
        self.size, unit = bytes_unit(top)
        self.axes = Axes(self, (0.0, TOP, WIDTH, HEIGHT), (0, len(way.steps)), (0, top / self.size), named=False)
        self.text(Axes.LEFT - 4.0, 14.0, unit, fill="quiet", anchor="end")
        kinds = [(*KINDS[kind], way.kinds[kind]) for kind in dict.fromkeys([layer.kind for layer in way.layers])]
        lines = [(colour, "", f"{words} {bytes_text(size)}" + ", beyond the axis" * (size > top))
                 for size, colour, words in way.lines]
        legend(self, Axes.LEFT, 14.0, [*kinds, *lines])
        ends, bottom = dict.fromkeys(NAMES, -1.0), self.at(0, 0)[1]
        named = groupby(enumerate(way.steps), lambda each: (each[0] >= way.forward, each[1]))
        for (_, step), same in named:  # as many names as there is room for
            numbers = [number for number, _ in same]
            x, wide = self.at((numbers[0] + numbers[-1] + 1) / 2, 0)[0], text_width(step, LINE) / 2
            level = next((level for level, end in ends.items() if x - wide > end), None)
            if level and x + wide < WIDTH:
                self.text(x, bottom + level, step, fill="quiet", anchor="middle")
                ends[level] = x + wide + 8.0
        self.text(WIDTH, bottom + WORDS, "the steps, one after another", fill="quiet", anchor="end")
        if way.forward:
            self.line([(way.forward, 0), (way.forward, top)], "line")
            x = self.at(way.forward, 0)[0]
            self.text(x, bottom + WORDS, "◂ forward | backward ▸", fill="quiet", anchor="middle")

    def at(self, step: float, size: float) -> tuple[float, float]:
        """The place of a number of bytes at a step."""
        return self.axes.at(step, size / self.size)

    def line(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """A dashed line through numbers of bytes at steps."""
        self.path([self.at(*point) for point in points], colour, thick=1.6, dashes=DASHED)

    def layer(self, layer: Layer, below: Sequence[int], above: Sequence[int], key: str, about: str) -> None:
        """Draw a layer.  Its name is in the largest part of it that is a rectangle."""
        steps = range(min(life.begin for life in layer.values), max(life.end for life in layer.values) + 1)
        flat = [[*run] for _, run in groupby(steps, lambda n: (below[n], above[n]))]
        corners = [(run[end] - end, run[0]) for run in flat for end in (0, -1)]
        upper, lower = [[self.at(x, line[n]) for x, n in corners] for line in (above, below)]
        border, fill = KINDS[layer.kind]
        with self.mark(key, about):
            self.path([*upper, *reversed(lower), upper[0]], border, thick=0.7, fill=fill)
        n, *more = max(flat, key=lambda run: len(run) * (above[run[0]] - below[run[0]]))
        (left, low), (right, high) = self.at(n, below[n]), self.at(n + 1 + len(more), above[n])
        if low - high > TALL and right - left > text_width(layer.name, LINE) + 6.0:
            self.text((left + right) / 2, (low + high) / 2 + 3.5, layer.name, anchor="middle")

    def peak(self, way: Way) -> None:
        """The most bytes in use: a point, with which all ways are compared."""
        held, most = way.held, way.most
        if way.model:
            self.line([(n + end, size) for n, size in enumerate(held) for end in (0, 1)], "there")
        text = f"at most {bytes_text(most)} in use"
        x, y = self.at([*held, 0].index(most) + 0.5, most)
        border, fill = KINDS["result"]
        with self.mark("most", f"{text}: all ways"):
            self.dot(x, y, fill, radius=5.5, stroke=border)
        wide, left = text_width(text, LINE, True), x > WIDTH / 2
        self.rect(x - left * wide, y - 20.0, wide, 13.0, "tint", "none", opacity=0.85)  # lines end behind it
        self.text(x, y - 10.0, text, anchor="end" if left else "start", bold=True)
