"""`mg.viz.tape`: what is kept from a forward pass for the way back, and what checkpoints would save and cost.

The bytes are those of the arrays that the recorded nodes hold.  What checkpoints would leave of them follows from the
rules of `mg.checkpoint`: of each part, only what comes in from outside is kept, and the rest is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ..compile.counts import flops_of, nbytes
from ..core.errors import GradError, MinigradError
from ..core.mode import record
from ..core.node import Constant, Leaf, Node, topological_order
from ..core.primitive import P
from ..core.table import as_table, bytes_text
from ..core.tensor import Tensor
from ..core.tree import leaves
from .drawing import Chart, Drawing
from .flipbook import Block, Flipbook, Knob, Page

UNITS, SEGMENTS = 32, 10  # parts that are drawn, and checkpoints, at most
WIDTH, BARS, CHART = 620.0, 150.0, 150.0


class Unit(NamedTuple):
    """A part of the forward pass that is checkpointed as a whole or not at all: a module, or a few operations."""

    name: str
    nodes: list[Node]


@dataclass
class Tape:
    """What the nodes of a forward pass keep: of each, the memory that its rules need, by number.

    `size` and `made` say of a piece of memory how large it is and which node made it.  What came from outside (data,
    parameters) is left out: somebody holds it anyway.
    """

    units: list[Unit]
    needs: dict[Node, frozenset[int]]
    size: dict[int, int]
    made: dict[int, Node]
    outside: int  # bytes of what came from outside


class Moment(NamedTuple):
    """The state of the tape after a step: which memory it holds, and what happens."""

    kept: frozenset[int]
    say: str
    unit: int
    again: frozenset[int]  # of what is kept, what was computed a second time


def tape(function: Callable[..., Any], *args: Any) -> Flipbook:
    """Run a function, show what its tape keeps byte for byte, and with a slider what checkpoints would leave of it.

    >>> net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    >>> x = mg.ones((4, 8), requires_grad=True)
    >>> book = mg.viz.tape(lambda x: net(x).sum(), x)
    >>> book
    <tape of 17 operations: 1.02 kB are kept for the way back>
    >>> print(book.text())
    checkpoints  kept after the forward pass  most at once  computed again
    none                             1.02 kB       1.02 kB             0 %
    ...
    """
    if not callable(function):
        raise MinigradError(f"tape runs a function, and a {type(function).__name__} is none", hint="lambda: model(x).sum()")
    with record():
        result = function(*args)
    roots = [t.node for t in leaves(result) if isinstance(t, Tensor) and t.tracked]
    if not roots:
        raise GradError(
            "nothing is kept for the way back: no gradient flows through this function",
            hint="requires_grad=True for what it should be taken by, or an nn module",
        )
    found = read_tape(topological_order(roots))
    counts = range(min(SEGMENTS, len(found.units) - 1) + 1)
    histories = [play(found, count) for count in counts]
    settings = tuple("none" if n == 0 else str(n) for n in counts)
    pages = [_pages(found, histories, n) for n in counts]
    kept = bytes_text(_bytes(found, histories[0][len(found.units)].kept))
    nodes = sum(len(unit.nodes) for unit in found.units)
    title = f"tape of {nodes} operation{'s' * (nodes != 1)}: {kept} are kept for the way back"
    best = min(counts, key=lambda n: (_peak(found, histories[n]), n))
    rows = [_figures(found, n, histories[n]) for n in counts]
    after = len(found.units)
    return Flipbook(title, pages, (Knob("checkpoints", settings, best),), cover=after, start=after,
                    words=as_table(HEAD, rows, left=1))  # fmt: skip


# What is kept --------------------------------------------------------------------------------------------------------


def read_tape(order: Sequence[Node]) -> Tape:
    """What recorded nodes hold on to, and how large what they do not hold would be."""
    nodes = [node for node in order if node.op is not None]
    owners: dict[Node, Any] = {}  # whose value has which memory, which is kept alive so that identities are true
    needs: dict[Node, frozenset[int]] = {}
    outside: dict[int, int] = {}
    number = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        needed = set()
        for source, value in _saved(node):
            maker, owner = _maker(source), _owner(value)
            if isinstance(maker, (Leaf, Constant)):
                outside[id(owner)] = owner.nbytes
                continue
            if owners.setdefault(maker, owner) is not owner:  # a view that had to be copied
                maker = source
                owners[maker] = owner
            needed.add(number[maker])
        needs[node] = frozenset(needed)
    size = {number[n]: owners[n].nbytes if n in owners else nbytes(n.shape, n.dtype) for n in nodes}
    return Tape(units_of(nodes), needs, size, dict(enumerate(nodes)), sum(outside.values()))


def _saved(node: Node) -> list[tuple[Node, Any]]:
    """The arrays that a node saved, each with the node whose value it is."""
    if not isinstance(node.saved, tuple):
        return []
    found = []
    for source, value in zip((*node.inputs, node), node.saved):
        values = value if isinstance(value, tuple) else (value,)
        found += [(source, v) for v in values if isinstance(source, Node) and hasattr(v, "nbytes")]
    return found


def _owner(value: Any) -> Any:
    """The array that has the memory which an array looks at."""
    while hasattr(getattr(value, "base", None), "nbytes"):
        value = value.base
    return value


def _maker(node: Node) -> Node:
    """The node that made the memory: a view made none."""
    while node.op is not None and (node.op.kind == "view" or node.op is P.project):
        node = node.inputs[0]
    return node


def units_of(nodes: Sequence[Node]) -> list[Unit]:
    """The parts that are checkpointed: the modules that follow each other, or operations where there are none."""
    units = [Unit(node.name, [node]) for node in nodes]
    for depth in range(1, max(len(node.scope) for node in nodes) + 1):
        runs = [(path, list(run)) for path, run in groupby(nodes, lambda node: node.scope[:depth])]  # noqa: B023
        if len(runs) >= 3:
            units = [Unit(path[-1] if path else run[-1].name, run) for path, run in runs]
            break
    while len(units) > UNITS:  # two by two
        units = [
            Unit(a[0].name if len(a) == 1 else f"{a[0].name.split('…')[0]}…", [n for unit in a for n in unit.nodes])
            for a in (units[i : i + 2] for i in range(0, len(units), 2))
        ]
    return units


# What checkpoints would do ---------------------------------------------------------------------------------------------


def segments_of(tape: Tape, count: int) -> list[range]:
    """The parts in stretches of about as many bytes each, `count` of them, and a last one that is no checkpoint.

    The way back begins with the last one, so that letting go of it would save nothing.

    >>> nodes = [(mg.ones(2, requires_grad=True) * 2).node for _ in range(4)]
    >>> units, needs = [Unit("a", [node]) for node in nodes], dict.fromkeys(nodes, frozenset())
    >>> segments_of(Tape(units, needs, {}, {}, 0), 1)
    [range(0, 2)]
    """
    stretches = count + 1
    weights = [sum(tape.size[k] for node in unit.nodes for k in tape.needs[node]) + 1 for unit in tape.units]
    total, ends, so_far = sum(weights), [], 0
    for i, weight in enumerate(weights):
        so_far += weight
        left = stretches - len(ends) - 1  # stretches that are still to begin after this one
        coming = weights[i + 1] / 2 if left else 0  # half of it: whether it lies on this side, mostly
        if left and (so_far + coming >= total * (len(ends) + 1) / stretches or len(weights) - i - 1 == left):
            ends.append(i + 1)
    starts = [0, *ends]
    return [range(a, b) for a, b in zip(starts, ends)]


def play(tape: Tape, count: int) -> list[Moment]:
    """The tape at the beginning, after each part on the way there, and after each on the way back."""
    segments = segments_of(tape, count)
    segment_of = {unit: s for s, units in enumerate(segments) for unit in units}
    incoming = [_incoming(tape, units) for units in segments]
    moments = [Moment(frozenset(), "Nothing has been computed yet.", -1, frozenset())]
    kept: dict[Node, frozenset[int]] = {}  # what each node holds on to
    entered: dict[int, frozenset[int]] = {}  # what each checkpoint does
    for i, unit in enumerate(tape.units):
        if i in segment_of:
            reads = frozenset().union(*[incoming[segment_of[i]].get(node, frozenset()) for node in unit.nodes])
            entered[segment_of[i]] = entered.get(segment_of[i], frozenset()) | reads
            what = "a checkpoint keeps only what comes in from outside of it"
        else:
            kept |= {node: tape.needs[node] for node in unit.nodes}
            what = "its rules will need this"
        now = frozenset().union(*kept.values(), *entered.values())
        moments.append(Moment(now, f"Forward through {unit.name}: {what}.", i, frozenset()))
    again: set[int] = set()
    for i in reversed(range(len(tape.units))):
        unit, segment = tape.units[i], segment_of.get(i)
        say = f"Back through {unit.name}: what its rules needed is let go."
        restored = segment is not None and segment in entered
        if restored:
            came_in = entered.pop(segment)  # type: ignore[arg-type]
            nodes = [node for u in segments[segment] for node in tape.units[u].nodes]  # type: ignore[index]
            kept |= {node: tape.needs[node] for node in nodes}
            again |= frozenset().union(*[tape.needs[node] for node in nodes]) - came_in
            before = frozenset().union(*kept.values(), *entered.values())
            span = f"{tape.units[segments[segment][0]].name} to {unit.name}" if len(segments[segment]) > 1 else unit.name  # type: ignore[index]
            moments.append(Moment(before, f"The way back needs what {span} let go: it is computed again.", i, frozenset(again)))
        for node in unit.nodes:
            kept.pop(node, None)
        now = frozenset().union(*kept.values(), *entered.values())
        moments.append(Moment(now, say, i, frozenset(again)))
    return moments


def _incoming(tape: Tape, units: Iterable[int]) -> dict[Node, frozenset[int]]:
    """For each node of a segment, the memory that it reads and that was made outside of it."""
    number = {node: i for i, node in tape.made.items()}
    inside = {node for u in units for node in tape.units[u].nodes}
    found = {}
    for node in inside:
        sources = [s for s in node.inputs if isinstance(s, Node) and s.op is not None and s not in inside]
        found[node] = frozenset(number[_maker(s)] for s in sources if _maker(s) in number)
    return found


def _bytes(tape: Tape, kept: Iterable[int]) -> int:
    return sum(tape.size[key] for key in kept)


def _peak(tape: Tape, history: Sequence[Moment]) -> int:
    return max(_bytes(tape, moment.kept) for moment in history)


def _again(tape: Tape, count: int) -> float:
    """The share of the forward pass that is computed a second time."""
    work = [sum(flops_of(node) for node in unit.nodes) for unit in tape.units]
    return sum(work[u] for units in segments_of(tape, count) for u in units) / (sum(work) or 1)


# How it is shown -------------------------------------------------------------------------------------------------------

HEAD = ("checkpoints", "kept after the forward pass", "most at once", "computed again")


def _figures(tape: Tape, count: int, history: Sequence[Moment]) -> tuple[str, str, str, str]:
    after = bytes_text(_bytes(tape, history[len(tape.units)].kept))
    return ("none" if not count else str(count), after, bytes_text(_peak(tape, history)), f"{100 * _again(tape, count):.0f} %")


def _pages(tape: Tape, histories: Sequence[list[Moment]], count: int) -> list[Page]:
    history = histories[count]
    table: Block = ("table", {"head": ["", "kept", "at most", "again"],
                              "rows": [list(_figures(tape, n, h)) for n, h in enumerate(histories)], "here": count})  # fmt: skip
    pages = []
    for at, moment in enumerate(history):
        now = f"{bytes_text(_bytes(tape, moment.kept))} are held"
        held = _listed(tape, moment)
        blocks = [("checkpoints", table), *([("what is held", held)] if held else []),
                  ("besides", ("text", f"{bytes_text(tape.outside)} of data and parameters, which somebody holds anyway"))]  # fmt: skip
        pages.append(Page(_drawn(tape, histories, count, at), f"{moment.say} {now}.", tuple(blocks)))
    return pages


def _listed(tape: Tape, moment: Moment) -> Block | None:
    largest = sorted(moment.kept, key=lambda key: (-tape.size[key], key))[:6]
    rows = []
    for key in largest:
        node = tape.made[key]
        users = sum(key in needs for needs in tape.needs.values())
        rows.append([node.name, " × ".join(map(str, node.shape)) if not isinstance(node.dtype, tuple) else "several",
                     bytes_text(tape.size[key]), f"{users} rule{'s' * (users != 1)}"])  # fmt: skip
    return ("table", {"head": ["made by", "shape", "bytes", "for"], "rows": rows}) if rows else None


def _drawn(tape: Tape, histories: Sequence[list[Moment]], count: int, at: int) -> Drawing:
    """Above, a bar for each part; below, the bytes over time, with and without checkpoints."""
    drawing = Drawing(WIDTH, BARS + CHART + 112)
    moment = histories[count][at]
    drawing.heading(0, 12, "what is held, by the part that made it")
    unit_of = {node: i for i, unit in enumerate(tape.units) for node in unit.nodes}
    full = [0] * len(tape.units)
    now, again = [0] * len(tape.units), [0] * len(tape.units)
    needed = frozenset().union(*tape.needs.values())
    for key, node in tape.made.items():
        i = unit_of[node]
        full[i] += tape.size[key] if key in needed | moment.kept else 0
        now[i] += tape.size[key] if key in moment.kept else 0
        again[i] += tape.size[key] if key in moment.kept & moment.again else 0
    wide, most = WIDTH / len(tape.units), max(max(full), 1)
    for i, unit in enumerate(tape.units):
        x, base, inner = i * wide, 24 + BARS, max(wide - 5, 2.0)
        high = [BARS * 0.92 * amount / most for amount in (full[i], now[i], again[i])]
        drawing.rect(x, base - high[0], inner, high[0], "paper", "line", dashes="3 2", round=2, about=f"{unit.name}: {bytes_text(full[i])}")
        drawing.rect(x, base - high[1], inner, high[1], "there", "there", round=2)
        if high[2]:
            drawing.rect(x, base - high[1], inner, high[2], "back", "back", round=2)
        drawing.rect(x, base + 3, inner, 20, "now" if i == moment.unit else "tint", "line", round=2, about=unit.name)
        if wide > 22:
            drawing.text(x + inner / 2, base + 17, unit.name, anchor="middle", room=inner - 2, size=9.5)
    for s, units in enumerate(segments_of(tape, count)):
        left, right = units[0] * wide, (units[-1] + 1) * wide - 5
        y = 24 + BARS + 29
        drawing.path([(left, y), (left, y + 5), (right, y + 5), (right, y)], "good", thick=1.6)
        drawing.text((left + right) / 2, y + 17, f"checkpoint {s + 1}", fill="good", anchor="middle", room=right - left)
    _chart(drawing, tape, histories, count, at)
    return drawing


def _chart(drawing: Drawing, tape: Tape, histories: Sequence[list[Moment]], count: int, at: int) -> None:
    top = BARS + 96.0
    begin = len(drawing.pieces)
    drawing.heading(0, top - 12, "held over time: forward, then back")
    longest = max(len(h) for h in histories) - 1
    most = max(_peak(tape, h) for h in histories)
    unit, name = next(((u, n) for u, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= u), (1.0, "B"))
    chart = Chart(drawing, (0, top, WIDTH, CHART), (0.0, float(longest)), (0.0, 1.08 * most / unit or 1.0), told="up")
    drawing.text(46, top + 13, name, fill="quiet")
    middle = float(len(tape.units))
    drawing.path([chart.at(middle, 0), chart.at(middle, 1.08 * most / unit)], "line", dashes="2 3")
    drawing.text(chart.at(middle, 0)[0] + 5, top + 13, "forward is done", fill="quiet")
    for n, colour, dashes in ((0, "quiet", "5 3"), (count, "there", "")):
        points = [(float(i), _bytes(tape, m.kept) / unit) for i, m in enumerate(histories[n])]
        chart.curve(points, colour, dashes=dashes)
    if count:
        drawing.text(WIDTH - 6, top + 13, "dashed: without checkpoints", fill="quiet", anchor="end")
    drawing.merge(begin)
    drawing.dot(*chart.at(float(at), _bytes(tape, histories[count][at].kept) / unit))
