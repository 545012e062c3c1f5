"""`mg.viz.memory`: the bytes in use over the steps of a call, eagerly, with checkpoints and fused; or of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from ..compile.fusion.count import flops_of
from ..compile.jitted import Jitted, JittedMethod
from ..compile.look.held import Held, Life, lives_of
from ..core.node import Node
from ..core.primitive import P
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import bytes_text, bytes_unit, counted
from .compiled import FunctionCall, back_from, check_computes, eagerly, jitted_once, programs_of, put_back
from .drawing import DASHED, KINDS, Axes, Chart, Marks, legend, levels_of
from .flipbook import Flipbook, Knob, Page
from .kept import SEGMENTS, Tape, play, segments_of, tape_of
from .naming import operation_name
from .notation import unnumbered
from .phases import BACKWARD, FORWARD, UPDATE
from .scene import excerpt, type_of
from .sharing import shared_memory
from .sites import places_of
from .svg import LINE, text_width
from .titles import Titles, listed

WIDTH, TOP, HEIGHT, BELOW = 1000.0, 24.0, 400.0, 16.0  # and the height of a row of names below the axis
TALL = 13.0  # the height of a layer that has room for its name
# what the colours of layers mean: of a call, and of the tape
MADE = {"": "made in the call", FORWARD: "made in the forward pass", BACKWARD: "made in the backward pass",
        UPDATE: "made in the update"}
KEPT = {FORWARD: "kept for the backward pass", BACKWARD: "computed again for it"}


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show the bytes in use over the steps of a call, in eager mode and as a fused program.

    For eager mode, the function really runs, and what it writes is put back.  If a gradient flows through the function,
    its backward pass runs too, and charts between the two show what is kept for it: without checkpoints, and with the
    numbers of checkpoints that help.  What checkpoints save is a model, by the rules of `mg.checkpoint`.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory: eager at most 12 kB in use, fused at most 4 kB in use>
    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> book = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True))
    >>> print(book.text())
    eager: at most 1.67 kB in use; most in backward: 0 Tanh, 1.02 kB of it from 4 arrays of matmul (8, 8), ...
    0 checkpoints: at most 512 B kept; ...; 512 B between forward and backward pass
    1 checkpoint: at most 256 B kept; ...; 49 % of the forward pass computed again; a model, by the rules of ...
    fused: at most ...
    >>> x = mg.zeros((4, 4))
    >>> mg.viz.memory(x=x, row=x[1], other=mg.ones(2))
    <memory of 3 tensors in 2 buffers>
    """
    if what is None or isinstance(what, Mapping) or (isinstance(what, Module) and not args):
        return shared_memory(what, args, kwargs)
    call = jitted_once("memory", what, args, kwargs)
    if not isinstance(call.what, (Jitted, JittedMethod)):
        return _book([], _titles(call))
    titles, why = list[Titles](), None
    with put_back(call):
        try:
            titles = _titles(call)
        except MinigradError as problem:
            why = problem
        keeps = any(each.shown.keeps for each in titles)
        plain = eagerly(call, keeps)
        tape = tape_of(plain.run, titles) if keeps or why else None
        eager = _eager(plain, tape is not None, titles)
        if why and not eager.paths:
            raise why
        ways = [eager, *_taped(tape, eager)] if tape else [eager]
        return _book(ways, titles, f" (there is no fused program: {why.first_line})" if why else "")


def _titles(call: FunctionCall) -> list[Titles]:
    """The titles of a function's program; and if its gradient has a program, of that."""
    return [Titles(each) for each in programs_of(call, "memory", gradient=True)]


