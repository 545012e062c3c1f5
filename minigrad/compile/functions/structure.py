"""Programs by structure: graphs that differ only in values, numbers and random draws share a program.

Graph mode records the same operations again in each iteration of a loop.  The nodes are new, and so are the values and
the random numbers, but the structure is the same, so that it is compiled once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import Attrs, P, Primitive
from ...core.programs import Closed
from ...core.tensor import NUMBERS, Tensor
from ..loops.powers import is_product
from ..nodes.graph import Graph, Source, Starts, in_place_of
from ..rewriting.common import Incomparable, comparable
from ..rewriting.passes import PASSES
from ..running.plain import PlainProgram
from ..running.program import Program, program_for
from ..tracing.tracer import PLAIN, Pending
from .function import Function
from .latest import Latest

QUICK = {*PLAIN, "creation"}  # kinds that have no draws, and no functions among their attributes
NEVER_FAIL = {"elementwise", "reduce", "view", "creation", "random"}  # kinds, for floats: no line is needed
Draw = tuple[Any, Any]  # the key and the first block of some random numbers
Names = dict[Any, Any]  # of the generators that a branch or body draws from


class Prefix:
    """What recordings that began alike have in common: the same object for all of them.

    A step leads to the next one: an operation, the places of its operands, and its attributes; or the shape, dtype and
    device of a value from outside.  A prefix lives as long as a recording that is there yet, or a program of it.
    """

    __slots__ = ("__weakref__", "before", "code", "fails", "fixed", "numbers", "quick", "result", "steps")

    def __init__(self, before: Prefix | None = None) -> None:
        self.before = before
        self.steps: Any = WeakValueDictionary()
        self.result: Any = None  # of the last operation: its shape and dtype, once it was recorded
        self.code: Any = None  # which recorded it, if its line counts
        self.quick = False  # whether that operation needs no care: see `look_at`

    def after(self, step: Hashable) -> Prefix:
        """The prefix with one more step."""
        held = self.steps.data.get(step)
        found = held and held()
        if found is None:
            found = self.steps[step] = Prefix(self)
        return found  # type: ignore[no-any-return]

    def look_at(self, node: Node, values: Sequence[Any]) -> None:
        """Find out what is the same in all recordings of the last operation.

        `numbers` are the places and dtypes of Python numbers that may become inputs, `fixed` the places of the others.
        """
        op: Any = node.op
        kinds = [(i, _dtype_as_input(op, values, x)) for i, x in enumerate(values) if x.__class__ in NUMBERS]
        self.fixed = [i for i, dtype in kinds if dtype is None]
        self.fails = may_fail(node)
        self.numbers = [(i, dtype) for i, dtype in kinds if dtype is not None]
        self.result = node.shape, node.dtype
        plain = op.kind in QUICK and node.dtype.__class__ is not tuple and op.effect is None and op is not P.pow
        self.quick = plain and not (self.fixed or self.fails)


def may_fail(node: Node) -> bool:
    """Whether an operation may fail because of the values of its operands, so that the error names its line."""
    op: Any = node.op
    if op.__class__ is Closed:
        return any(map(may_fail, op.function.graph.nodes))
    integers = any(i.dtype.__class__ is not tuple and i.dtype.kind in "iu" for i in node.sources)
    return op is not None and (integers or (op.kind not in NEVER_FAIL and op not in (P.matmul, P.project)))


START = Prefix()


class Structure:
    """The operations that were recorded since the last program, whose number of values is counted from `began`.

    Recordings with the same `prefix` can share a program: they differ in the values that are `given`, the `draws` of
    random numbers, with the number of each node's first one in `drawn`; and the `numbers`: Python numbers among the
    operands of floats, each with its node, its place among the operands, and its dtype.  `waiting` are the tensors
    that were made or changed.

    >>> def of(number):
    ...     with mg.graph() as g:
    ...         y = mg.tanh(mg.ones(3) * number)
    ...         return g._recorder.structure.prefix
    >>> of(2) is of(3), of(2) is of(2.0)
    (True, False)
    """

    def __init__(self, began: int = 0) -> None:
        self.began = self.count = began
        self.prefix = START
        self.ahead: Any = None  # the prefix with the step that is being recorded, if it was `known`
        self.is_shared = True  # whether other recordings may use its program
        self.given: list[Pending] = []
        self.numbers: list[tuple[Node, int, Any]] = []
        self.waiting: list[ref[Tensor]] = []
        self.draws: list[Draw] = []
        self.drawn: dict[Node, int] = {}

    def known(self, step: list[Any], values: Sequence[Any], attrs: Attrs) -> Any:
        """The shape and dtype of the result of a step, if it was recorded before, and is `quick`; see `follow`."""
        if attrs:
            try:
                step += _attributes(step[0], attrs)
            except Incomparable:
                return None
        held = self.prefix.steps.data.get(tuple(step))
        found = self.ahead = held and held()
        return found.result if found is not None and found.quick else None

    def follow(self, pending: Pending, values: Sequence[Any], out: Tensor | None = None) -> None:
        """Append the operation that was `known`, with its result."""
        made, node = self.ahead, pending.node
        pending.waits_for, pending.place = values, self.count
        self.count += 1
        for i, dtype in made.numbers:
            self.numbers.append((node, i, dtype))
        self.prefix = made
        if out is not None:
            self.waiting.append(ref(out))

    def next(self, op: Primitive, values: Sequence[Any], attrs: Attrs) -> tuple[Prefix, tuple[Any, ...]]:
        """The prefix with one more operation, which `add` appends, and the nodes and numbers among its operands."""
        step: list[Any] = [op]
        nodes, began = [], self.began
        for x in values:  # a value from outside is a step of its own
            if x.__class__ in NUMBERS:
                nodes.append(x)
                step.append(x.__class__)
                if op is P.pow:
                    step.append(is_product(x))
            else:
                place = x.place - began
                nodes.append(x.node)
                step.append(place if place >= 0 else self.place_of(x))
        try:
            made = self.prefix.after((*step, *_attributes(op, attrs)) if attrs else tuple(step))
        except Incomparable:
            self.is_shared, made = False, Prefix(self.prefix)
        return made, tuple(nodes)

    def add(self, made: Prefix, pending: Pending, values: Sequence[Any]) -> None:
        """Append an operation: `made` is what `next` returned."""
        node: Any = pending.node
        if made.result is None:
            made.look_at(node, values)
        self.ahead = made
        self.follow(pending, values)
        if made.fixed or made.fails:  # 0.0 is not -0.0
            line = made.fails and (id(node.code), node.offset)
            self.prefix = made.after((*[repr(values[i]) for i in made.fixed], line))
            self.prefix.code = line and node.code  # kept alive, so that no other code has its id
        if node.op.kind in NAMED and node.attrs:
            _, _, draws = _named(node.attrs, None, len(self.draws))
            self.drawn[node] = len(self.draws)
            self.draws += draws

    def place_of(self, pending: Pending) -> int:
        """The place of a value among those of this structure.  A value that is not computed yet is recorded again."""
        stack = [pending] if pending.place < self.began else []
        while stack:
            each = stack[-1]
            node, values = each.node, each.waits_for
            if each.place >= self.began:
                stack.pop()
            elif each.value is not None or node.op is None:  # a value from outside
                self.prefix = self.prefix.after((each.shape, each.dtype, node.device.name))
                self.given.append(each)
                each.place, self.count = self.count, self.count + 1
            elif left := [x for x in values if x.__class__ is Pending and x.place < self.began]:
                stack += left
            else:
                self.add(self.next(node.op, values, node.attrs)[0], each, values)
        return pending.place - self.began


SINGLE, INTEGERS = frozenset((bool, str, type(None))), {int}  # classes whose equal values mean the same
NAMED = ("random", "structural")  # kinds of operations that may draw random numbers, or run functions


def _attributes(op: Primitive, attrs: Attrs, names: Names | None = None) -> list[Any]:
    """The attributes as parts of a step."""
    parts: list[Any] = []
    if op.kind in NAMED:
        attrs, inner, _ = _named(attrs, names, 0)
        parts = [_skeleton(a.graph, inner) for a in attrs.values() if isinstance(a, Function)]
        attrs = {name: value for name, value in attrs.items() if not isinstance(value, Function)}
    for name, value in attrs.items():
        parts.append(name)
        same = value.__class__ in SINGLE or (value.__class__ is tuple and {*map(type, value)} == INTEGERS)
        parts.append(value if same else comparable(value, objects=False))
    return parts


def _skeleton(graph: Graph, names: Names) -> Hashable:
    """The structure of a branch or body, in which numbers stay as they are."""
    places: dict[Any, int] = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    key: list[Any] = [(node.shape, node.dtype, node.device) for node in graph.inputs]
    for node in graph.nodes:
        if node.op is None:
            key.append(_constant(node))
            continue
        key += node.op, node.where if may_fail(node) else None, len(node.inputs)
        for x in node.inputs:
            key.append(places[x] if isinstance(x, Node) else comparable(x))
        key += _attributes(node.op, node.attrs, names)
    key += [places[node] for node in (*graph.outputs, *graph.effects)]
    return len(graph.inputs), len(graph.nodes), len(graph.outputs), tuple(key)


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


def _dtype_as_input(op: Primitive, values: Sequence[Any], operand: Any) -> Any:
    """The dtype of a tensor that could take the place of a Python number among the operands; None if none could.

    The number of a power stays if it may decide how the power is computed: results depend on values, not on what ran.
    """
    if op.kind != "elementwise" or operand.__class__ not in (int, float):
        return None
    if op.name == "pow" and is_product(operand):
        return None
    tensors = [x.dtype for x in values if x.__class__ not in NUMBERS] if op.promotes is None else []
    dtype = tensors[0] if tensors else op.common_dtype(tuple(values))  # all have one dtype: they were cast
    return dtype if dtype is not None and dtype.kind == "f" else None


def _constant(node: Any) -> Hashable:
    """A constant of a branch or body, by value."""
    if node.name != "constant" or not node.device.hosted:
        raise Incomparable(node.name)
    return comparable(node.held, objects=False), node.device


class Programs(Latest[dict[Any, Any]]):
    """The programs that were used last, by structure: one for the numbers that came first, by these numbers; and once
    others came, one with them as inputs, by None.
    """

    def of(
        self, structure: Structure, wanted: Hashable, graph: Callable[[], Graph], environment: Hashable
    ) -> tuple[Program | PlainProgram, list[Any], Starts]:
        """A program that computes the values at the places `wanted` in this `environment()`.

        Also the numbers that are inputs of it behind those of the graph, and where random numbers begin.
        """
        if not structure.is_shared:
            return program_for(copied(graph())), [], {}
        starts: Starts = {("draw", number): draw for number, draw in enumerate(structure.draws)}
        kept = self.shared((structure.prefix, wanted, environment), dict)
        values = [node.inputs[i] for node, i, _ in structure.numbers]
        key: Any = tuple([value or repr(value) for value in values])  # 0.0 is not -0.0
        if kept and key not in kept:
            key = None
        if key not in kept:
            kept[key] = program_for(copied(graph(), structure.drawn, structure.numbers if key is None else ()))
        if key is not None:
            return kept[key], [], starts
        arrays = [node.device.from_numpy(np.asarray(node.inputs[i], dtype)) for node, i, dtype in structure.numbers]
        return kept[None], arrays, starts


PROGRAMS = Programs()


def environment() -> str:
    """What a program depends on apart from its graph: the passes and their rules, the backend and the executor."""
    passes = [(id(each), each.rules and each.rules.version) for each in PASSES]
    return repr((passes, os.environ.get("MINIGRAD_BACKEND"), os.environ.get("MINIGRAD_EXECUTOR")))


def copied(
    graph: Graph, drawn: Mapping[Node, int] | None = None, numbers: Sequence[tuple[Node, int, Any]] = (),
    names: Names | None = None, expected: list[Any] | None = None,
) -> Graph:
    """A copy of a graph that keeps no value and no other node alive, and has the operations of closed nodes.

    It draws random numbers where a run says, by `drawn`.  The `numbers` of its structure become inputs, behind the
    others.  What is `expected` of integers is replaced by what is expected of them in the copy.
    """
    new: dict[Any, Any] = {node: _input_like(node) for node in graph.inputs}
    given: dict[Any, Node] = {
        (node, i): Source("number", None, (), dtype, node.device, Mode(scope=node.mode.scope))
        for node, i, dtype in numbers
    }
    checks: list[Any] = []

    def copy(node: Node, inputs: Sequence[Any]) -> Any:
        if node.op is None:  # a constant of a branch or body
            new[node] = _source_like(node, "constant", node.held)  # type: ignore[attr-defined]
            return new[node]
        if inputs and inputs[0].__class__ is tuple:  # the results of a closed node
            new[node] = inputs[0][node.attrs["index"]]
            return new[node]
        made = new[node] = in_place_of(node)
        made.mode = Mode(scope=node.mode.scope, origin=new.get(node.mode.origin), toward=node.mode.toward)
        if node.op.__class__ is Closed:
            inner = node.op.function.graph.rebuilt(partial(_inside, made), inputs)
            within, whole = inner.rebuilt_from[1], node.op.function.tracer.expected
            checks.extend([(within[integers], check) for integers, check in whole if integers in within])
            new[node] = inner.outputs[0]
            return inner.outputs if len(inner.outputs) > 1 else new[node]
        attrs, inner, _ = (node.attrs, {}, ()) if drawn is None else _named(node.attrs, names, drawn.get(node, 0))
        made.attrs = {
            name: Function(copied(a.graph, drawn, (), inner)) if isinstance(a, Function) else a
            for name, a in attrs.items()
        }
        made.op, made.inputs = node.op, tuple([given.get((node, i), x) for i, x in enumerate(inputs)])
        made.shape, made.dtype = node.shape, node.dtype
        return made

    made = graph.rebuilt(copy, [new[node] for node in graph.inputs])
    if expected is not None:
        expected[:] = [*[(new[integers], check) for integers, check in expected if integers in new], *checks]
    return Graph([*made.inputs, *given.values()], made.outputs, made.effects) if given else made


def _inside(like: Node, node: Node, inputs: tuple[Any, ...]) -> Node:
    """A node of the operations of a closed one, with the line, scope and origin of `like`."""
    if node.op is None:
        return node  # a constant
    new = in_place_of(like)
    new.op, new.inputs, new.attrs, new.shape, new.dtype = node.op, inputs, node.attrs, node.shape, node.dtype
    return new


def _input_like(node: Node) -> Source:
    return _source_like(node, "input" if isinstance(node, Source) else node.name)  # other runs have other constants


def _source_like(node: Node, kind: str, held: Any = None) -> Source:
    return Source(kind, held, node.shape, node.dtype, node.device, Mode(scope=node.mode.scope))
