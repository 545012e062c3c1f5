"""The memory that a forward pass keeps for the backward pass, and a model of checkpoints.

The bytes are those of the arrays that the recorded nodes store.  The effect of checkpoints follows from the rules of
`mg.checkpoint`: each part keeps only its inputs from outside, and computes the rest again.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

from ..compile.functions.trace import without_spent_history
from ..compile.look.held import Held
from ..core.clock import buffer_of
from ..core.mode import record
from ..core.node import Node
from ..core.primitive import P
from ..core.programs import opened_order
from ..support.source import Where
from .compiled import tracked_in
from .models import tensors_of
from .scene import copies
from .sites import Place, places_of
from .steps import saved_by
from .titles import Titles

SEGMENTS = 10  # the most checkpoints


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
    the bytes of each array.  Data and parameters are not counted: they exist without the tape too.  `made` is
    what the code calls each value, and where it makes it.
    """

    units: list[Unit]
    needs: dict[Node, frozenset[Node]]
    size: dict[Node, int]
    made: Mapping[Node, tuple[str, Where | None]] = {}


class Moment(NamedTuple):
    """The tape at a step: the arrays that it keeps, their bytes, and the part of the forward pass."""

    kept: frozenset[Node]
    bytes: int
    unit: int
    again: frozenset[Node]  # the arrays that were computed a second time, even if they are freed by now


def tape_of(function: Callable[[], Any], parts: Sequence[Titles] = ()) -> Tape | None:
    """The tape of a function, which runs once; None where no gradient flows through it.

    Its parts and its values have the names that they have in eager mode; `parts` have its programs' titles.

    >>> x = mg.ones((4, 8), requires_grad=True)
    >>> tape = tape_of(lambda: mg.tanh(x * 2).sum())
    >>> [unit.name for unit in tape.units], peak(play(tape, []))
    (['x · 2', 'tanh(x · 2)', 'tanh(x · 2).sum()'], 128)
    >>> tape_of(lambda: mg.ones(2) * 2) is None
    True
    """
    held = Held()
    with record(), held.watch():
        roots = [t.node for t in map(without_spent_history, tracked_in(function())) if t.tracked]
    if not roots or not held.sites:
        return None
    tape, sites = read_tape(opened_order(roots)), [*zip(held.sites, places_of(held.sites, parts))]
    launch = {node: sites[max(0, bisect(held.times, node.serial) - 1)] for node in tape.needs}
    made = {node: (place.called, site.where) for node, (site, place) in launch.items() if site.name == node.name}
    return tape._replace(units=units_of({node: place for node, (_, place) in launch.items()}), made=made)


# What is kept --------------------------------------------------------------------------------------------------------


def read_tape(order: Sequence[Node]) -> Tape:
    """The arrays that recorded nodes keep without checkpoints, and the sizes of all values; each node is a part."""
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
    return Tape([Unit(node.name, [node]) for node in nodes], needs, size)


def maker_of(node: Node) -> Node:
    """The node that made the memory of a node; views make none, unless they must copy."""
    while (node.is_view and not copies(node)) or node.op is P.project:
        node = node.inputs[0]
    return node


def units_of(places: Mapping[Node, Place]) -> list[Unit]:
    """The parts to checkpoint, of nodes and their places: modules, rounds of loops, calls, and values outside them."""
    values = accumulate([place.called > "" and not node.is_view for node, place in places.items()], initial=0)
    parts = {node: place.turn or place.layer or (not place.called and place.part, number)
             for (node, place), number in zip(places.items(), values)}
    runs = [[*run] for _, run in groupby(places, parts.get)]
    return [Unit(name, run, tuple(around)) for run in runs for *around, name in [places[run[-1]].path]]


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