@dataclass
class Way:
    """One way to run a function: its steps, and what is in use, or kept, at each of them.

    What a program takes for its buffers is `allocated`, with scratch memory and gaps between them.  `held` has the
    bytes at each step, and `then` is the first step with the `most`.  `layers` are the values that are drawn as one, by
    their part, each layer over those before.
    """

    name: str
    paths: Sequence[tuple[str, ...]]  # of each step: its phase and its part, in a loop also the round
    lives: Sequence[Life]
    kinds: Mapping[str, str]  # what the colours of the layers mean
    more: str = ""  # what is said of it, behind the most bytes in use
    allocated: int = 0
    middle: int = 0  # the number of steps of the forward pass, if a backward pass follows

    def __post_init__(self) -> None:
        self.held = _sizes(self.lives, len(self.paths))
        self.most = max(self.held, default=0)
        self.then = self.held.index(self.most) if self.held else 0
        self.layers: dict[tuple[str, ...], list[Life]] = {}
        for life in self.lives:
            self.layers.setdefault(life.home, []).append(life)

    @property
    def peak(self) -> str:
        """The most bytes, in words."""
        most, more = bytes_text(self.most), f", {bytes_text(self.allocated)} allocated"
        return f"{most} kept" if self.kinds is KEPT else f"{most} in use" + more * (self.allocated > self.most)

    @property
    def say(self) -> str:
        """The most bytes, when and in what they are in use, and how many are when a backward pass begins."""
        there = self.made
        at = f"; most in {self.part(self.then)}" if there else ""
        for name, lives in alike(there)[:1]:
            at += f", {bytes_text(size_of(lives))} of it from {name}" * (len(lives) < len(there))
        first = size_of([life for life in there if life.home[0] == FORWARD])
        at += f", {bytes_text(first)} of it {self.kinds[FORWARD]}" * (0 < first < self.most)
        held = size_of([life for life in self.lives if life.begin < self.middle <= life.end])
        between = f"; {bytes_text(held)} between forward and backward pass" * (self.middle > 0)
        gaps = "; scratch memory and gaps are allocated, too" * (self.allocated > self.most)
        return f"at most {self.peak}{at}{between}{gaps}{self.more}"

    @property
    def made(self) -> list[Life]:
        """What is in use at the peak."""
        return [life for life in self.lives if life.begin <= self.then <= life.end]

    def part(self, step: int) -> str:
        """The phase and the part of a step, in words."""
        return ": ".join(filter(None, self.paths[step]))

    def facts(self, lives: Sequence[Life]) -> list[tuple[str, str]]:
        """Values in words: their bytes, their places, the lines that made them, and the parts where they end."""
        rows = []
        for name, group in alike(lives):
            lines = [f"line {found['line']}" + f" of {found['file']}" * bool(found["file"])
                     for life in group if (found := excerpt(life.where, 0))]
            words = [life.place for life in group], lines, [f"until {self.part(life.end)}" for life in group]
            rows.append((name, ", ".join(filter(None, [bytes_text(size_of(group)), *map(listed, words)]))))
        return rows


def size_of(lives: Sequence[Life]) -> int:
    """The bytes of some values together."""
    return sum([life.bytes for life in lives])


def alike(lives: Sequence[Life]) -> list[tuple[str, list[Life]]]:
    """Values of one name and one dtype together, the largest first, each with the name and how many they are.

    >>> mask, *floats = Life("relu", 8, 0, 1, None, dtype=mg.bool), *[Life("sum ()", 4, 0, 0, None)] * 3
    >>> [name for name, _ in alike([mask, *floats])]
    ['3 arrays of sum', 'relu: mask']
    """
    found: dict[str, list[Life]] = {}
    for life in lives:
        kind = getattr(life.dtype, "name", "float32").replace("bool", "mask")
        name = unnumbered(life.name.removesuffix(" ()"))  # of a loop, the values of all rounds
        found.setdefault(name + f": {kind}" * (kind != "float32"), []).append(life)
    return [(f"{len(group)} arrays of " * (len(group) > 1) + name, group)
            for name, group in sorted(found.items(), key=lambda each: -size_of(each[1]))]


def _sizes(lives: Sequence[Life], count: int) -> list[int]:
    """The bytes in use at each of some steps."""
    changes = [0] * (count + 1)
    for life in lives:
        changes[life.begin] += life.bytes
        changes[life.end + 1] -= life.bytes
    return [*accumulate(changes[:-1])]


def _book(ways: list[Way], titles: Sequence[Titles], why: str = "") -> Flipbook:
    """A chart for each way to run a function, and for its program; without one, `why` says the reason."""
    if titles:
        check_computes(titles[0].shown)
        ways.append(_fused(titles))
    most = ", ".join([f"{way.name} at most {way.peak}" for way in ways if way.kinds is MADE])
    marks: Marks = {}
    says, pages = [f"{way.name}: {way.say}" for way in ways], []
    for number, (way, say) in enumerate(zip(ways, says)):
        first, *_, last = [each for each in ways if each.kinds is way.kinds] * 2
        more = " Data, parameters, program constants, and work memory inside a single kernel are not counted."
        if way.kinds is KEPT:
            more += " What no rule needs is not kept, unlike in eager mode; no compiled function runs."
        stack = _Stack(way, f"s{number}.", marks, last if way is first else first)
        pages.append([Page(stack, f"{say}.{more}")])
    knobs = (Knob("runs", tuple([way.name for way in ways])),) * (len(ways) > 1)
    return Flipbook(f"memory: {most}{why}", pages, knobs, marks=marks, words="\n".join(says)).titled(
        "", None, [node for each in titles[:1] for node in each.shown.program.graph.nodes])


