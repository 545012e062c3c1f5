"""Programs by structure: graphs that differ only in values, numbers and random draws share a program.

Graph mode records the same operations again in each iteration of a loop.  The nodes are new, and so are the values and
the random numbers, but the structure is the same, so that it is compiled once.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from .function import Function
from .latest import Latest

NEVER_FAIL = {"elementwise", "reduce", "view", "contract", "creation", "random"}  # kinds, for floats: no line is needed
Draw = tuple[Any, Any]  # the key and the first block of some random numbers
Names = dict[Any, Any]  # of the generators that a branch or body draws from


class Structure(NamedTuple):
    """What graphs have in common that can share a program.

    `skeleton` and `numbers` are equal for these graphs; `draws` are the random numbers of this one.  The numbers are
    Python numbers among the operands of floats: when they change between iterations they become inputs.
    """

    skeleton: Hashable
    numbers: tuple[str, ...]
    draws: list[Draw]


def structure_of(graph: Graph) -> Structure:
    """The structure of a graph whose sources are all among its inputs.

    >>> def graph(number):
    ...     return mg.trace(lambda x: mg.tanh(x * number), mg.ones(3))
    >>> structure_of(graph(2)) == structure_of(graph(2)), structure_of(graph(2)) == structure_of(graph(2.0))
    (True, False)
    """
    draws: list[Draw] = []
    numbers: list[str] = []
    return Structure(_skeleton(graph, draws, numbers), tuple(numbers), draws)


def _skeleton(graph: Graph, draws: list[Draw], numbers: list[str] | None, names: Names | None = None) -> Hashable:
    """The structure of a graph; of a branch or body, whose numbers are part of it, with `names` of its generators."""
    places: dict[Any, int] = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    # One flat tuple: it is made, hashed and compared at each read.
    key: list[Any] = [len(graph.inputs), len(graph.nodes), len(graph.outputs)]
    for node in graph.inputs:
        key += node.shape, node.dtype, node.device.name
    for node in graph.nodes:
        if node.op is None:
            key.append(_constant(node))
            continue
        key += node.op, len(node.inputs), _line(node)
        for i in node.inputs:
            if isinstance(i, Node):
                key.append(places[i])
            elif numbers is not None and _dtype_as_input(node, i) is not None:
                key.append(i.__class__)
                numbers.append(repr(i))  # 0.0 is not -0.0
            else:
                key.append((i.__class__, repr(i)))
        if node.attrs:
            attrs = node.attrs
            if node.op.kind in ("random", "structural"):
                attrs, inner = _named(attrs, names, draws)
                key += [_skeleton(a.graph, draws, None, inner) for a in attrs.values() if isinstance(a, Function)]
                attrs = {name: a for name, a in attrs.items() if not isinstance(a, Function)}
            key.append(tuple([(name, comparable(value, objects=False)) for name, value in attrs.items()]))
    key += [places[node] for node in (*graph.outputs, *graph.effects)]
    return tuple(key)


def _named(attrs: dict[str, Any], names: Names | None, draws: list[Draw]) -> tuple[dict[str, Any], Names]:
    """The attributes with names in place of generators, and the names for the functions among them.

    In a branch or body, `names` has the names of the generators.  Outside, random numbers have a key and a first block:
    these are appended to `draws`, and their name is their number there.
    """

    def renamed(key: Any, block: int) -> Draw:
        if names is not None:
            return names.get(key, key), block
        draws.append((key, block))
        return ("draw", len(draws) - 1), 0

    if "key" in attrs:
        key, block = renamed(attrs["key"], attrs["block"])
        return attrs | {"key": key, "block": block}, {}
    if "draws" in attrs:
        inner = {generator: ("generator", i) for i, (generator, *_) in enumerate(attrs["draws"])}
        taken = [(inner[generator], *renamed(key, block), step) for generator, key, block, step in attrs["draws"]]
        return attrs | {"draws": tuple(taken)}, inner
    return attrs, {}


def _dtype_as_input(node: Node, operand: Any) -> Any:
    """The dtype of a tensor that could take the place of a Python number among the operands; None if none could.

    The number of a power stays if it may decide how the power is computed: results depend on values, not on what ran.
    """
    assert node.op is not None
    if node.op.kind != "elementwise" or operand.__class__ not in (int, float):
        return None
    if node.name == "pow" and is_product(operand):
        return None
    dtype = node.op.common_dtype(node.inputs)
    return dtype if dtype is not None and dtype.kind == "f" else None


def _line(node: Node) -> Hashable:
    """The line that an error would name, if running the node can raise one."""
    assert node.op is not None
    dtype = node.dtype
    fails = node.op.kind not in NEVER_FAIL or (dtype.__class__ is not tuple and dtype.kind in "iu")
    return node.where if fails else None


def _constant(node: Any) -> Hashable:
    """A constant of a branch or body, by value."""
    if node.name != "constant" or not node.device.hosted:
        raise Incomparable(node.name)
    return comparable(node.held, objects=False), node.device


class Runnable(NamedTuple):
    """A program, the numbers that are inputs of it behind those of the graph, and where random numbers begin."""

    program: Program | PlainProgram
    numbers: list[Any]
    starts: Starts


@dataclass
class Kept:
    """The program of a structure for the `numbers` that came first, and, once others came, one with them as inputs."""

    numbers: tuple[str, ...]
    program: Program | PlainProgram
    general: Program | PlainProgram | None = None


class Programs(Latest[Kept]):
    """The programs that were used last, by structure."""

    def of(self, graph: Graph, environment: Hashable) -> Runnable:
        """A program for a graph in this `environment()`, and its inputs beyond those of the graph."""
        try:
            structure = structure_of(graph)
        except Incomparable:
            return Runnable(program_for(graph), [], {})
        starts = {("draw", number): draw for number, draw in enumerate(structure.draws)}

        def make() -> Kept:
            return Kept(structure.numbers, program_for(without_history(graph)))

        kept = self.shared((structure.skeleton, environment, _passes()), make)
        if kept.numbers == structure.numbers:
            return Runnable(kept.program, [], starts)
        if kept.general is None:
            kept.general = program_for(without_history(graph, numbers=True))
        return Runnable(kept.general, _numbers_of(graph), starts)


PROGRAMS = Programs()


def _passes() -> Hashable:
    """The registered passes and their rules."""
    return tuple([(id(each), each.rules and each.rules.version) for each in PASSES])


def environment() -> Hashable:
    """What a program depends on apart from its graph and the passes: the chosen backend and executor."""
    return os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")


def without_history(
    graph: Graph, numbers: bool = False, names: Names | None = None, draws: list[Draw] | None = None
) -> Graph:
    """A copy of a graph that keeps no value and no other node alive, and draws random numbers where a run says.

    With `numbers`, the numbers of its structure become inputs, behind the others.
    """
    new: dict[Any, Node] = {node: _input_like(node) for node in graph.inputs}
    given: list[Node] = []
    drawn: list[Draw] = [] if draws is None else draws

    def operand(node: Node, value: Any) -> Any:
        dtype = _dtype_as_input(node, value) if numbers else None
        if dtype is None:
            return value
        given.append(Source("number", None, (), dtype, node.device, Mode(scope=node.mode.scope)))
        return given[-1]

    def copied(node: Node, inputs: Sequence[Any]) -> Node:
        if node.op is None:  # a constant of a branch or body
            new[node] = _source_like(node, "constant", node.held)  # type: ignore[attr-defined]
            return new[node]
        made = new[node] = in_place_of(node)
        attrs, inner = _named(node.attrs, names, drawn)
        made.attrs = {
            name: Function(without_history(a.graph, False, inner, drawn)) if isinstance(a, Function) else a
            for name, a in attrs.items()
        }
        made.op, made.inputs = node.op, tuple([operand(node, i) for i in inputs])
        made.shape, made.dtype = node.shape, node.dtype
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin), toward=node.mode.toward)
        return made

    made = graph.rebuilt(copied, [new[node] for node in graph.inputs])
    return Graph([*made.inputs, *given], made.outputs, made.effects) if given else made


def _numbers_of(graph: Graph) -> list[Any]:
    """The numbers of a graph as arrays, in the order of the inputs that `without_history` makes for them."""
    operands = [(node, i) for node in graph.nodes for i in node.inputs if not isinstance(i, Node)]
    typed = [(node, number, _dtype_as_input(node, number)) for node, number in operands]
    return [node.device.from_numpy(np.asarray(n, dtype)) for node, n, dtype in typed if dtype is not None]


def _input_like(node: Node) -> Source:
    return _source_like(node, "input" if isinstance(node, Source) else node.name)  # other runs have other constants


def _source_like(node: Node, kind: str, held: Any = None) -> Source:
    return Source(kind, held, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
