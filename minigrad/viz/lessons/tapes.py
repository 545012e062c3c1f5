"""`mg.viz.tape`: the memory that a forward pass keeps for the backward pass, and the effect of checkpoints.

The bytes are those of the arrays that the recorded nodes store.  The effect of checkpoints follows from the rules of
`mg.checkpoint`: each part keeps only its inputs from outside, and computes the rest again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ...compile.fusion.count import flops_of
from ...core.mode import record
from ...core.node import Constant, Leaf, Node
from ...core.primitive import P
from ...core.programs import opened_order
from ...core.tensor import Tensor
from ...core.tree import leaves
from ...support.errors import GradError
from ...support.table import as_table, bytes_text, bytes_unit, counted
from ..charts import legend
from ..drawing import Axes, Drawing
from ..exhibit import check_function
from ..flipbook import Block, Flipbook, Knob, Page
from ..naming import call_of, layer_name, operation_name
from ..phases import layers_of
from .watching import without_programs

UNITS, PARTS, SEGMENTS = 32, 16, 10  # the most parts in the drawing, modules that are opened, and checkpoints
WIDTH, BARS, CHART = 600.0, 110.0, 120.0
KEPT = [("there", "there", "kept now"), ("back", "back", "computed again"), ("quiet", "", "without checkpoints")]


class Unit(NamedTuple):
    """A part of the forward pass that is checkpointed as a whole: a module, or a few operations."""

    name: str
    nodes: list[Node]


@dataclass
class Tape:
    """The memory that the nodes of a forward pass keep.

    `needs` has, for each node, the numbers of the arrays that its rules need; `size` and `made` have the bytes of each
    array and the node that made it.  Data and parameters are not counted: they exist without the tape too.
    """

    units: list[Unit]
    needs: dict[Node, frozenset[int]]
    size: dict[int, int]
    made: dict[int, Node]
    outside: int  # bytes of data and parameters


class Moment(NamedTuple):
    """The state of the tape after a step: the arrays that it keeps, their bytes, and what happens."""

    kept: frozenset[int]
    bytes: int
    say: str
    unit: int
    again: frozenset[int]  # the arrays that were computed a second time, even if they are freed by now


def tape(function: Callable[..., Any], *args: Any) -> Flipbook:
    """Run a function, and show the bytes that its tape keeps; a slider shows the effect of checkpoints.

    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> x = mg.ones((4, 8), requires_grad=True)
    >>> book = mg.viz.tape(lambda x: net(x).sum(), x)
    >>> book
    <tape of 17 operations: 512 B are kept for the backward pass>
    >>> print(book.text())
    checkpoints  kept after the forward pass  most at once  computed again
    none                               512 B         512 B             0 %
    1                                  256 B         256 B            49 %
    ...
    """
    check_function("tape", function, "mg.viz.tape(lambda: model(x).sum())")
    with record():
        result = function(*args)
    roots = [t.node for t in leaves(result) if isinstance(t, Tensor) and t.tracked]
    if not roots:
        raise GradError(
            "nothing is kept for the backward pass: no gradient flows through this function",
            hint="requires_grad=True for the tensors to differentiate by, or an nn module",
        )
    found = read_tape(opened_order(roots))
    after = len(found.units)  # the moment after the forward pass
    plans = [segments_of(found, count) for count in range(min(SEGMENTS, after - 1) + 1)]
    histories = [play(found, segments) for segments in plans]
    figures = [_figures(found, *each) for each in zip(plans, histories)]
    pages = [_Pages(found, histories, count, figures).all() for count in range(len(histories))]
    nodes = sum(len(unit.nodes) for unit in found.units)
    title = f"tape of {counted(nodes, 'operation')}: {figures[0][1]} are kept for the backward pass"
    best = min(range(len(histories)), key=lambda count: (peak(histories[count]), count))
    knob = Knob("checkpoints", tuple(row[0] for row in figures), best)
    words = as_table(HEAD, figures, left=1)
    return Flipbook(title, pages, (knob,), cover=after, start=after, words=words)


# What is kept --------------------------------------------------------------------------------------------------------


def read_tape(order: Sequence[Node]) -> Tape:
    """The arrays that recorded nodes keep, and the sizes of all values."""
    nodes = [node for node in order if node.op is not None]
    owners: dict[Node, Any] = {}  # the array of each node's memory, kept alive so that identities stay valid
    needs: dict[Node, frozenset[int]] = {}
    outside: dict[int, int] = {}
    number = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        needed = set()
        for source, value in saved_by(node):
            maker, owner = maker_of(source), owner_of(value)
            if isinstance(maker, (Leaf, Constant)):
                outside[id(owner)] = owner.nbytes
                continue
            if owners.setdefault(maker, owner) is not owner:  # the copy of a view
                maker = source
                owners[maker] = owner
            needed.add(number[maker])
        needs[node] = frozenset(needed)
    size = {number[n]: owners[n].nbytes if n in owners else n.nbytes for n in nodes}
    return Tape(units_of(nodes), needs, size, dict(enumerate(nodes)), sum(outside.values()))


def saved_by(node: Node) -> list[tuple[Node, Any]]:
    """The arrays that a node saved, each with the node that computed it."""
    if not isinstance(node.saved, tuple):
        return []
    found = []
    for source, value in zip((*node.inputs, node), node.saved):
        values = value if isinstance(value, tuple) else (value,)
        found += [(source, v) for v in values if isinstance(source, Node) and hasattr(v, "nbytes")]
    return found


def owner_of(value: Any) -> Any:
    """The array that owns the memory of an array."""
    while hasattr(getattr(value, "base", None), "nbytes"):
        value = value.base
    return value


def maker_of(node: Node) -> Node:
    """The node that made the memory of a node; views make none."""
    while node.op is not None and (node.op.kind == "view" or node.op is P.project):
        node = node.inputs[0]
    return node


def units_of(nodes: Sequence[Node]) -> list[Unit]:
    """The parts to checkpoint: consecutive modules, or operations if there are no modules.

    The largest modules are opened until the parts are the layers: a block of a transformer is one part.
    """
    layers = layers_of([node.scope for node in nodes], PARTS)
    runs = [(layer, list(run)) for layer, run in groupby(nodes, lambda node: layers[node.scope])]
    units = [Unit(layer_name(layer) or call_of(run[-1]) or operation_name(run[-1]), run) for layer, run in runs]
    if len(units) < 3:
        units = [Unit(operation_name(node), [node]) for node in nodes]
    while len(units) > UNITS:  # two by two
        units = [
            Unit(a[0].name if len(a) == 1 else f"{a[0].name.split('…')[0]}…", [n for unit in a for n in unit.nodes])
            for a in (units[i : i + 2] for i in range(0, len(units), 2))
        ]
    return units


# What checkpoints would do ------------------------------------------------------------------------------------------


def segments_of(tape: Tape, count: int) -> list[range]:
    """The parts in `count` checkpoints of about equal bytes, and a last stretch without a checkpoint.

    The backward pass begins with the last stretch, so a checkpoint there would save nothing.

    >>> nodes = [(mg.ones(2, requires_grad=True) * 2).node for _ in range(4)]
    >>> units, needs = [Unit("a", [node]) for node in nodes], dict.fromkeys(nodes, frozenset())
    >>> segments_of(Tape(units, needs, {}, {}, 0), 1)
    [range(0, 2)]
    """
    stretches = count + 1
    weights = [sum(tape.size[k] for node in unit.nodes for k in tape.needs[node]) + 1 for unit in tape.units]
    total, so_far = sum(weights), 0
    ends: list[int] = []
    for i, weight in enumerate(weights):
        so_far += weight
        left = stretches - len(ends) - 1  # stretches that begin after this one
        coming = weights[i + 1] / 2 if left else 0  # half of the next part: it goes to the nearer side
        if left and (so_far + coming >= total * (len(ends) + 1) / stretches or len(weights) - i - 1 == left):
            ends.append(i + 1)
    starts = [0, *ends]
    return [range(a, b) for a, b in zip(starts, ends)]


def play(tape: Tape, segments: Sequence[range]) -> list[Moment]:
    """The tape at the beginning, after each part of the forward pass, and after each part of the backward pass.

    Each segment is the parts of one checkpoint; parts outside of all segments keep what their rules need.
    """
    player = _Player(tape, segments)
    for i in range(len(tape.units)):
        player.forward(i)
    for i in reversed(range(len(tape.units))):
        player.back(i)
    return player.moments


class _Player:
    """Plays a forward and a backward pass, and records what is kept at each moment."""

    def __init__(self, tape: Tape, segments: Sequence[range]) -> None:
        self.tape = tape
        self.segment_of = {unit: units for units in segments for unit in units}
        self.incoming = {units: _incoming(tape, units) for units in segments}
        self.kept: dict[Node, frozenset[int]] = {}  # what each node keeps
        self.entered: dict[range, frozenset[int]] = {}  # what each checkpoint keeps
        self.again: frozenset[int] = frozenset()
        self.moments: list[Moment] = []
        self.note("Nothing has been computed yet.", -1)

    def note(self, say: str, unit: int) -> None:
        now = frozenset().union(*self.kept.values(), *self.entered.values())
        size = sum(self.tape.size[key] for key in now)
        self.moments.append(Moment(now, size, say, unit, self.again))

    def forward(self, i: int) -> None:
        unit, segment = self.tape.units[i], self.segment_of.get(i)
        if segment is None:
            self.kept |= {node: self.tape.needs[node] for node in unit.nodes}
            self.note(f"Forward through {unit.name}: the tape keeps what its rules need.", i)
            return
        reads = [self.incoming[segment][node] for node in unit.nodes]
        self.entered[segment] = self.entered.get(segment, frozenset()).union(*reads)
        self.note(f"Forward through {unit.name}: a checkpoint keeps only its inputs.", i)

    def back(self, i: int) -> None:
        unit, segment = self.tape.units[i], self.segment_of.get(i)
        if segment in self.entered:
            self.restore(segment, i)  # type: ignore[arg-type]
        for node in unit.nodes:
            self.kept.pop(node, None)
        self.note(f"Back through {unit.name}: what its rules needed is freed.", i)

    def restore(self, segment: range, i: int) -> None:
        """Compute a checkpoint's part again, and keep what its rules need."""
        came_in = self.entered.pop(segment)
        needs = {node: self.tape.needs[node] for u in segment for node in self.tape.units[u].nodes}
        self.kept |= needs
        self.again |= frozenset().union(*needs.values()) - came_in
        first, last = self.tape.units[segment[0]].name, self.tape.units[i].name
        span = last if len(segment) == 1 else f"{first} to {last}"
        self.note(f"The backward pass needs what {span} did not keep: it is computed again.", i)