# The fused program --------------------------------------------------------------------------------------------------


def _fused(parts: Sequence[Titles]) -> Way:
    """What a program has in use; with that of its gradient, which runs after it."""
    paths, lives = list[tuple[str, ...]](), list[Life]()
    for titles in parts:
        program, begin = titles.shown.program, len(paths)
        steps = [program.plan.steps[number].name for turn in program.plan.turns for number in turn] + titles.last
        lives = [life._replace(end=life.end + len(steps) * (life.output >= 0)) for life in lives]
        paths += [(phase, layer or titles.of(step)) for step in steps for phase, layer in [titles.sections[step]]]
        nodes = {name: node for node, name in program.final.names().items()}
        for life in lives_of(program.plan):
            copied = life.place == "a copy"
            node = program.final.outputs[life.output] if copied else nodes[life.name.removeprefix("partial ")]
            phase, path = titles.place(node)
            name = "copy of " * copied + titles.value(node, path)
            call = unnumbered(name).removesuffix(f": {titles.operation(node)}")  # of a loop, all rounds together
            home = phase, titles.rows.get(path) or call
            name += ", in parts" * life.name.startswith("partial ")
            lives.append(life._replace(name=name, begin=begin + life.begin, end=begin + life.end, home=home))
        lives += [Life(f"work memory of {titles.of(kernel.name)}", kernel.scratch, at, at, None, home=paths[at])
                  for kernel in titles.cost.kernels if kernel.rounds and kernel.scratch
                  for at in [begin + steps.index(kernel.name)]]
    total, alone = sum([titles.cost.memory.total for titles in parts]), parts[0].shown.keeps and not parts[1:]
    more = "; its gradient has no program: its loops need max_steps" * alone
    return Way("fused", paths, lives, MADE, more, total, middle=begin * (begin < len(paths)))


# Eager mode, and checkpoints ------------------------------------------------------------------------------------------


def _eager(call: FunctionCall, backward: bool, parts: Sequence[Titles]) -> Way:
    """What a call holds that really runs in eager mode, with its `backward` pass; `parts` have its programs' titles."""

    for _ in range(2):  # the first call compiles composed functions
        held = Held()
        with held.watch():
            result = call.run()
            middle = len(held.sites)
            if backward:
                back_from(result)
    places = [*places_of(held.sites, parts)]
    phases = {place.phase for place in places}
    paths = [(place.phase * (phases != {FORWARD}), *(places[site.of].turn * (site.of >= 0) or place.path))
             for site, place in zip(held.sites, places)]
    lives = [life._replace(
        home=paths[life.begin], name=(" of " not in life.name and places[life.begin].called) or life.name
    ) for life in held.lives]
    more = "; compiled functions are drawn at their last launch" * any(not hasattr(P, site.name) for site in held.sites)
    more += "; mg.viz.memory of the loss alone shows checkpoints" * (UPDATE in phases)
    return Way("eager", paths, lives, MADE, more, middle=middle * backward)


def _taped(tape: Tape, eager: Way) -> list[Way]:
    """What is kept without checkpoints, and by the model of each number of checkpoints that keeps less than fewer."""
    ways = list[Way]()
    calls = [node.attrs.get("application") for unit in tape.units for node in unit.nodes]
    if any(getattr(each, "kept", each) is not None for each in calls):
        eager.more += "; no checkpoints: jitted or custom functions keep values"
        return ways
    for count in range(min(SEGMENTS + 1, len(tape.units))):
        way = _taped_way(tape, segments_of(tape, count))
        ways += [way] * (not ways or way.most < ways[-1].most)
    if not ways[1:]:
        ways[0].more = "; checkpoints would not lower this"
    return ways * (ways[0].most > 0)


