"""A small backward pass as a tape that a page runs again while a number of a leaf is dragged.

The operations are those of the forward pass and of the walk, as they were recorded.  An elementwise operation becomes
instructions made from the `expr` that it declares.  Views and gathers become lists of places, sums and products of
matrices one instruction each.  What does not depend on a leaf is a constant.  The tape is plain data: the page has a
table of functions by name, and needs no `eval`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..control.flow import scan
from ..core.dtypes import float64
from ..core.emit import EAGER
from ..core.expression import OPERATORS
from ..core.node import Constant, Leaf, Node
from ..core.primitive import P, Primitive
from ..core.programs import opened_order
from ..core.replay import sources
from ..core.tensor import wrap
from ..devices import CPU
from ..support.source import line_of, parsed
from .naming import operation_name, repeated, scope_name
from .scene import type_of
from .steps import NUMBERS, Recording, on_host

MISSING = {"bitcast", "<<", ">>"}  # of the language of `expr`, what a page does not compute on floats
FOLDS = {"sum": "+", "prod": "*", "max": "max", "min": "min"}
PLACE = re.compile(r"[\w.\[\]'\"]+")  # a name in the code, or what a container has: `batch["x"]`


class Live(NamedTuple):
    """What a page needs to compute a pass again.

    `leaves` are the nodes whose numbers can be dragged.  `why` says, in a sentence, why others cannot, or none can.
    `registers` has the register of each value that depends on the leaves.  In the `tape`, `steps` has those of each
    step: of the gradient that is passed back, of the contribution, of what was there, and of the sum.
    """

    leaves: tuple[Node, ...] = ()
    why: str = ""
    registers: Mapping[Node, int] = {}
    tape: Mapping[str, Any] = {}


def live_of(recording: Recording, names: Mapping[Node, str]) -> Live:
    """The tape of a recorded pass for all leaves that a page can drag: parameters, and data that have a name.

    >>> from minigrad.viz.steps import record_steps
    >>> w = mg.asarray(3.0, requires_grad=True)
    >>> live_of(record_steps(w * w), {}).tape["code"]
    [['*', 0, 0], ['*', -1, 0], ['+', 2, 2]]
    """
    data, said = _separate(recording, names)
    leaves = [
        node for node in recording.nodes
        if (isinstance(node, Leaf) or node in data) and node.dtype.kind == "f" and node.size
    ]
    none = recording.large or ("" if leaves else "no leaf of this pass holds floats")
    if any(leaf not in recording.small for leaf in leaves):
        none = none or recording.missing.partition("\n")[0]
    while leaves and not none:
        try:
            return _on_tape(recording, leaves)._replace(why=" ".join(said))
        except NotOnATape as refused:
            gone = [leaf for leaf in leaves if leaf in (refused.leaves or leaves)]
            leaves = [leaf for leaf in leaves if leaf not in gone]
            called = ", ".join([names.get(leaf, "a parameter") for leaf in gone])
            said.append(f"No slider for {called}: {refused.why}.")
            none = "" if leaves else refused.why
    return Live(why=f"No number can be dragged: {none}.")


def _separate(recording: Recording, names: Mapping[Node, str]) -> tuple[Sequence[Node], list[str]]:
    """The data of which no other data of the pass were computed, and what is said of them.

    How data were made is not recorded.  But where all are called by names, and none is a view of another, the picture
    says of none that it was computed.  What has no name, or an expression, may depend on any other data.  Integers that
    are only indices do not count.
    """
    order = _order(recording)
    read = {  # each with its first reader
        x: node for node in reversed(order) if node.op is not None for slot, x in enumerate(node.inputs)
        if not node.op.name_of(slot).startswith("indices")
    }
    data = [x for x in order if isinstance(x, Constant) and x in read and x not in recording.steps[0].made]
    views = [b for a, b in combinations([x for x in data if x in recording.small], 2)
             if np.shares_memory(recording.small[a], recording.small[b])]
    depend = [x for x in data if x in views or not PLACE.fullmatch(names.get(x, ""))]
    if not depend:
        return data, ["Where data are dragged, other data stay as they are."] * bool(data[1:])
    called = ", ".join([names[x] for x in data if x not in depend and x.dtype.kind == "f"])
    other = depend[0]
    unnamed = f"the constant {repeated(other) or type_of(other)}"
    what = names.get(other) or f"{unnamed} that line {line_of(read[other].where)[1]} reads"
    return [], [f"No slider for {called}: {what} may come from such data, and would not follow."] * bool(called)


def _order(recording: Recording) -> list[Node]:
    """The operations of both passes, in the order in which they ran."""
    made = [node for step in recording.steps for node in step.made if node is not None]
    return opened_order([*recording.nodes, *made])


@dataclass(eq=False)
class NotOnATape(Exception):
    """A page can't compute an operation again; `leaves` are those that it depends on."""

    why: str
    leaves: Collection[Node] = ()


