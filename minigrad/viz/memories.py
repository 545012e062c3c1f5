"""`mg.viz.memory`: the bytes in use over the steps of a call, eagerly, with checkpoints and fused; or of tensors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from ..compile.jitted import Jitted, JittedMethod
from ..compile.look.held import Held, Life, lives_of
from ..core.node import Node
from ..core.primitive import P
from ..core.programs import programs_run
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.source import line_of
from ..support.table import bytes_text, bytes_unit, counted
from .callpaths import OPENED
from .charts import DASHED, KINDS, Chart, Marks, legend, levels_of, mark
from .compiled import back_from, check_computes, eagerly, jitted_once, programs_of, put_back
from .drawing import Axes
from .flipbook import Flipbook, Knob, Page
from .kept import SEGMENTS, Moment, Tape, peak, play, segments_of, share_again, tape_of
from .naming import call_of, value_name
from .phases import BACKWARD, FORWARD, UPDATE
from .sharing import shared_memory
from .sites import places_of
from .svg import LINE, text_width
from .titles import Titles, listed
from .traced import FunctionCall

WIDTH, TOP, HEIGHT, BELOW = 1000.0, 24.0, 400.0, 16.0  # and the height of a row of names below the axis
LISTED = 8  # values in the facts about a layer
TALL = 13.0  # the height of a layer that has room for its name
SLIM = 4.0  # the width of a part of the axis that is not marked
# what the colours of layers mean: of a call, and of the tape
MADE = {"": "made in the call", FORWARD: "made in the forward pass", BACKWARD: "made in the backward pass",
        UPDATE: "made in the update"}
KEPT = {FORWARD: "kept for the backward pass", BACKWARD: "computed again for it"}
GAPS = "; scratch memory and gaps are allocated, too"
MODEL = "; a model, by the rules of mg.checkpoint"
OWN = "; checkpoints are not shown: a jitted or custom function keeps values of its own"
COMPILED = "; some functions ran as compiled programs, drawn at their last launch"
LOSS = "; mg.viz.memory of the loss alone shows checkpoints"
# what is counted: of all that is in use, and of what is kept
COUNTED = ("Data, parameters and program constants are not counted.",
           "Temporary values, gradients, parameters, the result and constants that are not recorded are not counted.")
ENDS = ("ink", "library")  # the colours of the lines for the first and the last way


def memory(what: Any = None, *args: Any, **kwargs: Any) -> Flipbook:
    """Show the bytes in use over the steps of a call, in eager mode and as a fused program.

    For eager mode, the function really runs, and what it writes is put back.  If a gradient flows through the function,
    its backward pass runs too, and charts between the two show what is kept for it: without checkpoints, and with the
    numbers of checkpoints that help.  What checkpoints save is a model, by the rules of `mg.checkpoint`.

    For tensors (by name, in a dictionary, or of a model): show which of them share memory, and which part of it.

    >>> mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(1000))
    <memory: eager at most 12 kB in use, fused in 1 launch at most 4 kB in use>
    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> book = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True))
    >>> print(book.text())
    eager: at most 1.67 kB in use; most in backward: 0 Tanh, 1.02 kB of it from 4 × matmul (8, 8); 516 B between ...
    0 checkpoints: 512 B are kept for the backward pass, at most 512 B at once
    1 checkpoint: 256 B are kept for the backward pass, at most 256 B at once, 49 % of the forward pass computed ...
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
        tape = tape_of(plain.run) if keeps or why else None
        eager = _eager(plain, tape is not None, titles[0] if titles else None)
        if why and not eager.paths:
            raise why
        return _book([eager], titles, tape, f" (there is no fused program: {why.first_line})" if why else "")


def _titles(call: FunctionCall) -> list[Titles]:
    """The titles of a function's program; and if it keeps values for its gradient and this has a program, of that."""
    shown = programs_of(call, "memory", gradient=True)
    return [Titles(each) for each in shown[: 1 + shown[0].keeps]]