def _incoming(tape: Tape, units: Iterable[int]) -> dict[Node, frozenset[int]]:
    """For each node of a segment, the arrays from outside of the segment that it reads."""
    number = {node: i for i, node in tape.made.items()}
    inside = {node for u in units for node in tape.units[u].nodes}
    found = {}
    for node in inside:
        sources = [s for s in node.inputs if isinstance(s, Node) and s.op is not None and s not in inside]
        found[node] = frozenset(number[maker_of(s)] for s in sources if maker_of(s) in number)
    return found


def peak(history: Sequence[Moment]) -> int:
    """The most bytes that are kept at once."""
    return max(moment.bytes for moment in history)


def share_again(tape: Tape, segments: Sequence[range]) -> float:
    """The share of the forward pass that is computed a second time."""
    work = [sum(flops_of(node) for node in unit.nodes) for unit in tape.units]
    return sum(work[u] for units in segments for u in units) / (sum(work) or 1)


# How it is shown ----------------------------------------------------------------------------------------------------

HEAD = ("checkpoints", "kept after the forward pass", "most at once", "computed again")


def _figures(tape: Tape, segments: Sequence[range], history: Sequence[Moment]) -> tuple[str, str, str, str]:
    after, most = bytes_text(history[len(tape.units)].bytes), bytes_text(peak(history))
    return str(len(segments) or "none"), after, most, f"{100 * share_again(tape, segments):.0f} %"


