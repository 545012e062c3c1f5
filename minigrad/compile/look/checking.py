"""`jit(check=True)`: compares each call with eager mode, and finds the node where a difference begins.

First the function runs eagerly, on copies of everything that its trace uses: arguments, tensors that it reads by name,
gradients, generators of random numbers.  Then the program runs on the originals.  Results, written tensors, `.grad`s
and the gradients of the results must be the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ...autodiff.arrays import ARRAYS
from ...autodiff.reverse import HOOKS, exhaust, walk
from ...core.alias import detach
from ...core.emit import Eager, Interpreter, emit
from ...core.mode import switch
from ...core.node import Leaf, Node, topological_order
from ...core.primitive import Primitive
from ...core.state import State
from ...core.tensor import Tensor, as_tensor, wrap
from ...core.tree import flatten
from ...devices.effects import held_back
from ...support.errors import CheckError, GradError, MinigradError
from ...support.source import caller, show
from ..functions.function import TracedFunction
from ..functions.recording import Recording
from ..nodes.graph import Graph, Starts
from ..nodes.interpret import run_nodes
from ..rewriting.passes import PASSES
from ..running.program import program_for
from ..tracing.signature import replaced

TOLERANCE = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}  # relative to the largest element
SMALL = 1e-2  # smaller elements may be the rounding errors of numbers that cancel out


class Rehearsal(Eager, State):
    """Eager mode on copies of the tensors from outside, so that nothing outside changes.

    `kept` has copies of the results of all operations, by name and line, in the order of their calls.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.outside = list(tensors)  # kept alive, so that their ids stay theirs
        self.copies: dict[int, Tensor] = {}
        self.drawn: dict[Any, tuple[int, int]] = {}
        self.kept = defaultdict[Any, list[Any]](list)
        for tensor in tensors:
            self._copy(tensor)
        self.leaves = {i: copy.node for i, copy in self.copies.items()}

    def _copy(self, tensor: Tensor) -> Tensor:
        known = self.copies.get(id(tensor))
        if known is not None:
            return known
        alias = tensor.alias
        if alias is None or alias.base is None:
            copy = wrap(tensor._data.copy(), tensor.device)
        else:
            with switch(interpreter=None):
                copy = self._copy(alias.base)
                for op, attrs in alias.chain:
                    copy = emit(op, copy, **attrs)
                copy = detach(copy)
            copy.alias.linked = alias.linked  # type: ignore[union-attr]
        if tensor.tracked:
            copy.node, copy.tracked = tensor.node if tensor.is_leaf else Leaf(copy), True
        self.copies[id(tensor)] = copy
        if tensor._grad is not None:
            copy._grad = self._copy(tensor._grad)
        return copy

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        return Interpreter.manifest(self, op, inputs, attrs)

    def lift(self, tensor: Tensor) -> Tensor:
        return self.stand_in(tensor)

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        data = super().compute(op, values, attrs, device)
        if not isinstance(data, tuple):
            self.kept[op.name, *caller(3)].append(data.copy())
        return data

    def stand_in(self, tensor: Tensor) -> Tensor:
        return self.copies.get(id(tensor), tensor)

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        return self.stand_in(tensor)._grad

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        self.stand_in(tensor)._grad = gradient if gradient is None else self.stand_in(gradient)

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int]:
        if generator not in self.drawn:
            self.drawn[generator] = _state(generator)
        key, block = self.drawn[generator]
        self.drawn[generator] = key, block + count
        return key, block

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        self.drawn[generator] = key, block
        return True

    def hunting(self, hunter: Any) -> Any:
        return nullcontext()

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> Any:
        """The results of the function for copies of its arguments."""
        again, named = replaced((args, kwargs), iter([self.stand_in(t) for t in tensors]))
        with switch(interpreter=self), held_back():
            return function(*again, **named)