def _on_tape(recording: Recording, leaves: Sequence[Node]) -> Live:
    seed = recording.steps[0].made[1]
    if any(isinstance(node, Constant) and node is not seed for step in recording.steps for node in step.made):
        raise NotOnATape("a gradient here was made by no operation")
    tape = Tape({leaf: recording.small[leaf] for leaf in leaves}, recording.small)
    for node in recording.nodes:
        tape.append(node)
    forward = len(tape.code)
    for node in _order(recording):
        tape.append(node)
    steps, came = list[Any](), dict[Any, Any]()  # `came` has what came to a node so far
    for step in recording.steps:
        places = [None if node is None else tape.register(node) for node in step.made]
        places = places or [None, came[step.node], None]  # the gradient of a part is one of those of the whole
        steps.append((*places, tape.instruct("+", places[2], places[1]) if step.kind == "sum" else None))
        came[step.target] = places[1] if step.kind != "sum" else steps[-1][3]
    count = str(tape.code).count(",") + str(tape.constants).count(",")
    if count > NUMBERS:
        raise NotOnATape(f"its tape has {count:,} numbers, and a page computes at most {NUMBERS:,} again")
    nodes = recording.nodes
    scopes = dict.fromkeys([scope_name(name) for node in nodes for name in node.scope])
    return Live(tuple(leaves), "", tape.registers, {
        "leaves": [[nodes.index(leaf), listed(value)] for leaf, value in tape.leaves.items()],
        "constants": tape.constants, "code": tape.code, "forward": forward,
        "nodes": [tape.registers.get(node) for node in nodes], "steps": steps,
        "single": not any(node.dtype == float64 for node in nodes),
        "branches": ", ".join([name for name in scopes if name.endswith((" was true", " was false"))]),
    })


