"""The memory that a forward pass keeps for the backward pass, and a model of checkpoints.

The bytes are those of the arrays that the recorded nodes store.  The effect of checkpoints follows from the rules of
`mg.checkpoint`: each part keeps only its inputs from outside, and computes the rest again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

from ..compile.functions.trace import without_spent_history
from ..compile.fusion.count import flops_of
from ..core.clock import buffer_of
from ..core.mode import record
from ..core.node import Node
from ..core.primitive import P
from ..core.programs import opened_order
from ..support.source import line_of
from .models import tensors_of
from .naming import call_of, called_in_code, expressions, layer_name, loop_around, names_in_code, operation_name
from .phases import layers_of
from .repeats import rounds_of
from .steps import saved_by
from .traced import tracked_in

UNITS, PARTS, SEGMENTS = 64, 16, 10  # the most parts in the drawing, modules that are opened, and checkpoints


class Unit(NamedTuple):
    """A part of the forward pass that is checkpointed as a whole: a module, the round of a loop, or a few operations.

    A round has the name of its module or loop `around` it.
    """

    name: str
    nodes: list[Node]
    around: tuple[str, ...] = ()


class Tape(NamedTuple):
    """The memory that the nodes of a forward pass keep.

    An array is named by the node that made it.  `needs` has, for each node, the arrays that its rules need, and `size`
    the bytes of each array.  Data and parameters are not counted: they exist without the tape too.  `names` are those
    of values in the code.
    """

    units: list[Unit]
    needs: dict[Node, frozenset[Node]]
    size: dict[Node, int]
    names: Mapping[Node, str] = {}


class Moment(NamedTuple):
    """The tape at a step: the arrays that it keeps, their bytes, and the part of the forward pass."""

    kept: frozenset[Node]
    bytes: int
    unit: int
    again: frozenset[Node]  # the arrays that were computed a second time, even if they are freed by now


def tape_of(function: Callable[[], Any]) -> Tape | None:
    """The tape of a function, which runs once; None where no gradient flows through it.

    >>> x = mg.ones((4, 8), requires_grad=True)
    >>> tape = tape_of(lambda: mg.tanh(x * 2).sum())
    >>> [unit.name for unit in tape.units], peak(play(tape, []))
    (['x · 2', 'tanh(x · 2)', 'tanh(x · 2).sum()'], 128)
    >>> tape_of(lambda: mg.ones(2) * 2) is None
    True
    """
    with record():
        roots = [t.node for t in map(without_spent_history, tracked_in(function())) if t.tracked]
    return read_tape(opened_order(roots)) if roots else None


# What is kept --------------------------------------------------------------------------------------------------------


def read_tape(order: Sequence[Node]) -> Tape:
    """The arrays that recorded nodes keep without checkpoints, and the sizes of all values."""
    nodes = [node for node in order if node.op is not None]
    # The array of each node's memory, kept alive so that identities stay valid.
    owners: dict[Node, Any] = {node: buffer_of(tensor._data) for node, tensor in tensors_of(order).items()}
    needs: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        needed = set()
        for source, value in saved_by(node):
            maker, owner = maker_of(source), None if value is None else buffer_of(value)
            if owner is not None and owners.setdefault(maker, owner) is not owner:  # the copy of a view
                maker = source
                owners[maker] = owner
            if maker.op is not None:
                needed.add(maker)
        needs[node] = frozenset(needed)
    size = {n: owners[n].nbytes if n in owners else n.nbytes for n in nodes}
    known = names_in_code(nodes)
    names = called_in_code(nodes, {**expressions(nodes, known), **known})
    return Tape(units_of(nodes, names), needs, size, names)


def maker_of(node: Node) -> Node:
    """The node that made the memory of a node; views make none."""
    while node.is_view or node.op is P.project:
        node = node.inputs[0]
    return node


def units_of(nodes: Sequence[Node], names: Mapping[Node, str]) -> list[Unit]:
    """The parts to checkpoint: consecutive modules; without modules, each operation.

    The largest modules are opened until the parts are the layers: a block of a transformer is one part.  Operations
    that repeat are the rounds of a loop, each of which is a part.
    """
    kinds = [(node.name, node.shape, node.where, node.scope) for node in nodes]
    places = [(line_of(node.where), node.offset) for node in nodes]
    rounds = rounds_of(kinds, places)
    turns = {i: turn for i, turn in rounds.items() if any(map(flops_of, nodes[turn[0].start : turn[0].stop]))}
    layers = layers_of([node.scope for node in nodes], PARTS)
    keys: list[Any] = [(turns.get(i), layers[node.scope]) for i, node in enumerate(nodes)]
    runs = [[*run] for _, run in groupby(range(len(nodes)), keys.__getitem__)]
    if len(runs) < 3:
        runs = [[i] for i in range(len(nodes))]
    some = -(-len(runs) // UNITS)  # the number of parts that are joined, if there are too many
    open_layers = {path[:-1] for path in layers.values()}
    units = []
    for joined in [runs[i : i + some] for i in range(0, len(runs), some)]:
        own, turn = [nodes[i] for run in joined for i in run], turns.get(joined[-1][0])
        last = own[-1]
        layer = layers[last.scope]
        name = layer_name(layer) if layer not in open_layers else ""
        if turn:
            units.append(Unit(turn[1], own, (name or loop_around(own),)))
        else:
            units.append(Unit(name or names.get(last) or call_of(last) or operation_name(last), own))
    return units


# What checkpoints would do ------------------------------------------------------------------------------------------


def segments_of(tape: Tape, count: int) -> list[range]:
    """The parts in at most `count` checkpoints of about equal bytes, and a last stretch without a checkpoint.

    The backward pass begins with the last stretch, so a checkpoint there would save nothing.

    >>> nodes = [(mg.ones(2, requires_grad=True) * 2).node for _ in range(4)]
    >>> units, needs = [Unit("a", [node]) for node in nodes], dict.fromkeys(nodes, frozenset())
    >>> segments_of(Tape(units, needs, {}), 1)
    [range(0, 2)]
    """
    weights = [sum(tape.size[k] for node in unit.nodes for k in tape.needs[node]) + 1 for unit in tape.units]
    so_far = [*accumulate(weights, initial=0)]
    aims = [so_far[-1] * number / (count + 1) for number in range(count + 1)]
    ends = sorted({min(range(len(weights)), key=lambda i: abs(so_far[i] - aim)) for aim in aims})
    return [range(a, b) for a, b in pairwise(ends)]


def play(tape: Tape, segments: Sequence[range]) -> list[Moment]:
    """The tape at the beginning, after each part of the forward pass, and during each part of the backward pass.

    Each segment is the parts of one checkpoint; parts outside all segments keep what their rules need.  Before the
    backward pass through a segment, this is computed again, in a step of its own.
    """
    segment_of = {unit: segment for segment in segments for unit in segment}
    kept: dict[Any, frozenset[Node]] = {}  # what each node keeps, and each checkpoint
    again = frozenset[Node]()
    moments: list[Moment] = []

    def note(unit: int) -> None:
        now = frozenset[Node]().union(*kept.values())
        moments.append(Moment(now, sum(tape.size[made] for made in now), unit, again))

    def needs(units: Iterable[int]) -> dict[Node, frozenset[Node]]:
        return {node: tape.needs[node] for i in units for node in tape.units[i].nodes}

    note(-1)
    for i in range(len(tape.units)):
        if i in segment_of:
            segment = segment_of[i]
            read = {maker_of(source) for node in needs([i]) for source in node.sources}
            outer = [node for node in read - needs(segment).keys() if node in tape.size]
            kept[segment] = kept.get(segment, frozenset()).union(outer)
        else:
            kept |= needs([i])
        note(i)
    for i in reversed(range(len(tape.units))):
        if segment_of.get(i) in kept:
            segment = segment_of[i]
            came_in = kept.pop(segment)
            kept |= needs(segment)
            again |= frozenset().union(*needs(segment).values()) - came_in
            note(i)
        note(i)
        for node in tape.units[i].nodes:
            kept.pop(node, None)
    return moments


def peak(history: Sequence[Moment]) -> int:
    """The most bytes that are kept at once."""
    return max(moment.bytes for moment in history)