def _taped_way(tape: Tape, segments: Sequence[range]) -> Way:
    """What the tape keeps with these checkpoints: the layers are the parts that made it."""
    _, *moments = play(tape, segments)  # at first, nothing is kept
    steps: dict[tuple[Node, bool], list[int]] = {}  # where an array is kept, at first and computed again
    for step, moment in enumerate(moments):
        for node in sorted(moment.kept, key=lambda node: node.serial):
            steps.setdefault((node, node in moment.again), []).append(step)
    parts = [(*unit.around, unit.name) for unit in tape.units]
    paths = [(BACKWARD if step >= len(parts) else FORWARD, *parts[moment.unit]) for step, moment in enumerate(moments)]
    home = {node: ": ".join(part) for unit, part in zip(tape.units, parts) for node in unit.nodes}
    lives = [Life(
        name or f"{operation_name(node)} {type_of(node) if isinstance(node.dtype, tuple) else node.shape}",
        tape.size[node], at[0], at[-1], where, dtype=node.dtype, home=(paths[at[0]][0], home[node])
    ) for (node, _), at in steps.items() for name, where in [tape.made.get(node, ("", node.where))]]
    work = [sum(map(flops_of, unit.nodes)) for unit in tape.units]
    again = sum([work[number] for segment in segments for number in segment]) / (sum(work) or 1)
    more = (f"; {100 * again:.0f} % of the forward pass computed again; a model, by the rules of mg.checkpoint"
            "; numbers that keep no less than fewer are left out")
    return Way(
        counted(len(segments), "checkpoint"), paths, lives, KEPT, more * bool(segments), middle=len(parts))


# The charts -----------------------------------------------------------------------------------------------------------


class _Stack(Chart):
    """The bytes in use at each step of a way, as a stack of layers, with lines for what other ways need."""

    def __init__(self, way: Way, key: str, marks: Marks, other: Way) -> None:
        count, levels = len(way.paths), levels_of([(n, n + 1, path) for n, path in enumerate(way.paths)])
        super().__init__(WIDTH, TOP + HEIGHT + BELOW * (len(levels) - 0.5))
        top = 1.06 * max(way.most, other.most) or 1.0
        self.size, unit = bytes_unit(top)
        self.axes = Axes(self, (0.0, TOP, WIDTH, HEIGHT), (0, count), (0, top / self.size), named=False)
        self.text(Axes.LEFT - 4.0, 14.0, unit, fill="quiet", anchor="end")
        legend(self, Axes.LEFT + 8.0, 14.0, [
            *[(*KINDS[kind], way.kinds[kind]) for kind in dict.fromkeys([kind for kind, *_ in way.layers])],
            *[("ink", "", f"{other.name}: {other.peak}")] * (other is not way)])
        above, names = [0] * count, list[Any]()
        for number, ((kind, *path), lives) in enumerate(way.layers.items()):
            sizes, below, name = _sizes(lives, count), above, ": ".join(filter(None, path))
            above = [a + b for a, b in zip(below, sizes)]
            title = f"{name}, {way.kinds[kind]}: at most {bytes_text(max(sizes))}"
            marks[f"{key}{number}"] = title, way.facts(lives)
            with self.mark(f"{key}{number}", title):
                steps = range(min([life.begin for life in lives]), max([life.end for life in lives]) + 1)
                flat = [[*run] for _, run in groupby(steps, [*zip(below, above)].__getitem__)]  # of one height
                corners = [(run[side] - side, run[0]) for run in flat for side in (0, -1)]
                upper, lower = [[self.at(x, line[n]) for x, n in corners] for line in (above, below)]
                border, fill = KINDS[kind]
                self.path([*upper, *reversed(lower), upper[0]], border, thick=0.7, fill=fill)
            names += [((left + right) / 2, (high + low) / 2 + 3.5, name)
                      for (left, high), (right, low) in zip(upper[::2], lower[1::2])
                      if low - high > TALL and right - left > text_width(name, LINE) + 6.0][:1]
        for x, y, name in names:  # above all layers, also in a narrow chart
            self.text(x, y, name, anchor="middle", halo=True)
        held, wide = way.held, self.at(1, 0)[0] - Axes.LEFT
        for depth, level in enumerate(reversed(levels)):  # the parts, and below them the phases
            for number, (begin, end, name) in enumerate(level):
                part, most = f"{key}axis{depth}.{number}", bytes_text(max(held[begin:end]))
                marks[part] = name, [("at most", most)]
                self.bar(Axes.LEFT + begin * wide, self.at(0, 0)[1] + 6.0 + BELOW * depth, (end - begin) * wide, 13.0,
                         way.paths[begin][0] * (way.kinds is MADE) or "quiet", part, name)
        if other is not way:
            self.path([self.at(step, other.most) for step in (0, count)], "ink", thick=1.6, dashes=DASHED)
        text, (x, y) = f"at most {way.peak}", self.at(way.then + 0.5, way.most)
        marks[f"{key}most"] = text, way.facts(way.made)
        with self.mark(f"{key}most", text):
            self.dot(x, y, "leaf-fill", radius=5.5, stroke="good")
            self.text(x, y - 10.0, text, anchor="end" if x > WIDTH / 2 else "start", bold=True, halo=True)

    def at(self, step: float, size: float) -> tuple[float, float]:
        """The place of a number of bytes at a step."""
        return self.axes.at(step, size / self.size)