def checked(
    function: Callable[..., Any], recording: Recording, tensors: list[Tensor], args: Any, kwargs: Any
) -> Any:
    """The result of a recording, if its results and effects are those of the function."""
    used = [*tensors, *recording.used(tensors)]
    arrays, rehearsal = [array.copy() for array in recording.arrays(tensors)], Rehearsal(used)
    starts: Starts = {generator: _state(generator) for generator in recording.tracer.drawn}
    nodes = [place.find(tensors).node for place in recording.inputs]
    case = Case(function, recording, arrays, starts, rehearsal.kept)
    try:
        expected = rehearsal.run(function, args, kwargs, tensors)
    except MinigradError as error:
        recording.run(tensors)  # raises the same error, with the line
        raise CheckError(f"jit(check=True): eager mode raises an error, the program does not: {error}") from error
    result = recording.run(tensors)
    theirs, _ = flatten(expected, ARRAYS)
    ours, _ = flatten(result, ARRAYS)
    if len(ours) != len(theirs):
        case.fail("the result", f"{len(theirs)} tensors in eager mode, {len(ours)} in the program")
    theirs = [rehearsal.stand_in(t) if isinstance(t, Tensor) else t for t in theirs]
    for number, (one, other) in enumerate(zip(ours, theirs)):
        case.compare(f"result {number}", one, other)
    for tensor in used:
        copy = rehearsal.copies[id(tensor)]
        case.compare(f"a tensor {tensor.shape} that the function uses, after the call", tensor, copy)
        if (tensor._grad is None) != (copy._grad is None):
            case.fail(f"the .grad of a tensor {tensor.shape}", "None in one of them, and not in the other")
        if copy._grad is not None:
            case.compare(f"the .grad of a tensor {tensor.shape}", tensor._grad, copy._grad)
    for generator in starts:
        if rehearsal.drawn.get(generator, starts[generator]) != _state(generator):
            case.fail("the number of random numbers", f"{rehearsal.drawn.get(generator)} and {_state(generator)}")
    if recording.differentiable:
        copies = [rehearsal.leaves[id(place.find(tensors))] for place in recording.inputs]
        case.compare_gradients(ours, nodes, theirs, copies)
    return result


class Case:
    """One call, to find the node where a difference begins: what it was given, and what eager mode `made` of that."""

    def __init__(
        self, function: Any, recording: Recording, arrays: list[Any], starts: Starts, made: Mapping[Any, list[Any]]
    ) -> None:
        self.function, self.recording, self.arrays, self.starts, self.made = function, recording, arrays, starts, made

    def compare(self, what: str, ours: Any, theirs: Any) -> None:
        """Raise if the program's value differs from eager mode."""
        reason = difference(_raw(ours), _raw(theirs), rooms_of(self.recording.traced.graph))
        if reason:
            self.fail(what, reason)

    def compare_gradients(
        self, ours: Sequence[Any], nodes: Sequence[Node], theirs: Sequence[Any], copies: Sequence[Node]
    ) -> None:
        """Compare the gradients of the results by the inputs.

        Inputs with hooks are left out, because a hook would be called again, and so are inputs that other inputs were
        computed from.
        """
        behind = {i for node in topological_order(nodes) for i in node.inputs}
        numbers = [i for i, node in enumerate(nodes) if node not in HOOKS and node not in behind]
        try:
            mine = _pulled_back(ours, [nodes[i] for i in numbers])
        except GradError:  # a loop without a bound has a gradient in eager mode only
            return
        right = _pulled_back(theirs, [copies[i] for i in numbers])
        rooms = rooms_of(self.recording.traced.gradient.whole_graph)
        for number, one, other in zip(numbers, mine, right):
            nothing = np.zeros(nodes[number].shape, nodes[number].dtype)  # for example, the branch was not taken
            found = [nothing if g is None else _raw(g) for g in (one, other)]
            reason = difference(found[0], found[1], rooms)
            if reason:
                what = f"the gradient of the results by a tensor {nodes[number].shape}"
                self.fail(what, reason, self.recording.traced.gradient)

    def fail(self, what: str, reason: str, gradient: TracedFunction | None = None) -> None:
        """Raise with the node where the difference begins, and the pass or backend that causes it."""
        name = getattr(self.function, "__name__", "the function")
        with held_back(), switch(interpreter=None):
            culprit = self._diagnosis(gradient)
        raise CheckError(
            f"jit(check=True): the program of {name} differs from eager mode: {what}: {reason}",
            actual=culprit, hint="mg.jit(disable=True) runs it eagerly until the fault is fixed",
        )

    def _diagnosis(self, gradient: TracedFunction | None) -> str:
        graph, arrays = self.recording.traced.graph, self.arrays
        if gradient is not None:
            graph = Graph(graph.inputs, (*graph.outputs, *gradient.kept))
        values = _all_values(graph, arrays, self.starts)
        different = self._trace_differs(graph, values)
        if different:
            return different
        if gradient is not None:
            weights = [_weights(self.recording.outputs[i]) for i in gradient.roots]
            own = len(self.recording.traced.own)
            arrays = [*arrays[:own], *weights, *arrays[own:], *[values[node] for node in gradient.kept]]
            graph = gradient.graph
            values = _all_values(graph, arrays, self.starts)
        return _suspect(graph, arrays, self.starts, values)

    def _trace_differs(self, graph: Graph, values: Mapping[Node, Any]) -> str:
        """The first node whose value was another one when the function ran eagerly."""
        rooms = rooms_of(graph)
        for node in graph.nodes:
            made = self.made.get((node.name, node.code, node.offset))
            if made and not isinstance(values[node], tuple):
                reason = difference(values[node], made.pop(0), rooms)
                if reason:
                    return (
                        f"{node.name}, made at {show(node.where)}, is the first node that differs ({reason}), also "
                        "when the trace runs node by node: the function depends on something that is not in a trace"
                    )
        return ""