class Way(NamedTuple):
    """One way to run a function: its steps, and what is in use, or kept, at each of them.

    What a program takes for its buffers is `allocated`, with scratch memory and gaps between them.
    """

    name: str
    paths: Sequence[tuple[str, ...]]  # of each step: its phase and its part, in a loop also the round
    lives: Sequence[Life]
    kinds: Mapping[str, str]  # what the colours of the layers mean
    more: str = ""  # what is said of it, behind the most bytes in use
    allocated: int = 0
    middle: int = 0  # the number of steps of the forward pass, if a backward pass follows

    @property
    def layers(self) -> dict[tuple[str, ...], list[Life]]:
        """The values that are drawn as one, by the part where they begin, each layer over those before."""
        found: dict[tuple[str, ...], list[Life]] = {}
        for life in self.lives:
            found.setdefault(self.paths[life.begin], []).append(life)
        return found

    @property
    def held(self) -> list[int]:
        """The bytes in use at each step."""
        return _sizes(self.lives, len(self.paths))

    @property
    def most(self) -> int:
        """The most bytes in use."""
        return max(self.held, default=0)

    @property
    def then(self) -> tuple[int, list[Life]]:
        """The first step with the most bytes in use, and the values that are in use then."""
        step = self.held.index(self.most)
        return step, [life for life in self.lives if life.begin <= step <= life.end]

    @property
    def peak(self) -> str:
        """The most bytes, in words."""
        most, more = bytes_text(self.most), f", {bytes_text(self.allocated)} allocated"
        return f"{most} kept" if self.kinds is KEPT else f"{most} in use" + more * (self.allocated > self.most)

    @property
    def say(self) -> str:
        """The most bytes, when and in what they are in use, and how many are when a backward pass begins."""
        if self.kinds is KEPT:
            return self.more
        (step, there), sizes = self.then, Counter[str]()
        at = f"; most in {self.part(step)}" if there else ""
        for life in there:
            sizes[life.name] += life.bytes
        for name, size in sizes.most_common(1):
            count = sum([life.name == name for life in there])
            called = f"{count} × " * (count > 1) + name.removesuffix(" ()")
            at += f", {bytes_text(size)} of it from {called}" * (size < self.most)
        held = sum([life.bytes for life in self.lives if life.begin < self.middle <= life.end])
        between = f"; {bytes_text(held)} between forward and backward pass" * (self.middle > 0)
        return f"at most {self.peak}{at}{between}{self.more}" + GAPS * (self.allocated > self.most)

    def part(self, step: int) -> str:
        """The phase and the part of a step, in words."""
        return ": ".join(filter(None, self.paths[step]))

    def called(self, kind: str, part: Sequence[str], lives: Sequence[Life]) -> str:
        """The name of a layer: its part, where the values begin; but not the name of one that is not in it.

        A value is kept where a later operation reads it, so the name of its part is often that of the result.  Those
        of many parts are computed again at once.
        """
        own = self.kinds is KEPT and (len(lives) < 3 or kind == BACKWARD)
        return listed([life.name for life in lives]) if own else ": ".join(filter(None, part))

    def about(self, life: Life) -> str:
        """A value in words: its bytes, its place, the line that made it, and the part where it ends."""
        line = f"line {line_of(life.where)[1]}" if life.where else ""
        return ", ".join(filter(None, (bytes_text(life.bytes), life.place, line, f"until {self.part(life.end)}")))

    def facts(self, lives: Sequence[Life]) -> list[tuple[str, str]]:
        """The largest of some values in words, and how many others there are."""
        first, rest = (largest := sorted(lives, key=lambda life: -life.bytes))[:LISTED], largest[LISTED:]
        more = [(f"and {len(rest)} more", bytes_text(sum([life.bytes for life in rest])))] if rest else []
        return [(life.name, self.about(life)) for life in first] + more


def _sizes(lives: Sequence[Life], count: int) -> list[int]:
    """The bytes in use at each of some steps."""
    changes = [0] * (count + 1)
    for life in lives:
        changes[life.begin] += life.bytes
        changes[life.end + 1] -= life.bytes
    return [*accumulate(changes[:-1])]


def _book(eager: list[Way], titles: Sequence[Titles], tape: Tape | None = None, why: str = "") -> Flipbook:
    """A chart for each way to run a function: in eager mode, with checkpoints if it has a tape, and fused.

    Without a program, `why` says the reason.
    """
    made = [node.attrs.get("application") for unit in tape.units for node in unit.nodes] if tape else []
    if any(getattr(each, "kept", each) is not None for each in made):
        eager, tape = [way._replace(more=way.more + OWN) for way in eager], None
    ways = [*eager, *(_taped(tape) if tape else ())]
    launches = counted(sum([each.cost.program.launches for each in titles]), "launch", "launches")
    if titles:
        check_computes(titles[0].shown)
        ways.append(_fused(titles))
    most = ", ".join([way.name + f" in {launches}" * (way not in eager) + f" at most {way.peak}"
                      for way in ways if way.kinds is MADE])
    marks: Marks = {"most": mark("at most, in all ways", [(way.name, way.peak) for way in ways])}
    pages = []
    for number, way in enumerate(ways):
        first, *_, last = [each for each in ways if each.kinds is way.kinds] * 2
        ends = [(end, colour) for end, colour in zip((first, last), ENDS) if end is not way]
        say = f"{way.name}: {way.say}. {COUNTED[way.kinds is KEPT]}" + OPENED * (way.kinds is KEPT and programs_run())
        pages.append([Page(_Stack(way, f"s{number}.", marks, ends), say)])
    knobs = (Knob("runs", tuple([way.name for way in ways])),) * (len(ways) > 1)
    words = "\n".join([f"{way.name}: {way.say}" for way in ways])
    return Flipbook(f"memory: {most}{why}", pages, knobs, marks=marks, words=words).titled(
        "", None, [node for each in titles[:1] for node in each.shown.program.graph.nodes])


