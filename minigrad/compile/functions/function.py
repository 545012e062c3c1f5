"""A traced function: its graph, its program, and the graph and program of its gradient.

A jitted function has to be differentiable like any other operation.  What has been traced is therefore applied through
the door, as a `call`, with the program as its kernel and, as its gradient rule, the program of the walk back, which is
traced too: a function of what came in, of gradients of the results, and of the values that the first program left for
it.  The gradient is traced itself, so it has a gradient again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ...autodiff.reverse import exhaust, walk
from ...core.emit import emit
from ...core.mode import Mode, current_mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor, wrap
from ...support.errors import GradError
from ..nodes.graph import Graph
from ..nodes.interpret import Starts, written_out
from ..running.program import PlainProgram, Program, program_for
from ..tracing.collector import no_collection
from ..tracing.tracer import Tracer


class Traced:
    """Some tensors of a trace as inputs, `own` the nodes of their values, and some as outputs.

    `others` are nodes whose values a run is given besides.
    """

    looks_inside = True  # its program looks at each node, where nans are hunted
    ran: Program | PlainProgram | None = None  # the program that the last application ran

    def __init__(
        self, tracer: Tracer, inputs: Sequence[Tensor], own: Sequence[Node], others: Sequence[Node],
        outputs: Sequence[Tensor], effects: Sequence[Node] = (), donate: Mapping[int, int] | None = None,
        executor: str | None = None,
    ) -> None:
        self.tracer, self.inputs, self.outputs = tracer, inputs, outputs
        self.own, self.others, self.effects = tuple(own), tuple(others), tuple(effects)
        self.donate = donate or {}  # the outputs, by number, that may be stored where a source is
        self.executor = executor  # of its programs

    @property
    def sources(self) -> tuple[Node, ...]:
        """All nodes whose values a run is given."""
        return (*self.own, *self.others)

    @property
    def besides(self) -> tuple[Node, ...]:
        """Those of `others` that nothing in the trace computes."""
        return self.others

    @cached_property
    def whole_graph(self) -> Graph:
        """From what nothing in the trace computes to the outputs."""
        return Graph((*self.own, *self.besides), [o._data.node for o in self.outputs], self.effects)

    @cached_property
    def graph(self) -> Graph:
        """From the sources to the outputs, and nothing else."""
        return Graph(self.sources, [o._data.node for o in self.outputs], self.effects)

    @cached_property
    def program(self) -> Program | PlainProgram:
        """Computes the outputs."""
        with no_collection():
            return program_for(self.graph, self.donate, executor=self.executor)

    @cached_property
    def recording_program(self) -> Program | PlainProgram:
        """Computes the outputs, and what the gradient reads."""
        return program_for(self.recording_graph, executor=self.executor)

    @cached_property
    def recording_graph(self) -> Graph:
        """From the sources to the outputs and to what the gradient reads."""
        try:
            left = self.gradient.left
        except GradError:  # for who asks for the gradient, and not for who only has the value computed
            left = []
        return Graph(self.sources, (*self.graph.outputs, *left), self.effects)

    @cached_property
    def gradient(self) -> Gradient:
        """The walk back from the outputs, recorded."""
        return Gradient(self)

    @property
    def gradient_that_ran(self) -> Gradient | None:
        """The gradient, if one of its programs has run."""
        gradient: Gradient | None = vars(self).get("gradient")
        return gradient if gradient is not None and gradient.ran is not None else None


class Gradient(Traced):
    """From the inputs of a traced function, and a cotangent for each output that has a history, to the gradients.

    `left` are the nodes of the function whose values the gradient is given, so that it need not compute them again.
    """

    def __init__(self, function: Traced) -> None:
        tracer = function.tracer
        self.roots = [i for i, o in enumerate(function.outputs) if o.tracked]
        cotangents, found, effects = walked_back(function, self.roots, [t for t in function.inputs if t.tracked])
        self.found = [t.tracked and t.node in found for t in function.inputs]
        outputs = [found[t.node] for t, there in zip(function.inputs, self.found) if there]
        starts = [c._data.node for c in cotangents]
        self.left = _read_from(function, [*[o._data.node for o in outputs], *effects], starts)
        own, others = (*function.own, *starts), (*function.others, *self.left)
        inputs = [*function.inputs, *cotangents]
        super().__init__(tracer, inputs, own, others, outputs, effects, executor=function.executor)
        self._besides = function.besides

    @property
    def besides(self) -> tuple[Node, ...]:
        return self._besides


def walked_back(
    function: Traced, roots: Sequence[int], targets: Sequence[Tensor]
) -> tuple[list[Tensor], dict[Node, Tensor], list[Node]]:
    """The walk back from the outputs `roots`, traced.

    It gives their gradients as somebody will give them, those that were found for the nodes of the targets, and the
    effects of hooks and of rules of the user's own.
    """
    tracer, outputs = function.tracer, function.outputs
    earlier = len(tracer.effects)
    with switch(Mode().but(interpreter=tracer)):
        cotangents = [_cotangent(tracer, outputs[i], i) for i in roots]
        moving = [(outputs[i].node, g) for i, g in zip(roots, cotangents) if outputs[i].tracked]
        nodes = [t.node for t in targets]
        found = exhaust(walk([n for n, _ in moving], [g for _, g in moving], nodes, retain=True, announced=False))
    return cotangents, found, tracer.effects[earlier:]


def _cotangent(tracer: Tracer, output: Tensor, index: int) -> Tensor:
    data = tracer.source("cotangent", index, output.shape, output.dtype, output.device)
    cotangent = wrap(data, output.device)
    cotangent.requires_grad = True
    return cotangent


def _read_from(function: Traced, outputs: list[Node], starts: list[Node]) -> list[Node]:
    """The nodes of a function that its gradient reads; where it reads a view, the node whose memory that looks at."""
    inside = set(function.graph.nodes)
    given = {*function.sources, *starts}
    left: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen or node in given:
            continue
        seen.add(node)
        known = node in inside or (node.op is P.project and node.inputs[0] in inside)  # what a loop keeps is not inside
        keeps = known and node.op is not None and node.op.kind not in ("view", "creation")
        if keeps and not isinstance(node.shape[0] if node.shape else 0, tuple):
            left[node] = None
        else:
            stack += [i for i in node.inputs if isinstance(i, Node)]
    return list(left)


class Application:
    """One run of a traced function on tensors that gradients flow to: what the primitive `call` is given.

    `others` are the values of the sources beyond the inputs.
    """

    looks_inside = True

    def __init__(self, function: Traced, others: list[Any], starts: Starts) -> None:
        self.function, self.others, self.starts = function, others, starts
        self.left: list[Any] = []  # what the run left for the gradient
        self.recorded = current_mode().grad
        self.cotangent: Any = None
        self.answer: Any = None

    def compute(self, *values: Any) -> Any:
        """The results for these inputs: the kernel of the call."""
        function = self.function
        program = function.ran = function.recording_program if self.recorded else function.program
        results = program([*values, *self.others], self.starts)
        self.left = results[len(function.outputs) :]
        return tuple(results[: len(function.outputs)])

    def gradients(self, g: Any, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """The gradients of all inputs, computed once for the walk that asks for one after the other."""
        if self.cotangent is not g:
            self.cotangent, self.answer = g, self._pulled_back(g, inputs)
        return self.answer  # type: ignore[no-any-return]

    def _pulled_back(self, g: Any, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        gradient, interpreter = self.function.gradient, current_mode().interpreter
        given = [*inputs, *[g[i] for i in gradient.roots]]
        results: Sequence[Tensor] = ()
        if gradient.outputs and interpreter is not None and not interpreter.runs_programs:
            results = self._written_out(gradient, given)
        elif gradient.outputs:
            results = Application(gradient, [*self.others, *self.left], self.starts).applied(given)
        found = iter(results)
        return tuple([next(found) if there else None for there in gradient.found])

    def _written_out(self, gradient: Gradient, given: Sequence[Tensor]) -> Sequence[Tensor]:
        """The gradients, operation by operation: for vmap and jvp, which see through what is jitted.

        They are computed from the inputs again, because `left` holds values without the way that led to them.
        """
        others = [wrap(value, node.device) for value, node in zip(self.others, gradient.besides)]
        return written_out(gradient.whole_graph, [*given, *others], self.starts)

    def applied(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results, through the door: who differentiates them finds a history."""
        results = emit(P.call, *inputs, application=self)
        traced = self.function.outputs
        for result, like in zip(results, traced):
            result.device = like.device  # not always that of the inputs
            if result.node is not None:
                result.node.device = like.device
        return tuple([r if t.tracked else wrap(r._data, r.device) for r, t in zip(results, traced)])