class _Pages:
    """The pages for one number of checkpoints."""

    def __init__(self, tape: Tape, histories: Sequence[list[Moment]], count: int, figures: Sequence[Any]) -> None:
        self.tape, self.histories, self.count = tape, histories, count
        self.history = histories[count]
        rows = [list(row) for row in figures]
        self.table: Block = ("table", {"head": ["", "kept", "at most", "again"], "rows": rows, "here": count})
        self.users = Counter(key for needs in tape.needs.values() for key in needs)
        self.unit_of = {node: i for i, unit in enumerate(tape.units) for node in unit.nodes}
        self.axes, self.drawn_axes = self._chart()

    def all(self) -> list[Page]:
        outside = f"{bytes_text(self.tape.outside)} of data and parameters, which exist without the tape too"
        outside += f".{without_programs()}" * bool(without_programs())
        pages = []
        for moment in self.history:
            held = self._listed(moment)
            blocks = [("checkpoints", self.table), *([("what is kept", held)] if held else [])]
            say = f"{moment.say} {bytes_text(moment.bytes)} are kept."
            pages.append(Page(self._drawn(moment), say, (*blocks, ("not counted", ("text", outside)))))
        return pages

    def _listed(self, moment: Moment) -> Block | None:
        """The largest arrays that are kept."""
        tape = self.tape
        rows = []
        for key in sorted(moment.kept, key=lambda key: (-tape.size[key], key))[:6]:
            node, users = tape.made[key], self.users[key]
            shape = "several" if isinstance(node.dtype, tuple) else "×".join(map(str, node.shape)) or "scalar"
            read_by = counted(users, "rule") if users else "again"
            rows.append([operation_name(node), shape, bytes_text(tape.size[key]), read_by])
        return ("table", {"head": ["made by", "shape", "bytes", "for"], "rows": rows}) if rows else None

    def _drawn(self, moment: Moment) -> Drawing:
        """Above, a bar for each part; below, the bytes over time, with and without checkpoints."""
        drawing = Drawing(WIDTH, BARS + CHART + 126)
        drawing.heading(0, 12, "what is kept, by the part that made it")
        legend(drawing, WIDTH - 330, 12, KEPT)
        units = self.tape.units
        full, now, again = self._amounts(moment)
        wide, most, base = WIDTH / len(units), max(*full, 1), 24 + BARS
        inner = max(wide - 5, 2.0)
        for i, unit in enumerate(units):
            x, (whole, held, second) = i * wide, [0.92 * BARS * each[i] / most for each in (full, now, again)]
            about = f"{unit.name}: {bytes_text(full[i])}"
            drawing.rect(x, base - whole, inner, whole, "paper", "line", dashes="3 2", round=2, about=about)
            drawing.rect(x, base - held, inner, held, "there", "there", round=2)
            if second:
                drawing.rect(x, base - held, inner, second, "back", "back", round=2)
            if now[i] and wide > 46:
                drawing.text(x + inner / 2, base - held - 4, bytes_text(now[i]), anchor="middle", bold=True)
            colour, thick = ("now", 2.6) if i == moment.unit else ("line", 1.0)
            drawing.rect(x, base + 3, inner, 20, "tint", colour, thick=thick, round=2, about=unit.name)
            if wide > 22:
                drawing.text(x + inner / 2, base + 17, unit.name, anchor="middle", room=inner - 2)
        for s, segment in enumerate(segments_of(self.tape, self.count), 1):
            left, right, y = segment[0] * wide, (segment[-1] + 1) * wide - 5, base + 29
            drawing.path([(left, y), (left, y + 5), (right, y + 5), (right, y)], "good", thick=1.6)
            name = f"checkpoint {s}" if right - left > 70 else str(s)
            drawing.text((left + right) / 2, y + 17, name, fill="good", anchor="middle")
        if not any(full):
            why = "Nothing is kept:", "the rules need only data and parameters,", "which exist without the tape."
            for i, line in enumerate(why):
                drawing.text(WIDTH / 2, base - BARS / 2 + 16 * i, line, anchor="middle", fill="quiet")
        drawing.add(self.drawn_axes)
        at = next(i for i, other in enumerate(self.history) if other is moment)
        drawing.dot(*self.axes.at(float(at), moment.bytes / self.unit))
        return drawing

    def _amounts(self, moment: Moment) -> tuple[list[int], list[int], list[int]]:
        """For each part: the bytes that rules need, the bytes that are kept now, and those computed again."""
        full, now, again = ([0] * len(self.tape.units) for _ in range(3))
        for key in {*self.users, *moment.kept}:
            i, size = self.unit_of[self.tape.made[key]], self.tape.size[key]
            full[i] += size
            now[i] += size if key in moment.kept else 0
            again[i] += size if key in moment.kept and key in moment.again else 0
        return full, now, again

    def _chart(self) -> tuple[Axes, str]:
        """The bytes over time, the same on all pages."""
        drawing, top = Drawing(0, 0), BARS + 110.0
        drawing.heading(0, top - 14, "kept over time: forward, then backward")
        longest, most = max(map(len, self.histories)) - 1, max(map(peak, self.histories))
        self.unit, name = bytes_unit(most)
        up = (0.0, 1.08 * most / self.unit or 1.0)
        chart = Axes(drawing, (0, top, WIDTH, CHART), (0.0, float(longest)), up, ticks="up")
        drawing.text(0, top + 4, name, fill="quiet")
        middle = float(len(self.tape.units))
        drawing.path([chart.at(middle, 0), chart.at(middle, up[1])], "line", dashes="2 3")
        drawing.text(chart.at(middle, 0)[0], top - 4, "forward is done", fill="quiet", anchor="middle")
        for count, colour, dashes in ((0, "quiet", "5 3"), (self.count, "there", "")):
            points = [(float(i), moment.bytes / self.unit) for i, moment in enumerate(self.histories[count])]
            chart.curve(points, colour, dashes=dashes)
        return chart, "".join(drawing.pieces)