# The fused program --------------------------------------------------------------------------------------------------


def _fused(parts: Sequence[Titles]) -> Way:
    """What a program has in use; with that of its gradient, which runs after it."""
    paths, lives = list[tuple[str, ...]](), list[Life]()
    for titles in parts:
        plan, begin = titles.shown.program.plan, len(paths)
        steps = [plan.steps[number].name for turn in plan.turns for number in turn] + titles.last
        lives = [life._replace(end=life.end + len(steps) * (life.output >= 0)) for life in lives]
        named = {step: titles.of(step) for step in steps}
        paths += [(found.phase, found.layer or named[step])
                  for step in steps for found in [titles.sections[step]]]
        lives += [life._replace(name=named[steps[life.begin]], begin=begin + life.begin, end=begin + life.end)
                  for life in lives_of(plan)]
        lives += [Life(named[kernel.name], kernel.scratch, at, at, None, "work memory")
                  for kernel in titles.cost.kernels if kernel.rounds and kernel.scratch
                  for at in [begin + steps.index(kernel.name)]]
    total, alone = sum([titles.cost.memory.total for titles in parts]), parts[0].shown.keeps and not parts[1:]
    more = "; its gradient has no program: its loops need max_steps" * alone
    return Way("fused", paths, lives, MADE, more, total, middle=begin * (begin < len(paths)))


# Eager mode, and checkpoints ------------------------------------------------------------------------------------------


def _eager(call: FunctionCall, backward: bool, titles: Titles | None) -> Way:
    """What a call holds that really runs in eager mode, with its `backward` pass; `titles` are those of its program."""

    _watched(call, backward)  # which compiles composed functions
    held, middle = _watched(call, backward)
    places = [*places_of(held.sites, titles)]
    phases = {place.phase for place in places}
    # outside all modules, what the code calls the value, or the call that made it
    names = [place.layer or "gradients" * (place.phase == BACKWARD) or place.called or call_of(site) or site.name
             for site, place in zip(held.sites, places)]
    paths = [(place.phase * (phases != {FORWARD}), *(place.turn or places[site.of].turn * (site.of >= 0) or (name,)))
             for site, place, name in zip(held.sites, places, names)]
    more = COMPILED * any(not hasattr(P, site.name) for site in held.sites)
    more += LOSS * (UPDATE in phases)
    return Way("eager", paths, held.lives, MADE, more, middle=middle * backward)


def _watched(call: FunctionCall, backward: bool) -> tuple[Held, int]:
    """What is held in a call, and the number of launches before its `backward` pass."""
    held = Held()
    with held.watch():
        result = call.run()
        middle = len(held.sites)
        if backward:
            back_from(result)
    return held, middle


def _taped(tape: Tape) -> list[Way]:
    """What is kept without checkpoints, and by the model of each number of checkpoints that keeps less than fewer."""
    ways, least = list[Way](), math.inf
    for count in range(min(SEGMENTS, len(tape.units) - 1) + 1):
        segments = segments_of(tape, count)
        if (most := peak(history := play(tape, segments))) < least:
            ways, least = [*ways, _taped_way(tape, segments, history)], most
    if least and not ways[1:]:
        ways[0] = ways[0]._replace(more=f"{ways[0].say}; checkpoints would not lower this")
    return ways if least else []


def _taped_way(tape: Tape, segments: Sequence[range], history: Sequence[Moment]) -> Way:
    """What the tape keeps with these checkpoints: the layers are the parts whose rules need it."""
    _, *moments = history  # at first, nothing is kept
    steps: dict[tuple[Node, bool], list[int]] = {}  # where an array is kept, at first and computed again
    for step, moment in enumerate(moments):
        for node in moment.kept:
            steps.setdefault((node, node in moment.again), []).append(step)
    lives = [
        Life(value_name(node, tape.names), tape.size[node], at[0], at[-1], node.where)
        for (node, _), at in sorted(steps.items(), key=lambda each: (each[1][0], each[0][0].serial))
    ]
    kept, most = bytes_text(history[len(tape.units)].bytes), bytes_text(peak(history))
    say = f"{kept} are kept for the backward pass, at most {most} at once"
    say += f", {100 * share_again(tape, segments):.0f} % of the forward pass computed again{MODEL}" * bool(segments)
    phases = [FORWARD] * len(tape.units) + [BACKWARD] * len(moments)
    paths = [(phase, *tape.units[moment.unit].path) for phase, moment in zip(phases, moments)]
    return Way(counted(len(segments), "checkpoint"), paths, lives, KEPT, say)


