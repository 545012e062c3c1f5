"""Programs by structure: graphs that differ only in values, numbers and random draws share a program.

Graph mode records the same operations again in each iteration of a loop.  The nodes are new, and so are the values and
the random numbers, but the structure is the same, so that it is compiled once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.mode import Mode
from ...core.node import Node
from ..loops.powers import is_product
from ..nodes.graph import Graph, in_place_of
from ..nodes.interpret import Starts
from ..nodes.source import Source
from ..rewriting.common import Incomparable, comparable
from ..rewriting.passes import PASSES
from ..running.program import PlainProgram, Program, program_for
from ..tracing.tracer import Pending
from .function import Function
from .latest import Latest

NEVER_FAIL = {"elementwise", "reduce", "view", "contract", "creation", "random"}  # kinds, for floats: no line is needed
Draw = tuple[Any, Any]  # the key and the first block of some random numbers
Names = dict[Any, Any]  # of the generators that a branch or body draws from


class Structure:
    """What graphs have in common that can share a program, collected node by node: a `key` that is equal for them.

    Of one graph, it has the `draws` of random numbers, with the number of each node's first one in `drawn`; and the
    `numbers`: Python numbers among the operands of floats, each with its node, its place among the operands, and its
    dtype.  When these change between iterations they become inputs.  A branch or body has `names` of the generators
    that it draws from; its numbers are part of the key.
    """

    def __init__(self, names: Names | None = None) -> None:
        self.key: list[Any] = []  # flat: it is made, hashed and compared at each read
        self.numbers: list[tuple[Node, int, Any]] = []
        self.draws: list[Draw] = []
        self.drawn: dict[Node, int] = {}
        self.names = names
        self.is_comparable = True

    @property
    def values(self) -> tuple[str, ...]:
        """The numbers: 0.0 is not -0.0."""
        return tuple([repr(node.inputs[i]) for node, i, _ in self.numbers])

    def add(self, node: Node, places: Sequence[int]) -> None:
        """Append an operation; those operands that are nodes have these places."""
        op, key = node.op, self.key
        if op is None:
            key.append(_constant(node))
            return
        key.append(op)
        if op.kind not in NEVER_FAIL or node.dtype.__class__ is tuple or node.dtype.kind in "iu":
            key.append(node.where)  # the line that an error would name
        if len(places) == len(node.inputs):
            key += places
        else:
            left = iter(places)
            for i, x in enumerate(node.inputs):
                if isinstance(x, Node):
                    key.append(next(left))
                else:
                    self._number(node, i, x)
        if node.attrs:
            self._attributes(node, node.attrs)

    def _attributes(self, node: Node, attrs: dict[str, Any]) -> None:
        if node.op.kind in ("random", "structural"):  # type: ignore[union-attr]
            attrs, inner, draws = _named(attrs, self.names, len(self.draws))
            self.drawn[node] = len(self.draws)
            self.draws += draws
            self.key += [_skeleton(a.graph, inner) for a in attrs.values() if isinstance(a, Function)]
            attrs = {name: a for name, a in attrs.items() if not isinstance(a, Function)}
        self.key.append(comparable(attrs, objects=False))

    def _number(self, node: Node, index: int, number: Any) -> None:
        dtype = _dtype_as_input(node, number) if self.names is None else None
        if dtype is None:
            self.key += number.__class__, repr(number)
        else:
            self.key.append(number.__class__)
            self.numbers.append((node, index, dtype))


def structure_of(wanted: Sequence[Pending]) -> tuple[Structure, list[Pending]]:
    """The structure of the operations that compute some values, and the values that they are computed from.

    Those were computed before, or come from outside.

    >>> def of(number):
    ...     with mg.graph():
    ...         return tuple(structure_of([mg.tanh(mg.ones(3) * number)._data])[0].key)
    >>> of(2) == of(3), of(2) == of(2.0)
    (True, False)
    """
    found, sources = Structure(), list[Pending]()
    key, stack = found.key, list(wanted[::-1])
    places = {id(pending): place for place, pending in enumerate(wanted)}
    while stack:
        pending = stack.pop()
        node = pending.node
        if pending.value is not None or node.op is None:
            sources.append(pending)
            key += node.shape, node.dtype, node.device
            continue
        operands = []
        for operand in pending.waits_for:
            place = places.get(id(operand))
            if place is None:
                place = places[id(operand)] = len(places)
                stack.append(operand)
            operands.append(place)
        try:
            found.add(node, operands)
        except Incomparable:
            found.is_comparable = False
    return found, sources


def _skeleton(graph: Graph, names: Names) -> Hashable:
    """The structure of a branch or body."""
    found = Structure(names)
    places: dict[Any, int] = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    found.key += [(node.shape, node.dtype, node.device) for node in graph.inputs]
    for node in graph.nodes:
        found.add(node, [places[i] for i in node.inputs if isinstance(i, Node)])
    found.key += [places[node] for node in (*graph.outputs, *graph.effects)]
    return len(graph.inputs), len(graph.nodes), len(graph.outputs), tuple(found.key)


def _named(attrs: dict[str, Any], names: Names | None, first: int) -> tuple[dict[str, Any], Names, list[Draw]]:
    """The attributes with names in place of generators, the names for the functions among them, and its draws.

    In a branch or body, `names` has the names of the generators.  Outside, random numbers have a key and a first block:
    their names are numbers from `first` on.
    """
    draws: list[Draw] = []

    def renamed(key: Any, block: int) -> Draw:
        if names is not None:
            return names.get(key, key), block
        draws.append((key, block))
        return ("draw", first + len(draws) - 1), 0

    if "key" in attrs:
        key, block = renamed(attrs["key"], attrs["block"])
        return attrs | {"key": key, "block": block}, {}, draws
    if "draws" in attrs:
        inner = {generator: ("generator", i) for i, (generator, *_) in enumerate(attrs["draws"])}
        taken = [(inner[generator], *renamed(key, block), step) for generator, key, block, step in attrs["draws"]]
        return attrs | {"draws": tuple(taken)}, inner, draws
    return attrs, {}, draws


def _dtype_as_input(node: Node, operand: Any) -> Any:
    """The dtype of a tensor that could take the place of a Python number among the operands; None if none could.

    The number of a power stays if it may decide how the power is computed: results depend on values, not on what ran.
    """
    op: Any = node.op
    if op.kind != "elementwise" or operand.__class__ not in (int, float):
        return None
    if op.name == "pow" and is_product(operand):
        return None
    tensors = [x.dtype for x in node.inputs if isinstance(x, Node)] if op.promotes is None else []
    dtype = tensors[0] if tensors else op.common_dtype(node.inputs)  # all have one dtype: they were cast
    return dtype if dtype is not None and dtype.kind == "f" else None


def _constant(node: Any) -> Hashable:
    """A constant of a branch or body, by value."""
    if node.name != "constant" or not node.device.hosted:
        raise Incomparable(node.name)
    return comparable(node.held, objects=False), node.device


@dataclass
class Kept:
    """The program of a structure for the numbers that came first, and, once others came, one with them as inputs."""

    values: tuple[str, ...]
    program: Program | PlainProgram
    general: Program | PlainProgram | None = None


class Programs(Latest[Kept]):
    """The programs that were used last, by structure."""

    def of(
        self, structure: Structure, graph: Callable[[], Graph], environment: Hashable
    ) -> tuple[Program | PlainProgram, list[Any], Starts]:
        """A program for a graph of this structure in this `environment()`.

        Also the numbers that are inputs of it behind those of the graph, and where random numbers begin.
        """
        if not structure.is_comparable:
            return program_for(graph()), [], {}
        starts = {("draw", number): draw for number, draw in enumerate(structure.draws)}
        values = structure.values

        def make() -> Kept:
            return Kept(values, program_for(without_history(graph(), structure.drawn)))

        kept = self.shared((tuple(structure.key), environment), make)
        if kept.values == values:
            return kept.program, [], starts
        if kept.general is None:
            kept.general = program_for(without_history(graph(), structure.drawn, structure.numbers))
        arrays = [node.device.from_numpy(np.asarray(node.inputs[i], dtype)) for node, i, dtype in structure.numbers]
        return kept.general, arrays, starts


PROGRAMS = Programs()


def environment() -> Hashable:
    """What a program depends on apart from its graph: the passes and their rules, the backend and the executor."""
    passes = [(id(each), each.rules and each.rules.version) for each in PASSES]
    return tuple(passes), os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")


def without_history(
    graph: Graph, drawn: dict[Node, int], numbers: Sequence[tuple[Node, int, Any]] = (), names: Names | None = None
) -> Graph:
    """A copy of a graph that keeps no value and no other node alive, and draws random numbers where a run says.

    The `numbers` of its structure become inputs, behind the others.
    """
    new: dict[Any, Node] = {node: _input_like(node) for node in graph.inputs}
    given: dict[Any, Node] = {
        (node, i): Source("number", None, (), dtype, node.device, Mode(scope=node.mode.scope))
        for node, i, dtype in numbers
    }

    def copied(node: Node, inputs: Sequence[Any]) -> Node:
        if node.op is None:  # a constant of a branch or body
            new[node] = _source_like(node, "constant", node.held)  # type: ignore[attr-defined]
            return new[node]
        made = new[node] = in_place_of(node)
        attrs, inner, _ = _named(node.attrs, names, drawn.get(node, 0))
        made.attrs = {
            name: Function(without_history(a.graph, drawn, (), inner)) if isinstance(a, Function) else a
            for name, a in attrs.items()
        }
        made.op, made.inputs = node.op, tuple([given.get((node, i), x) for i, x in enumerate(inputs)])
        made.shape, made.dtype = node.shape, node.dtype
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin), toward=node.mode.toward)
        return made

    made = graph.rebuilt(copied, [new[node] for node in graph.inputs])
    return Graph([*made.inputs, *given.values()], made.outputs, made.effects) if given else made


def _input_like(node: Node) -> Source:
    return _source_like(node, "input" if isinstance(node, Source) else node.name)  # other runs have other constants


def _source_like(node: Node, kind: str, held: Any = None) -> Source:
    return Source(kind, held, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
