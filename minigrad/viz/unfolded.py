"""Histories with their compiled parts written out: a jitted function as its operations, a loop as its rounds.

A call of a jitted function is one node, and so is a loop in it.  To step through them, their operations are run again,
one by one, from the values that the call saved, and recorded as eager mode would record them.  The nodes of the user's
own tensors do not change: what comes after a call is copied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.visits import HOOKS
from ..compile.control.gradients import Loop
from ..compile.functions.derivatives import Application
from ..compile.fusion.count import functions_of
from ..compile.nodes.graph import Graph, Starts
from ..compile.nodes.interpret import started
from ..core.clock import tick
from ..core.emit import emit
from ..core.mode import Mode, switch
from ..core.node import Node
from ..core.primitive import P
from ..core.programs import made_since, opened_order, place_before
from ..core.replay import evaluate_nodes
from ..core.tensor import Tensor, wrap
from ..ops.creation import zeros_like
from ..ops.joining import stack
from .bodies import beneath, kind_of
from .naming import Flow, answered
from .scene import Path, Scopes

MOST = 2_000  # operations that are written out in one picture; a call or a loop with more stays one box


def unfolded(results: Sequence[Node]) -> list[Node]:
    """The nodes, with jitted functions, branches and loops in their history written out as far as there is room.

    >>> f = mg.jit(lambda x: (x * x).sum())
    >>> y = f(mg.asarray([1.0, 2.0], requires_grad=True))
    >>> [node.name for node in opened_order(unfolded([y.node]))]
    ['leaf', 'multiply', 'sum']
    """
    new: dict[Node, Node] = {}
    parts: dict[Node, Sequence[Tensor]] = {}
    room, scopes = MOST, Scopes()
    for node in opened_order(results):
        whole = node.inputs[0] if node.op is P.project else None
        if whole in parts:
            new[node] = parts[whole][node.attrs["index"]].node or node
        elif _opens(node, room):
            parts[node], count = _operations(node, new, scopes)
            room -= count
        elif any(new.get(source, source) is not source for source in node.sources):
            new[node] = copy.copy(node)
            new[node].inputs = tuple([new.get(i, i) if isinstance(i, Node) else i for i in node.inputs])
        if node in new and node in HOOKS:
            HOOKS[new[node]] = HOOKS[node]
    return [new.get(result, result) for result in results]


def _opens(node: Node, room: int) -> bool:
    """Whether a node is a call whose operations are known, whose inputs are still there, and which fits."""
    if node.op is not P.call or node.saved.__class__ is not tuple:
        return False
    application = node.attrs["application"]
    return isinstance(application, Application) and size_of(application.function.graph) <= room


def size_of(graph: Graph) -> int:
    """How many operations a graph has when its branches and the rounds of its scans are written out."""
    return sum(_size(node, node.attrs.get("length", 1)) for node in graph.nodes)


def _size(node: Node, rounds: int) -> int:
    """How many operations a node is, with those inside it; 1 for a loop with too many, which stays one box."""
    inside = rounds * sum(size_of(function.graph) for function in functions_of(node.attrs))
    return inside if 0 < inside <= MOST else 1


def _operations(node: Node, new: dict[Node, Node], scopes: Scopes) -> tuple[Sequence[Tensor], int]:
    """The results of a call, run again and recorded operation by operation just before it; and how many there are."""
    application, moving = node.attrs["application"], {rule.index for rule in node.plan.rules}
    function, began = application.function, tick()
    tensors = []
    for i, (source, value) in enumerate(zip(node.inputs, node.saved)):
        tensor = wrap(value, node.device)
        tensor.node, tensor.tracked = new.get(source, source), i in moving
        tensors.append(tensor)
    behind = function.sources[len(tensors) :]
    others = [wrap(value, like.device) for value, like in zip(application.others, behind)]
    with switch(Mode(origin=node.origin, record_all=True, programs=False)):
        name = function.tracer.name
        run = Run(scopes, scopes.inside(node.scope, name), application.starts, (name,))  # a module has that scope too
        results = run.of(function.graph, [*tensors, *others])
    made = sorted(made_since([t.node for t in results], began), key=lambda each: each.serial)
    place_before(node, made)
    return results, len(made)


class Run(NamedTuple):
    """Graphs that are run once more: the scopes around them, and the state of their random numbers.

    The graph of a branch or a body was recorded in the scope `outer`, and now runs in the scope `scope`.
    """

    scopes: Scopes
    scope: Path
    starts: Starts
    outer: Path = ()

    def at(self, node: Node) -> Path:
        """The scope of a node in this run."""
        return (*self.scope, *beneath(node.scope, self.outer))

    def inside(self, node: Node, name: str) -> Run:
        """The run of a branch or a body of a node, in a scope of its own."""
        return self._replace(scope=self.scopes.inside(self.at(node), name, kind=Flow), outer=node.scope)

    def of(self, graph: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a graph, recorded operation by operation, each at its line in the user's code."""
        values: dict[Any, Any] = dict(zip(graph.inputs, tensors))
        nodes = Graph(graph.inputs, graph.outputs).nodes  # without effects, which have happened
        for _ in evaluate_nodes(nodes, values, self.applied, wanted=graph.outputs):
            pass
        return [values[node] for node in graph.outputs]

    def applied(self, node: Node, given: list[Any]) -> Any:
        """What a node makes of these tensors: several tensors in a list, if it has several results."""
        if node.op is None:
            return wrap(node.array(), node.device)  # type: ignore[attr-defined]
        if node.op is P.project:
            return given[0][node.attrs["index"]]
        op, attrs = node.op, started(node.attrs, self.starts)
        if op is P.cond:
            taken = bool(given[0].item())
            run = self._replace(starts=_draws(attrs, 0)).inside(node, answered(node.where, taken))
            return run.of(attrs["then" if taken else "otherwise"].graph, given[1:])
        if op in (P.scan, P.while_loop):
            loop = Loop(attrs, given)
            count = _rounds(loop, given)
            if _size(node, count) > 1:
                return self.inside(node, kind_of(node)).rounds(node, loop, given, count)
        return self.recorded(node, lambda: emit(op, *given, **attrs))

    def recorded(self, node: Node, compute: Callable[[], Any]) -> Any:
        """What a function computes, recorded at the line and in the scope of a node."""
        began, found = tick(), compute()
        mode = node.mode.but(interpreter=None, scope=self.at(node))
        for made in made_since([t.node for t in (found if isinstance(found, tuple) else (found,))], began):
            made.code, made.offset, made.mode = node.code, node.offset, mode
        return found

    def rounds(self, node: Node, loop: Loop, given: Sequence[Tensor], count: int) -> list[Tensor]:
        """The results of a loop of `count` rounds, one round after the other."""
        fixed, carry, xs = loop.given(given)
        backwards = loop.attrs.get("reverse", False)
        kept, each = list[list[Tensor]](), list[list[Tensor]]()  # the carry before each round, and its results
        for k in range(count):
            i = count - 1 - k if backwards else k
            run = self._replace(starts=_draws(loop.attrs, i), scope=(*self.scope, Flow(f"round [{k}]")))
            rows = [run.recorded(node, lambda x=x, i=i: x[i]) for x in xs]  # type: ignore[misc]
            kept.append(carry)
            results = run.of(loop.body.graph, [*fixed, *carry, *rows])
            carry = results[: loop.carries]
            each.append(results[loop.carries :])
        counted = [] if loop.test is None else [wrap(np.asarray(count), given[0].device)]
        unused = [[zeros_like(t) for t in carry]] * ((loop.length or count) - count)
        columns = [[*column[::-1]] if backwards else [*column] for column in (*zip(*each), *zip(*kept, *unused))]
        return [*carry, *counted, *[self.recorded(node, lambda c=c: stack(c)) for c in columns]]  # type: ignore[misc]


def _rounds(loop: Loop, given: Sequence[Tensor]) -> int:
    """How many rounds a loop has: of a while_loop, which counts them, when it has run."""
    if loop.test is None:
        return int(given[0].item()) if loop.first else loop.length  # type: ignore[no-any-return]
    with switch(Mode(grad=False)):
        return int(emit(P.while_loop, *given, **loop.attrs)[loop.carries].item())


def _draws(attrs: dict[str, Any], i: int) -> Starts:
    """The random numbers of round `i` of a loop."""
    return {generator: (key, block + i * step) for generator, key, block, step in attrs.get("draws", ())}