# The charts -----------------------------------------------------------------------------------------------------------


class _Stack(Chart):
    """The bytes in use at each step of a way, as a stack of layers, with lines for what other ways need."""

    def __init__(self, way: Way, key: str, marks: Marks, ends: Sequence[tuple[Way, str]]) -> None:
        count, levels = len(way.paths), levels_of([(n, n + 1, path) for n, path in enumerate(way.paths)])
        super().__init__(WIDTH, TOP + HEIGHT + BELOW * (len(levels) - 0.5))
        top = 1.06 * max([way.most, *[end.most for end, _ in ends]]) or 1.0
        self.size, unit = bytes_unit(top)
        self.axes = Axes(self, (0.0, TOP, WIDTH, HEIGHT), (0, count), (0, top / self.size), named=False)
        self.text(Axes.LEFT - 4.0, 14.0, unit, fill="quiet", anchor="end")
        used = dict.fromkeys([kind for kind, *_ in way.layers])
        look = KINDS | {"": KINDS["kernel" if used.keys() == {""} else "mixed"]}
        legend(self, Axes.LEFT + 8.0, 14.0, [
            *[(*look[kind], way.kinds[kind]) for kind in used],
            *[(colour, "", f"{end.name}: {end.peak}") for end, colour in ends]])
        for number, level in enumerate(reversed(levels)):  # the parts, and below them the phases
            across = [(self.at(begin, 0)[0], self.at(end, 0)[0], name) for begin, end, name in level]
            self.brackets(self.at(0, 0)[1] + 6.0 + BELOW * number, [s for s in across if s[1] - s[0] > SLIM])
        above = [0] * count
        for number, ((kind, *part), lives) in enumerate(way.layers.items()):
            sizes, below, name = _sizes(lives, count), above, way.called(kind, part, lives)
            above = [a + b for a, b in zip(below, sizes)]
            title = f"{name}, {way.kinds[kind]}: at most {bytes_text(max(sizes))}"
            marks[f"{key}{number}"] = mark(title, way.facts(lives))
            with self.mark(f"{key}{number}", title):
                steps = range(lives[0].begin, max([life.end for life in lives]) + 1)
                self.layer(name, look[kind], steps, below, above)
        for end, colour in ends:
            self.path([self.at(step, end.most) for step in (0, count)], colour, thick=1.6, dashes=DASHED)
        self.peak(way, f"{key}most", marks)

    def at(self, step: float, size: float) -> tuple[float, float]:
        """The place of a number of bytes at a step."""
        return self.axes.at(step, size / self.size)

    def layer(
        self, name: str, look: tuple[str, str], steps: range, below: Sequence[int], above: Sequence[int]
    ) -> None:
        """Draw a layer, with its name if it has room in one of its parts."""
        flat = [[*run] for _, run in groupby(steps, lambda n: (below[n], above[n]))]  # of one height
        corners = [(run[side] - side, run[0]) for run in flat for side in (0, -1)]
        upper, lower = [[self.at(x, line[n]) for x, n in corners] for line in (above, below)]
        self.path([*upper, *reversed(lower), upper[0]], look[0], thick=0.7, fill=look[1])
        for (left, high), (right, low) in zip(upper[::2], lower[1::2]):
            if low - high > TALL and right - left > text_width(name, LINE) + 6.0:
                return self.text((left + right) / 2, (high + low) / 2 + 3.5, name, anchor="middle", halo=True)

    def peak(self, way: Way, key: str, marks: Marks) -> None:
        """The most bytes in use: a point with the values that are there then, and a text with those of all ways."""
        text, (step, there) = f"at most {way.peak}", way.then
        x, y = self.at(step + 0.5, way.most)
        border, fill = KINDS["result"]
        marks[key] = mark(text, way.facts(there))
        with self.mark(key, f"{text}: what is there"):
            self.dot(x, y, fill, radius=5.5, stroke=border)
        with self.mark("most", f"{text}: all ways"):
            self.text(x, y - 10.0, text, anchor="end" if x > WIDTH / 2 else "start", bold=True, halo=True)