class Tape:
    """Instructions in the order in which they run: `[name, ...]`, with the registers of their operands.

    A register holds an array.  First come the leaves, then the results of the instructions.  Negative numbers are
    constants.  Where operands of an elementwise instruction differ in size, the page repeats the smaller one.
    """

    def __init__(self, leaves: Mapping[Node, Any], known: Mapping[Node, Any]) -> None:
        self.leaves, self.known = leaves, dict(known)
        self.registers: dict[Node, int] = {leaf: i for i, leaf in enumerate(leaves)}
        self.behind: dict[Node, set[Node]] = {leaf: {leaf} for leaf in leaves}  # the leaves that a value depends on
        self.constants: list[list[Any]] = []
        self.code: list[list[Any]] = []
        self._same: dict[Any, int] = {}  # what is computed once

    def append(self, node: Node) -> None:
        """Add a node: instructions if it depends on a leaf, else its value is worked out when it is needed."""
        behind = set().union(*[self.behind.get(i, ()) for i in node.sources])
        if not behind or node in self.registers:
            return
        self.behind[node] = behind
        try:
            if any(hasattr(rule.function, "by") for rule in node.plan.rules):  # which may compute without operations
                raise NotOnATape(f"the gradient rule of {operation_name(node)} is not the library's")
            if not isinstance(node.dtype, tuple):  # else each of its results is a node of its own
                self.registers[node] = self._result(node)
        except NotOnATape as refused:
            raise NotOnATape(refused.why, behind) from None

    def register(self, value: Any) -> int:
        """The register of a node or of a Python number."""
        if isinstance(value, Node) and value in self.registers:
            return self.registers[value]
        return self.constant(self.value(value))

    def constant(self, value: Any) -> int:
        """The register of numbers that do not depend on a leaf."""
        array = np.asarray(value)
        key = array.dtype.char, array.tobytes()
        if key not in self._same:
            self.constants.append(listed(array))
            self._same[key] = -len(self.constants)
        return self._same[key]

    def value(self, node: Any) -> Any:
        """The value of a node that depends on no leaf."""
        if not isinstance(node, Node):
            return node
        if node not in self.known:
            if isinstance(node.dtype, tuple) or node.effect:
                raise _cannot(operation_name(node))
            self.known[node] = (
                on_host(sources([node])[node], node) if node.op is None
                else np.asarray(EAGER.compute(node.op, [self.value(i) for i in node.inputs], node.attrs, CPU))
            )
        return self.known[node]

    def instruct(self, name: str, *rest: Any) -> int:
        """The register of what an instruction makes; the same instruction is there once."""
        key = str((name, rest))
        if key not in self._same:
            self.code.append([name, *rest])
            self._same[key] = len(self.leaves) + len(self.code) - 1
        return self._same[key]

    # operations -----------------------------------------------------------------------------------------------------

    def _result(self, node: Node) -> int:
        op, attrs = node.op, node.attrs
        assert op is not None
        if op is P.astype:
            x = self.register(node.inputs[0])
            return x if node.dtype.kind == "f" else self.instruct("bool" if node.dtype.kind == "b" else "trunc", x)
        if op.expr is not None:
            given = dict(zip(op.inputs, [self._spread(x, node.shape) for x in node.inputs]))
            return self._computed(parsed(op.expr, "eval").body, given)
        if op.kind == "view" or op in (P.gather, P.concat, P.place, P.put, P.to_device):
            return self._moved(op, node)
        if op.name in FOLDS:
            (x,) = node.inputs
            kept = [1 if axis in attrs["axis"] else size for axis, size in enumerate(x.shape)]
            return self._folded(FOLDS[op.name], x, np.broadcast_to(_places(kept), x.shape), node.size)
        if op in (P.cumulative_sum, P.cumulative_prod):
            return self._running(FOLDS[op.name.removeprefix("cumulative_")], node.inputs[0], attrs["axis"])
        if op is P.overlap_add:
            (x,) = node.inputs
            how = {"size": x.shape[node.ndim :], **{name: attrs[name] for name in ("axis", "stride", "dilation")}}
            return self._folded("+", x, EAGER.compute(P.windows, [_places(node.shape)], how, CPU), node.size)
        if op is P.scatter_add:
            base, value, *indices = node.inputs
            where = [_places(node.shape), *[self._fixed(op, i) for i in indices]]
            added = self._folded("+", value, EAGER.compute(P.gather, where, {}, CPU), node.size)
            return self.instruct("+", self._spread(base, node.shape), added)
        if op is P.matmul:
            return self._product(*node.inputs)
        if op is P.project:
            (whole,), (x, *_) = node.inputs, node.inputs[0].inputs
            split: Any = getattr(whole.attrs.get("application"), "forward", None)
            if getattr(split, "__module__", "") != scan.__module__:
                raise _cannot(operation_name(whole))
            rows, _ = split(wrap(_places(x.shape), CPU))  # those that the rounds of a loop read
            return self._taken(rows[attrs["index"]].numpy(), [self.register(x)], x.size)
        raise _cannot(operation_name(node))

    def _computed(self, tree: Any, given: Mapping[str, int]) -> int:
        """The register of what an expression makes of the inputs."""
        if isinstance(tree, ast.Name):
            return given[tree.id]
        if isinstance(tree, ast.Constant):
            return self.constant(float(ast.unparse(tree)))
        parts = [part for part in ast.iter_child_nodes(tree) if isinstance(part, ast.expr)]
        if isinstance(tree, ast.Call):
            name = ast.unparse(parts.pop(0))
        elif isinstance(tree, ast.IfExp):
            name = "where"
        else:
            name = OPERATORS[type(tree.ops[0] if isinstance(tree, ast.Compare) else tree.op)]
        if name in MISSING:
            raise _cannot(name)
        return self.instruct(name, *[self._computed(part, given) for part in parts])

    def _spread(self, x: Any, shape: tuple[int, ...]) -> int:
        """The register of an input of this shape: the page repeats single numbers and whole rows, others are copied."""
        own = list(x.shape) if isinstance(x, Node) else []
        while own[:1] == [1]:
            del own[0]
        if own == list(shape[len(shape) - len(own) :]):
            return self.register(x)
        return self._taken(np.broadcast_to(_places(x.shape), shape), [self.register(x)], x.size)

    def _taken(self, places: Any, sources: Sequence[int], size: int) -> int:
        """The numbers at these places of the sources, one after the other."""
        flat = places.reshape(-1).tolist()
        if len(sources) == 1 and flat == list(range(size)):
            return sources[0]
        return self.instruct("take", runs(flat), *sources)

    def _moved(self, op: Primitive, node: Node) -> int:
        """What an operation that moves numbers makes: it is done to their places."""
        sources, count, given = [self.constant(0.0)], 1, list[Any]()
        for x in node.inputs:
            if op in (P.gather, P.put) and len(given) > (op is P.put):
                given.append(self._fixed(op, x))
                continue
            given.append(_places(getattr(x, "shape", ())) + count)
            sources.append(self.register(x))
            count += given[-1].size
        places = np.asarray(EAGER.compute(op, given, node.attrs, CPU))
        if len(sources) == 2 and places.min(initial=1) > 0:
            return self._taken(places - 1, sources[1:], count - 1)
        return self._taken(places, sources, count)

    def _fixed(self, op: Primitive, x: Any) -> Any:
        """Indices, which must not depend on a leaf."""
        if x in self.registers:
            raise _cannot(f"{op.name} at places that change")
        return self.value(x)

    def _folded(self, name: str, x: Any, places: Any, size: int) -> int:
        """Sums, or other folds, of the numbers of x: each goes to its place among `size` results."""
        return self.instruct("fold", name, size, runs(places.reshape(-1).tolist()), self._spread(x, places.shape))

    def _running(self, name: str, x: Any, axis: int) -> int:
        """Running sums or products: each number goes to its own place and to those behind it."""
        line = np.moveaxis(_places(x.shape), axis, -1)
        taken, places = [line[..., ends] for ends in np.triu_indices(line.shape[-1])]
        source = self._taken(taken, [self.register(x)], x.size)
        return self.instruct("fold", name, x.size, runs(places.reshape(-1).tolist()), source)

    def _product(self, a: Node, b: Node) -> int:
        left = (1, *a.shape) if a.ndim == 1 else a.shape
        right = (*b.shape, 1) if b.ndim == 1 else b.shape
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        y = self.register(b) if b.ndim == 1 else self._spread(b, (*stack, *right[-2:]))
        return self.instruct("@", math.prod(stack), *left[-2:], right[-1], self._spread(a, (*stack, *left[-2:])), y)


def _cannot(what: str) -> NotOnATape:
    return NotOnATape(f"a page can't compute {what} again")


def _places(shape: Sequence[int]) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)


def runs(numbers: Sequence[int]) -> list[int]:
    """Integers as runs: the first number of each, the step, and how many there are.

    >>> runs([3, 4, 5, 9, 9, 9])
    [3, 1, 3, 9, 0, 3]
    """
    found: list[int] = []
    last = 0
    for number in numbers:
        if found and found[-1] == 1:
            found[-2:] = number - last, 2
        elif found and number == last + found[-2]:
            found[-1] += 1
        else:
            found += [number, 1, 1]
        last = number
    return found


def listed(array: Any) -> list[Any]:
    """The numbers of an array for JSON, with the digits that their type has; what is not finite as JavaScript's word.

    >>> listed(np.float32([0.1, 2, np.inf]))
    [0.1, 2.0, 'Infinity']
    """
    return [_plain(x) for x in np.asarray(array).reshape(-1)]


def _plain(x: Any) -> Any:
    value = x.item()
    if not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return float(str(x)) if isinstance(value, float) else value
