"""The memory that a forward pass keeps for the backward pass, and a model of checkpoints.

The bytes are those of the arrays that the recorded nodes store.  The effect of checkpoints follows from the rules of
`mg.checkpoint`: each part keeps only its inputs from outside, and computes the rest again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ..compile.fusion.count import flops_of
from ..core.mode import record
from ..core.node import Constant, Leaf, Node
from ..core.primitive import P
from ..core.programs import opened_order
from ..core.tensor import Tensor
from ..core.tree import leaves
from .naming import call_of, layer_name, operation_name
from .phases import layers_of

UNITS, PARTS, SEGMENTS = 32, 16, 10  # the most parts in the drawing, modules that are opened, and checkpoints


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


def tape_of(function: Callable[[], Any]) -> Tape | None:
    """The tape of a function, which runs once; None where no gradient flows through it.

    >>> x = mg.ones((4, 8), requires_grad=True)
    >>> tape = tape_of(lambda: mg.tanh(x * 2).sum())
    >>> [unit.name for unit in tape.units], peak(play(tape, []))
    (['multiply', 'tanh', 'sum'], 128)
    >>> tape_of(lambda: mg.ones(2) * 2) is None
    True
    """
    with record():
        result = function()
    roots = [t.node for t in leaves(result) if isinstance(t, Tensor) and t.tracked]
    return read_tape(opened_order(roots)) if roots else None


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
