"""The gradient of a traced function, its runs on tensors with a history, and the function in other modes.

The gradient is traced, from the inputs and the gradients of the outputs to the gradients of the inputs.  `vmap` and
`jvp` apply the operations one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autodiff.batching import vmap
from ...autodiff.custom import call_with_gradient
from ...autodiff.reverse import exhaust, gradients, walk
from ...core.emit import emit
from ...core.mode import Mode, current_mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor, wrap
from ...ops.creation import zeros
from ..nodes.graph import Graph, Starts
from ..nodes.interpret import written_out
from ..tracing.tracer import Tracer
from .function import TracedFunction

OnTensors = Callable[[list[Tensor]], Sequence[Tensor]]


def walked_back(traced: TracedFunction, wanted: tuple[int, ...], roots: tuple[int, ...]) -> TracedFunction:
    """The backward pass, traced, with the effects of hooks and of users' gradient rules."""
    tracer, outputs, targets = traced.tracer, traced.outputs, [traced.inputs[i] for i in wanted]
    earlier = len(tracer.effects)
    with switch(Mode().but(interpreter=tracer)):
        cotangents = [_cotangent(tracer, outputs[i], i) for i in roots]
        moving = [(outputs[i].node, g) for i, g in zip(roots, cotangents) if outputs[i].tracked]
        begins, given = [node for node, _ in moving], [g for _, g in moving]
        found = exhaust(walk(begins, given, [t.node for t in targets], retain=True, yields=False))
        made = [found[t.node] if t.node in found else zeros(t.shape, t.dtype, t.device) for t in targets]
    inputs, effects = [*traced.inputs, *cotangents], tracer.effects[earlier:]
    gradient = TracedFunction(tracer, inputs, made, effects, traced.others, again=traced._loud)
    gradient.roots, gradient.wanted, gradient.executor = roots, wanted, traced.executor
    gradient.unused = frozenset([i for i, t in zip(wanted, targets) if t.node not in found])
    return gradient


def _cotangent(tracer: Tracer, output: Tensor, index: int) -> Tensor:
    cotangent = wrap(tracer.source("cotangent", index, output.shape, output.dtype, output.device), output.device)
    cotangent.requires_grad = True
    return cotangent


def gradient_given_values(traced: TracedFunction) -> TracedFunction:
    """The gradients of all inputs that have one, given the values that `keeping` computes for it."""
    tracked = [[i for i, t in enumerate(tensors) if t.tracked] for tensors in (traced.inputs, traced.outputs)]
    whole = traced.gradient_by(*tracked)
    found = {i: output for i, output in zip(whole.wanted, whole.outputs) if i not in whole.unused}
    made = list(found.values())
    kept = (*traced.kept, *read_by(traced, whole, made)[0])
    gradient = TracedFunction(traced.tracer, whole.inputs, made, whole.effects, traced.others, kept)
    gradient.roots, gradient.wanted, gradient.executor = whole.roots, tuple(found), traced.executor
    return gradient


def read_by(
    function: TracedFunction, gradient: TracedFunction, outputs: Sequence[Tensor]
) -> tuple[list[Node], set[Node]]:
    """The nodes of a function that its gradient reads, and all nodes between them and the outputs, inputs among them.

    Where the gradient reads a view, it is the base of the view.
    """
    inside = set(function.graph.nodes)
    left: dict[Node, None] = {}
    seen = set(function.kept)
    stack = [*[o._data.node for o in outputs], *gradient.effects]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        known = node in inside or (node.op is P.project and node.inputs[0] in inside)  # what a loop keeps is not inside
        keeps = known and node.op is not None and node.op.kind not in ("view", "creation")
        if keeps and not isinstance(node.shape[0] if node.shape else 0, tuple):
            left[node] = None
        else:
            stack += [i for i in node.inputs if isinstance(i, Node)]
    return list(left), seen


def floats_of(tensors: Sequence[Any]) -> list[int]:
    """The numbers of the tensors that can have a gradient."""
    return [i for i, t in enumerate(tensors) if t.dtype.kind == "f"]


# In other modes -------------------------------------------------------------------------------------------------------


