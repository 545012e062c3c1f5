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
            elif _may_be_an_input(node, i):
                key.append(i.__class__)
                numbers.append(repr(i))  # 0.0 is not -0.0
            else:
                key.append((i.__class__, repr(i)))
        if node.attrs:
            key.append(_attributes(node, draws))
    key += [places[node] for node in (*graph.outputs, *graph.effects)]
    return Structure(tuple(key), tuple(numbers), draws)


def _may_be_an_input(node: Node, operand: Any) -> bool:
    """Whether a Python number among the operands may as well be a tensor of the dtype that is computed in."""
    assert node.op is not None
    if node.op.kind != "elementwise" or operand.__class__ not in (int, float):
        return False
    dtype = node.op.common_dtype(node.inputs)
    return dtype is not None and dtype.kind == "f"


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


class Programs:
    """The programs that were used last, by structure."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Program | PlainProgram] = OrderedDict()
        self._seen: dict[Hashable, tuple[str, ...]] = {}  # the numbers with which a skeleton was compiled
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
        skeleton = structure.skeleton, _surroundings()
        numbers = structure.numbers
        for key in ((skeleton, numbers), skeleton):
            program = self._kept.get(key)
            if program is not None:
                with self._lock:
                    if key in self._kept:
                        self._kept.move_to_end(key)
                return Runnable(program, _as_arrays(graph) if key is skeleton else [], starts)
        if self._seen.get(skeleton, numbers) == numbers:
            program, given = self._keep((skeleton, numbers), program_for(on_its_own(graph))), []
        else:  # the same operations with other numbers: from now on these are inputs
            program, given = self._keep(skeleton, program_for(on_its_own(graph, numbers=True))), _as_arrays(graph)
        self._seen[skeleton] = numbers
        return Runnable(program, given, starts)

    def _keep(self, key: Hashable, program: Program | PlainProgram) -> Program | PlainProgram:
        with self._lock:
            self._kept[key] = program
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            if len(self._seen) > KEPT:
                self._seen.clear()
        return program


PROGRAMS = Programs()


def _surroundings() -> Hashable:
    """What a program depends on besides its graph: what was registered, and which backend was asked for."""
    return tuple(map(id, PASSES)), os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")


def on_its_own(graph: Graph, numbers: bool = False) -> Graph:
    """The same graph of new nodes, which keep no value and no earlier recipe alive, and draw where a run says.

    With `numbers`, those that change become inputs, behind the others.
    """
    new: dict[Any, Node] = {node: _input_like(node) for node in graph.inputs}
    given: list[Node] = []
    draws = 0

    def operand(node: Node, value: Any) -> Any:
        if not numbers or isinstance(value, Node) or not _may_be_an_input(node, value):
            return value
        assert node.op is not None
        dtype = node.op.common_dtype(node.inputs)
        given.append(Source("number", None, (), dtype, node.device, Mode(scope=node.mode.scope)))
        return given[-1]

    def anew(node: Node, inputs: Sequence[Any]) -> Node:
        nonlocal draws
        made = new[node] = in_place_of(node)
        made.op, made.inputs, made.attrs = node.op, tuple([operand(node, i) for i in inputs]), node.attrs
        made.shape, made.dtype = node.shape, node.dtype
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin))
        if node.name == "random":
            made.attrs = node.attrs | {"key": ("draw", draws), "block": 0}
            draws += 1
        return made

    made = graph.rebuilt(anew, [new[node] for node in graph.inputs])
    return Graph([*made.inputs, *given], made.outputs, made.effects) if given else made


def _as_arrays(graph: Graph) -> list[Any]:
    """The numbers of a graph as arrays, in the order of the inputs that `on_its_own` makes for them."""
    found = [(node, i) for node in graph.nodes for i in node.inputs if not isinstance(i, Node)]
    return [_as_array(node, i) for node, i in found if _may_be_an_input(node, i)]


def _as_array(node: Node, number: Any) -> Any:
    assert node.op is not None
    return node.device.from_numpy(np.asarray(number, node.op.common_dtype(node.inputs)))


def _input_like(node: Node) -> Source:
    kind = "input" if isinstance(node, Source) else node.name  # not "constant": another run has other values
    return Source(kind, None, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