def _all_values(graph: Graph, arrays: Sequence[Any], starts: Starts) -> dict[Node, Any]:
    return run_nodes(graph.nodes, dict(zip(graph.inputs, arrays)), starts, {*graph.inputs, *graph.nodes})


def _suspect(graph: Graph, arrays: Sequence[Any], starts: Starts, values: Mapping[Node, Any]) -> str:
    """The first node that a program computes wrongly, and the pass or backend that causes it."""
    rooms = rooms_of(graph)

    def first(outputs: Sequence[Node], **options: Any) -> Node | None:
        copies = [array.copy() for array in arrays]
        results = program_for(Graph(graph.inputs, outputs), **options)(copies, starts)
        return next((n for n, result in zip(outputs, results) if difference(result, values[n], rooms)), None)

    every = [n for n in graph.nodes if n.op is not None and n.effect is None and not isinstance(values[n], tuple)]
    node = first(every) or first(graph.outputs)
    if node is None:
        return "no node differs when the graph runs again: memory is shared, or a result varies between runs"
    words = f"{node.name}, made at {show(node.where)}, is the first node that differs"
    outputs = [node, *graph.outputs]
    innocent = [each.name for each in PASSES if first(outputs, without=[each.name]) is None]
    if innocent:
        return f"{words}; it does not differ without the pass {' or '.join(innocent)}"
    if first(outputs, backend="numpy") is None:
        return f"{words}; it does not differ with MINIGRAD_BACKEND=numpy: its kernel is wrong"
    return f"{words}, whichever pass is left out"


def rooms_of(graph: Graph) -> dict[str, float]:
    """The tolerance of the values of each dtype: that of the least exact dtype which one of them is computed from."""
    rooms, found = dict(TOLERANCE), dict[Node, float]()
    for node in graph.nodes:
        inner = [each for held in node.attrs.values() if isinstance(held, TracedFunction) for each in held.graph.nodes]
        own = [TOLERANCE.get(str(each.dtype), 0.0) for each in (node, *inner)]
        found[node] = max(own + [found[i] for i in node.inputs if i in found])
        rooms[str(node.dtype)] = max(found[node], rooms.get(str(node.dtype), 0.0))
    return rooms


def difference(ours: Any, theirs: Any, rooms: Mapping[str, float] = TOLERANCE) -> str:
    """How one array differs from another by more than rounding; empty if it does not."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype} {ours.shape} instead of {theirs.dtype} {theirs.shape}"
    if theirs.dtype.kind != "f":
        wrong = ours != theirs
    else:
        finite = abs(theirs[np.isfinite(theirs)])
        room = rooms[theirs.dtype.name] * max(float(finite.max(initial=0.0)), SMALL)
        with np.errstate(invalid="ignore"):
            near = abs(ours - theirs) <= room
        wrong = ~(near | (ours == theirs) | ((ours != ours) & (theirs != theirs)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements, {ours[at]!s} instead of {theirs[at]!s} at {at}"


def _raw(value: Any) -> Any:
    tensor = as_tensor(value)
    return tensor.device.to_numpy(tensor._data)


def _weights(like: Any) -> Any:
    """A gradient for a result, different for each element, so that no element hides another."""
    size = int(np.prod(like.shape))
    return like.device.from_numpy((1 + np.cos(np.arange(size)) / 2).reshape(like.shape).astype(like.dtype))


def _pulled_back(results: Sequence[Any], nodes: Sequence[Node]) -> list[Tensor | None]:
    tracked = [r for r in results if isinstance(r, Tensor) and r.tracked]
    weights = [wrap(_weights(r), r.device) for r in tracked]
    with held_back(), switch(interpreter=None, grad=False):
        found = exhaust(walk([r.node for r in tracked], weights, nodes, retain=True, yields=False))
    return [found.get(node) for node in nodes]


def _state(generator: Any) -> tuple[int, int]:
    with switch(interpreter=None):
        state = generator.get_state()
    return state["key"], state["block"]
