"""The structure of a graph: what two graphs have in common that one program can run.

Graph mode records the same operations again in each round of a loop.  The nodes are new, and so are the values and the
random numbers, but the structure is the same.  Programs are kept by structure, so that each is compiled once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.forking import new_lock
from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import P, Primitive
from ...devices.registry import Device
from ..nodes.graph import Graph, in_place_of
from ..nodes.interpret import Starts
from ..nodes.source import Source
from ..rewriting.passes import PASSES
from ..running.program import PlainProgram, Program, program_for

KEPT = 128  # programs; when there are more, the one that has not run for longest is forgotten
COMPARED = 4096  # bytes of an array among the attributes, up to which its values are compared
NEVER_FAIL = {"elementwise", "reduce", "view", "contract", "creation", "random"}  # kinds, for floats: no line is needed
SCALARS = (int, bool, str, bytes, type(None), type(...))
Draw = tuple[Any, int]  # the key and the first block of some random numbers


class Incomparable(Exception):
    """An attribute may be the same as another one, and nothing says so: the body of a loop, or a function.

    The body of a loop could be compared, but a program that is kept would keep the body's history too.
    """


class Structure(NamedTuple):
    """The `key` is equal for graphs that one program can run; `draws` are the random numbers of this one."""

    key: Hashable
    draws: list[Draw]


def structure_of(graph: Graph) -> Structure:
    """The structure of a graph whose sources are all among its inputs.

    >>> def graph(number):
    ...     return mg.trace(lambda x: mg.tanh(x * number), mg.ones(3))
    >>> structure_of(graph(2)) == structure_of(graph(2)), structure_of(graph(2)) == structure_of(graph(2.0))
    (True, False)
    """
    draws: list[Draw] = []
    numbers: dict[Any, int] = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    # One flat tuple: it is made, hashed and compared at each read.
    key: list[Any] = [len(graph.inputs), len(graph.nodes), len(graph.outputs)]
    for node in graph.inputs:
        key += node.shape, node.dtype, node.device
    for node in graph.nodes:
        key += node.op, len(node.inputs), _line(node)
        key += [numbers[i] if isinstance(i, Node) else (i.__class__, repr(i)) for i in node.inputs]
        if node.attrs:
            key.append(_attributes(node, draws))
    key += [numbers[node] for node in (*graph.outputs, *graph.effects)]
    return Structure(tuple(key), draws)


def _attributes(node: Node, draws: list[Draw]) -> Hashable:
    attrs = node.attrs
    if node.op is P.random:
        draws.append((attrs["key"], attrs["block"]))
        attrs = {name: value for name, value in attrs.items() if name not in ("key", "block")}
    return tuple([(name, _comparable(value)) for name, value in attrs.items()])


def _line(node: Node) -> Hashable:
    """The line that an error would name, if running the node can raise one."""
    assert node.op is not None
    dtype = node.dtype
    fails = node.op.kind not in NEVER_FAIL or (dtype.__class__ is not tuple and dtype.kind in "iu")
    return node.where if fails else None


def _comparable(value: Any) -> Hashable:
    """Something that equals that of another value only where both make an operation compute the same."""
    kind = value.__class__
    if kind in SCALARS:
        return kind, value  # 1 and True are not the same
    if kind in (float, complex):
        return kind, repr(value)  # nor are 0.0 and -0.0
    if isinstance(value, (tuple, list)):
        return kind, tuple([_comparable(part) for part in value])
    if kind is dict:
        return kind, tuple([(name, _comparable(part)) for name, part in value.items()])
    if kind is slice:
        return kind, _comparable((value.start, value.stop, value.step))
    if isinstance(value, (np.dtype, Device, Primitive, type)):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= COMPARED and not value.dtype.hasobject:
        return kind, value.shape, value.dtype, value.tobytes()
    raise Incomparable(repr(value))


class Programs:
    """The programs that were used last, by structure."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Program | PlainProgram] = OrderedDict()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, graph: Graph) -> tuple[Program | PlainProgram, Starts]:
        """A program for a graph, and where its random numbers begin."""
        try:
            structure = structure_of(graph)
        except Incomparable:
            return program_for(graph), {}
        key = structure.key, _surroundings()
        with self._lock:
            program = self._kept.get(key)
            if program is not None:
                self._kept.move_to_end(key)
        if program is None:
            program = program_for(on_its_own(graph))
            with self._lock:
                self._kept[key] = program
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return program, {("draw", number): draw for number, draw in enumerate(structure.draws)}


PROGRAMS = Programs()


def _surroundings() -> Hashable:
    """What a program depends on besides its graph: what was registered, and which backend was asked for."""
    return tuple(map(id, PASSES)), os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")


def on_its_own(graph: Graph) -> Graph:
    """The same graph of new nodes, which keep no value and no earlier recipe alive, and draw where a run says."""
    new: dict[Any, Node] = {node: _input_like(node) for node in graph.inputs}
    draws = 0

    def anew(node: Node, inputs: Sequence[Any]) -> Node:
        nonlocal draws
        made = new[node] = in_place_of(node)
        made.op, made.inputs, made.attrs = node.op, tuple(inputs), node.attrs
        made.shape, made.dtype = node.shape, node.dtype
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin))
        if node.name == "random":
            made.attrs = node.attrs | {"key": ("draw", draws), "block": 0}
            draws += 1
        return made

    return graph.rebuilt(anew, [new[node] for node in graph.inputs])


def _input_like(node: Node) -> Source:
    kind = "input" if isinstance(node, Source) else node.name  # not "constant": another run has other values
    return Source(kind, None, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
