"""The structure of a graph: what two graphs have in common that one program can run.

Graph mode records the same operations again in each round of a loop.  The nodes are new, and so are the values and the
random numbers, but the structure is the same.  Programs are kept by structure, so that each is compiled once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
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

KEPT = 128  # structures; when there are more, the one that has not run for longest is forgotten
COMPARED = 4096  # bytes of an array among the attributes, up to which its values are compared
NEVER_FAIL = {"elementwise", "reduce", "view", "contract", "creation", "random"}  # kinds, for floats: no line is needed
SCALARS = (int, bool, str, bytes, type(None), type(...))
Draw = tuple[Any, int]  # the key and the first block of some random numbers


class Incomparable(Exception):
    """An attribute may be the same as another one, and nothing says so: the body of a loop, or a function.

    The body of a loop could be compared, but a program that is kept would keep the body's history too.
    """


class Structure(NamedTuple):
    """What two graphs have in common that one program can run.

    `skeleton` and `numbers` are equal for these graphs; `draws` are the random numbers of this one.  The numbers are
    Python numbers among the operands of floats: where they change from round to round they become inputs.
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
    places: dict[Any, int] = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    # One flat tuple: it is made, hashed and compared at each read.
    key: list[Any] = [len(graph.inputs), len(graph.nodes), len(graph.outputs)]
    for node in graph.inputs:
        key += node.shape, node.dtype, node.device
    for node in graph.nodes:
        key += node.op, len(node.inputs), _line(node)
        for i in node.inputs:
            if isinstance(i, Node):
                key.append(places[i])
            elif _dtype_as_input(node, i) is not None:
                key.append(i.__class__)
                numbers.append(repr(i))  # 0.0 is not -0.0
            else:
                key.append((i.__class__, repr(i)))
        if node.attrs:
            key.append(_attributes(node, draws))
    key += [places[node] for node in (*graph.outputs, *graph.effects)]
    return Structure(tuple(key), tuple(numbers), draws)


def _dtype_as_input(node: Node, operand: Any) -> Any:
    """The dtype of a tensor that could take the place of a Python number among the operands; None if none could."""
    assert node.op is not None
    if node.op.kind != "elementwise" or operand.__class__ not in (int, float):
        return None
    dtype = node.op.common_dtype(node.inputs)
    return dtype if dtype is not None and dtype.kind == "f" else None


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


class Runnable(NamedTuple):
    """A program, the numbers that are inputs of it behind those of the graph, and where random numbers begin."""

    program: Program | PlainProgram
    numbers: list[Any]
    starts: Starts


@dataclass
class Kept:
    """The program of a structure with the `numbers` that came first, and, once others came, one that is given them."""

    numbers: tuple[str, ...]
    program: Program | PlainProgram
    general: Program | PlainProgram | None = None


class Programs:
    """The programs that were used last, by structure."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, graph: Graph) -> Runnable:
        """A program for a graph, and what it is given besides the values of the graph's inputs."""
        try:
            structure = structure_of(graph)
        except Incomparable:
            return Runnable(program_for(graph), [], {})
        starts = {("draw", number): draw for number, draw in enumerate(structure.draws)}
        key = structure.skeleton, _surroundings()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is None:
            kept = Kept(structure.numbers, program_for(on_its_own(graph)))
            with self._lock:
                self._kept[key] = kept
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        if kept.numbers == structure.numbers:
            return Runnable(kept.program, [], starts)
        if kept.general is None:
            kept.general = program_for(on_its_own(graph, numbers=True))
        return Runnable(kept.general, _numbers_of(graph), starts)


PROGRAMS = Programs()


def _surroundings() -> Hashable:
    """What a program depends on apart from its graph: the registered passes and rules, and the chosen backend."""
    passes = tuple([(id(each), each.rules and each.rules.version) for each in PASSES])
    return passes, os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")


def on_its_own(graph: Graph, numbers: bool = False) -> Graph:
    """The same graph of new nodes, which keep no value and no earlier recipe alive, and draw where a run says.

    With `numbers`, those that change become inputs, behind the others.
    """
    new: dict[Any, Node] = {node: _input_like(node) for node in graph.inputs}
    given: list[Node] = []
    draws = 0

    def operand(node: Node, value: Any) -> Any:
        dtype = _dtype_as_input(node, value) if numbers else None
        if dtype is None:
            return value
        given.append(Source("number", None, (), dtype, node.device, Mode(scope=node.mode.scope)))
        return given[-1]

    def anew(node: Node, inputs: Sequence[Any]) -> Node:
        nonlocal draws
        made = new[node] = in_place_of(node)
        made.op, made.inputs, made.attrs = node.op, tuple([operand(node, i) for i in inputs]), node.attrs
        made.shape, made.dtype = node.shape, node.dtype
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin))
        if node.op is P.random:
            made.attrs = node.attrs | {"key": ("draw", draws), "block": 0}
            draws += 1
        return made

    made = graph.rebuilt(anew, [new[node] for node in graph.inputs])
    return Graph([*made.inputs, *given], made.outputs, made.effects) if given else made


def _numbers_of(graph: Graph) -> list[Any]:
    """The numbers of a graph as arrays, in the order of the inputs that `on_its_own` makes for them."""
    operands = [(node, i) for node in graph.nodes for i in node.inputs if not isinstance(i, Node)]
    typed = [(node, number, _dtype_as_input(node, number)) for node, number in operands]
    return [node.device.from_numpy(np.asarray(n, dtype)) for node, n, dtype in typed if dtype is not None]


def _input_like(node: Node) -> Source:
    kind = "input" if isinstance(node, Source) else node.name  # not "constant": another run has other values
    return Source(kind, None, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