def inlined(
    traced: TracedFunction, tensors: Sequence[Tensor], starts: Starts | None = None, known: Sequence[Node] = ()
) -> tuple[Tensor, ...]:
    """The operations, one by one, in the current mode.  The gradient is the traced one, with its custom rules.

    The last tensors are the values of `known` nodes, which are not computed again.
    """
    floats, roots, count = floats_of(traced.inputs), floats_of(traced.outputs), len(tensors) - len(known)
    graph = traced.graph
    if known:
        graph = Graph((*graph.inputs, *known), graph.outputs, graph.effects)

    def forward(*xs: Tensor) -> Any:
        return tuple(written_out(graph, xs, starts or {})), None

    def backward(xs: Sequence[Tensor], g: Any) -> tuple[Any, ...]:
        gradient = traced.gradient_by(floats, roots)
        found = dict(zip(floats, gradient.inlined([*xs[:count], *[g[i] for i in roots]], starts)))
        return tuple([found.get(i) for i in range(len(xs))])

    results: tuple[Tensor, ...] = call_with_gradient(tensors, forward, backward, keeps=False)
    return results


def batched(
    traced: TracedFunction, many: Sequence[bool], kept: Sequence[bool], starts: Starts | None = None
) -> OnTensors:
    """The function of tensors with a batch axis in front, where `many` says so; the outputs in `kept` have one."""
    axes = tuple([0 if m else None for m in many])

    def function(tensors: list[Tensor]) -> list[Tensor]:
        results = vmap(lambda *xs: traced.inlined(xs, starts), in_axes=axes)(*tensors)
        return [r if k else r[0] for r, k in zip(results, kept)]

    return function


def pushed(
    traced: TracedFunction, tensors: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs and their tangents, given tangents of the floats among the inputs.

    The gradient is linear in the cotangents.  Its gradient by the cotangents therefore maps tangents to tangents.
    """
    floats, roots = floats_of(traced.inputs), floats_of(traced.outputs)
    outputs = list(traced.inlined(tensors))
    given = [zeros(outputs[i].shape, outputs[i].dtype, outputs[i].device) for i in roots]
    for g in given:
        g.requires_grad = True
    found = traced.gradient_by(floats, roots).inlined([*tensors, *given])
    products = [(f * t).sum() for f, t in zip(found, tangents)]
    if not products or not given:
        return outputs, [zeros(g.shape, g.dtype, g.device) for g in given]
    total = products[0]
    for product in products[1:]:
        total = total.astype(product.dtype, copy=False) + product
    moved = gradients(total, given, create_graph=True, allow_unused=True)
    return outputs, [zeros(g.shape, g.dtype, g.device) if m is None else m for m, g in zip(moved, given)]


# Runs on tensors with a history ---------------------------------------------------------------------------------------


class Application:
    """One run of a traced function on tensors with a history: the attribute of the primitive `call`.

    `others` are the values of the sources behind the inputs.
    """

    looks_inside = True

    def __init__(self, function: TracedFunction, others: list[Any], starts: Starts) -> None:
        self.function, self.others, self.starts = function, others, starts
        self.left: list[Any] = []  # what the run left for the gradient
        self.recorded = current_mode().grad
        self.cotangent: Any = None
        self.answer: Any = None

    def applied(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results, with a history."""
        results = emit(P.call, *inputs, application=self)
        traced = self.function.outputs
        for result, like in zip(results, traced):
            result.device = like.device  # not always that of the inputs
            if result.node is not None:
                result.node.device = like.device
        return tuple([r if t.tracked else wrap(r._data, r.device) for r, t in zip(results, traced)])

    def compute(self, *values: Any) -> Any:
        """The kernel of `call`: the raw results."""
        function = self.function
        program = function.ran = (function.keeping if self.recorded else function).program
        results = program([*values, *self.others], self.starts)
        self.left = results[len(function.outputs) :]
        return tuple(results[: len(function.outputs)])

    def gradients(self, g: Any, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """The gradients of all inputs, computed once: a backward pass reads one after the other."""
        if self.cotangent is not g:
            self.cotangent, self.answer = g, self._pulled_back(g, inputs)
        return self.answer  # type: ignore[no-any-return]

    def _pulled_back(self, g: Any, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        gradient, interpreter = self.function.gradient, current_mode().interpreter
        given = [*inputs, *[g[i] for i in gradient.roots]]
        results: Sequence[Tensor] = ()
        if gradient.outputs and interpreter is not None and not interpreter.runs_programs:
            # For vmap and jvp, operation by operation, from the inputs again: the values in `left` have no history.
            others = [wrap(value, node.device) for value, node in zip(self.others, gradient.others)]
            results = written_out(gradient.whole_graph, [*given, *others], self.starts)
        elif gradient.outputs:
            results = Application(gradient, [*self.others, *self.left], self.starts).applied(given)
        found = dict(zip(gradient.wanted, results))
        return tuple([found.get(i) for i in range(len(inputs))])
