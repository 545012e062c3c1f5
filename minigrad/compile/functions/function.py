"""Functions: a graph that can be called, and, where it was traced, its gradient.

A jitted function and the branches and bodies of control flow are functions.  A traced function is differentiable like
any operation: its gradient is traced too, from the inputs and the gradients of the outputs to the gradients of the
inputs.  So the gradient is a traced function, and has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...autodiff.batching import vmap
from ...autodiff.custom import call_with_gradient
from ...autodiff.reverse import exhaust, gradients, walk
from ...core.emit import emit
from ...core.mode import Mode, current_mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.programs import Closed
from ...core.tensor import Tensor, wrap
from ...devices.registry import REGISTRATIONS
from ...ops.creation import zeros
from ...support.errors import GradError
from ..nodes.graph import Graph, later, reapplied, remade
from ..nodes.interpret import Starts, written_out
from ..nodes.tally import Tally
from ..running.executors import is_profiled
from ..running.program import PlainProgram, Program, program_for
from ..running.targets import HOST, target_of
from ..tracing.collector import no_collection
from ..tracing.tracer import Pending, Tracer

if TYPE_CHECKING:
    from ..running.rounds import NativeLoop

OnTensors = Callable[[list[Tensor]], Sequence[Tensor]]


class Function:
    """A graph as a function of raw arrays.  The nodes of branches and loops have functions as attributes."""

    looks_inside = True  # where nans are hunted, its program checks each node
    rules: Any = later("minigrad.compile.control.rules")  # the gradients and batches of branches and loops
    donate: Mapping[int, int] = {}  # the outputs, by number, that may be stored where an input is
    executor: str | None = None  # of its programs
    any_layout = False  # whether its results may have another layout than row-major

    def __init__(self, graph: Graph) -> None:
        self.graph, self.effects = graph, graph.effects

    def __repr__(self) -> str:
        return f"<graph of {len(self.graph)} nodes>"

    @property
    def results(self) -> list[tuple[tuple[int, ...], Any]]:
        """The shapes and dtypes of the outputs."""
        return [(node.shape, node.dtype) for node in self.graph.outputs]

    @cached_property
    def parts(self) -> dict[frozenset[int], Function]:
        """The functions that compute fewer outputs, by the numbers of the others."""
        return {}

    def without(self, unread: frozenset[int]) -> Function:
        """The function without these outputs."""
        if unread not in self.parts:
            outputs = [node for number, node in enumerate(self.graph.outputs) if number not in unread]
            part = self.parts[unread] = Function(Graph(self.graph.inputs, outputs, self.effects, self.graph.checks))
            part.executor, part.tally = self.executor, self.tally
        return self.parts[unread]

    @cached_property
    def program(self) -> Program | PlainProgram:
        """Computes the outputs."""
        with no_collection():
            return program_for(self.graph, self.donate, executor=self.executor, any_layout=self.any_layout)

    @cached_property
    def tally(self) -> Tally:
        """How often it ran as a part of a loop or branch."""
        return Tally()

    def __call__(self, values: Sequence[Any], starts: Starts) -> list[Any]:
        """The raw outputs for raw inputs."""
        self.tally.runs += 1
        return self.program(values, starts)

    def in_rounds(
        self, test: Function | None, fixed: Sequence[Any], carry: Sequence[Any], stacks: Sequence[Any], kept: bool,
        rounds: int, reverse: bool = False,
    ) -> tuple[list[Any], int] | None:
        """Run this body again and again in machine code: see `running/rounds.py`; None if that is not possible."""
        from ..nodes.thresholds import FEWEST_LOOP_ROUNDS
        from ..running.rounds import NativeLoop, runs_in_rounds

        interpreter = current_mode().interpreter
        if rounds < FEWEST_LOOP_ROUNDS or is_profiled() or (interpreter is not None and interpreter.runs_programs):
            return None
        key = test, len(fixed), len(carry), kept, *REGISTRATIONS  # else other kernels
        if key not in self.loops:
            programs = [function.program for function in (self, test) if function is not None]
            self.loops[key] = [] if all(map(runs_in_rounds, programs)) else None
        idle = self.loops[key]
        if idle is None:
            return None
        try:
            loop = idle.pop()
        except IndexError:
            condition: Any = None if test is None else test.program
            loop = NativeLoop(self.program, condition, len(fixed), len(carry), kept)  # type: ignore[arg-type]
        if not loop.is_native:
            self.loops[key] = None
            return None
        try:
            found, done = loop.run(fixed, carry, stacks, rounds, reverse)
        finally:
            idle.append(loop)
        self.tally.runs += done
        if test is not None:
            test.tally.runs += done + (done < rounds)  # the last test ends the loop
        return found, done

    @cached_property
    def loops(self) -> dict[Any, list[NativeLoop] | None]:
        """The loops in machine code that are not running; None where that is not possible."""
        return {}


class TracedFunction(Function):
    """A function with its trace: `inputs` and `outputs` are tensors of the trace, linked by their histories.

    `others` are further inputs of the graph.  Only a gradient has `kept`: nodes of the function that it is the gradient
    of, whose values it is given, so that it need not compute them again.
    """

    ran: Program | PlainProgram | None = None  # the program that the last application ran
    pulled: tuple[Any, Any] = (None, None)  # the gradients that a walk is collecting, one input after the other
    # A gradient has the gradients of the outputs `roots` as its last inputs.  Its outputs are the gradients of the
    # inputs `wanted`; nothing depends on the inputs `unused`.
    roots: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    unused: frozenset[int] = frozenset()

    def __init__(
        self, tracer: Tracer, inputs: Sequence[Tensor], outputs: Sequence[Tensor], effects: Sequence[Node] = (),
        others: Sequence[Node] = (), kept: Sequence[Node] = (), again: frozenset[Node] = frozenset(),
    ) -> None:
        self.tracer, self.inputs, self.outputs = tracer, inputs, outputs
        self.own = tuple([t._data.node for t in inputs])
        self.others, self.kept, self.effects = tuple(others), tuple(kept), tuple(effects)
        self.again = again  # nodes whose effects have happened before: here, they have none
        self.gradients: dict[Any, TracedFunction] = {}

    @property
    def what(self) -> str:
        """Its name in messages."""
        return self.tracer.what

    @property
    def sources(self) -> tuple[Node, ...]:
        """All nodes whose values a run is given."""
        return (*self.own, *self.others, *self.kept)

    @cached_property
    def whole_graph(self) -> Graph:
        """The graph without the values that were kept: it computes them again."""
        return Graph((*self.own, *self.others), [o._data.node for o in self.outputs], self.effects)

    @cached_property
    def graph(self) -> Graph:  # type: ignore[override]
        """From the sources to the outputs."""
        graph = Graph(self.sources, [o._data.node for o in self.outputs], self.effects)
        loud = self.again.intersection(graph.nodes)
        if not loud:
            return graph
        return graph.rebuilt(lambda node, inputs: (_silent if node in loud else remade)(node, inputs))

    @property
    def is_hosted(self) -> bool:
        """Whether its programs are compiled for this CPU."""
        return target_of((*self.graph.inputs, *self.graph.nodes)) is HOST

    @cached_property
    def closed(self) -> Closed:
        """The operation that stands for its nodes where graph mode records a run."""
        result: Any = self.results[0] if len(self.results) == 1 else tuple(zip(*self.results))
        return Closed("call", "structural", ("*xs",), lambda *_: result, promotes=(), function=self)

    def reads(self, nodes: Sequence[Node]) -> list[Node]:
        """Those of these nodes that it would read if their values were given."""
        candidates = set(self.graph.nodes).intersection(nodes)
        used = Graph((*self.sources, *candidates), self.graph.outputs, self.graph.effects).uses()
        return [node for node in nodes if node in candidates and node in used]

    @cached_property
    def silent(self) -> TracedFunction:
        """The same function without effects, to compute its values again."""
        return TracedFunction(self.tracer, self.inputs, self.outputs, (), self.others, self.kept, self._loud)

    @cached_property
    def _loud(self) -> frozenset[Node]:
        return self.again.union([node for node in self.graph.nodes if node.effect == "within"])

    def with_outputs(self, nodes: Sequence[Node]) -> TracedFunction:
        """The same function, which returns the values of these nodes too.  No gradient comes back through them."""
        more = [wrap(Pending(self.tracer, node), node.device) for node in nodes]
        made = TracedFunction(self.tracer, self.inputs, [*self.outputs, *more], self.effects, self.others, self.kept)
        made.executor = self.executor
        return made

    # the gradient ---------------------------------------------------------------------------------------------------

    def gradient_by(self, wanted: Sequence[int], roots: Sequence[int]) -> TracedFunction:
        """From the inputs and the gradients of the outputs `roots` to the gradients of the inputs `wanted`.

        It computes again what it reads of the values in between.
        """
        key = tuple(wanted), tuple(roots)
        if key not in self.gradients:
            self.gradients[key] = self._walked_back(*key)
        return self.gradients[key]

    def _walked_back(self, wanted: tuple[int, ...], roots: tuple[int, ...]) -> TracedFunction:
        """The backward pass, traced, with the effects of hooks and of users' gradient rules."""
        tracer, outputs, targets = self.tracer, self.outputs, [self.inputs[i] for i in wanted]
        earlier = len(tracer.effects)
        with switch(Mode().but(interpreter=tracer)):
            cotangents = [_cotangent(tracer, outputs[i], i) for i in roots]
            moving = [(outputs[i].node, g) for i, g in zip(roots, cotangents) if outputs[i].tracked]
            begins, given = [node for node, _ in moving], [g for _, g in moving]
            found = exhaust(walk(begins, given, [t.node for t in targets], retain=True, yields=False))
            made = [found[t.node] if t.node in found else zeros(t.shape, t.dtype, t.device) for t in targets]
        inputs, effects = [*self.inputs, *cotangents], tracer.effects[earlier:]
        gradient = TracedFunction(tracer, inputs, made, effects, self.others, again=self._loud)
        gradient.roots, gradient.wanted, gradient.executor = roots, wanted, self.executor
        gradient.unused = frozenset([i for i, t in zip(wanted, targets) if t.node not in found])
        return gradient

    @cached_property
    def gradient(self) -> TracedFunction:
        """The gradients of all inputs that have one, given the values that `keeping` computes for it."""
        tracked = [[i for i, t in enumerate(tensors) if t.tracked] for tensors in (self.inputs, self.outputs)]
        whole = self.gradient_by(*tracked)
        found = {i: output for i, output in zip(whole.wanted, whole.outputs) if i not in whole.unused}
        made = list(found.values())
        kept = (*self.kept, *read_by(self, whole, made)[0])
        gradient = TracedFunction(self.tracer, whole.inputs, made, whole.effects, self.others, kept)
        gradient.roots, gradient.wanted, gradient.executor = whole.roots, tuple(found), self.executor
        return gradient

    @property
    def left(self) -> tuple[Node, ...]:
        """The nodes whose values the gradient is given."""
        return self.gradient.kept[len(self.kept) :]

    @cached_property
    def keeping(self) -> TracedFunction:
        """The same function, which also returns what the gradient is given."""
        try:
            left = self.left
        except GradError:  # an error of the backward pass, and not of this one
            left = ()
        return self.with_outputs(left)

    @property
    def gradient_that_ran(self) -> TracedFunction | None:
        """The gradient, if one of its programs has run."""
        gradient: TracedFunction | None = vars(self).get("gradient")
        return gradient if gradient is not None and gradient.ran is not None else None

    # in other modes -------------------------------------------------------------------------------------------------

    def inlined(
        self, tensors: Sequence[Tensor], starts: Starts | None = None, known: Sequence[Node] = ()
    ) -> tuple[Tensor, ...]:
        """The operations, one by one, in the current mode.  The gradient is the traced one, with its custom rules.

        The last tensors are the values of `known` nodes, which are not computed again.
        """
        floats, roots, count = floats_of(self.inputs), floats_of(self.outputs), len(tensors) - len(known)
        graph = Graph((*self.graph.inputs, *known), self.graph.outputs, self.graph.effects) if known else self.graph

        def forward(*xs: Tensor) -> Any:
            return tuple(written_out(graph, xs, starts or {})), None

        def backward(xs: Sequence[Tensor], g: Any) -> tuple[Any, ...]:
            gradient = self.gradient_by(floats, roots)
            found = dict(zip(floats, gradient.inlined([*xs[:count], *[g[i] for i in roots]], starts)))
            return tuple([found.get(i) for i in range(len(xs))])

        results: tuple[Tensor, ...] = call_with_gradient(tensors, forward, backward, keeps=False)
        return results

    def depends(self, many: Sequence[bool]) -> list[bool]:
        """Which outputs depend on the inputs that are marked."""
        marked = {node for node, m in zip(self.graph.inputs, many) if m}
        for node in self.graph.nodes:
            if any(i in marked for i in node.inputs if isinstance(i, Node)):
                marked.add(node)
        return [o in marked for o in self.graph.outputs]

    def batched(self, many: Sequence[bool], kept: Sequence[bool], starts: Starts | None = None) -> OnTensors:
        """The function of tensors with a batch axis in front, where `many` says so; the outputs in `kept` have one."""
        axes = tuple([0 if m else None for m in many])

        def function(tensors: list[Tensor]) -> list[Tensor]:
            results = vmap(lambda *xs: self.inlined(xs, starts), in_axes=axes)(*tensors)
            return [r if k else r[0] for r, k in zip(results, kept)]

        return function

    def pushed(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs and their tangents, given tangents of the floats among the inputs.

        The gradient is linear in the cotangents.  Its gradient by the cotangents therefore maps tangents to tangents.
        """
        floats, roots = floats_of(self.inputs), floats_of(self.outputs)
        outputs = list(self.inlined(tensors))
        given = [zeros(outputs[i].shape, outputs[i].dtype, outputs[i].device) for i in roots]
        for g in given:
            g.requires_grad = True
        found = self.gradient_by(floats, roots).inlined([*tensors, *given])
        products = [(f * t).sum() for f, t in zip(found, tangents)]
        if not products or not given:
            return outputs, [zeros(g.shape, g.dtype, g.device) for g in given]
        total = products[0]
        for product in products[1:]:
            total = total.astype(product.dtype, copy=False) + product
        moved = gradients(total, given, create_graph=True, allow_unused=True)
        return outputs, [zeros(g.shape, g.dtype, g.device) if m is None else m for m, g in zip(moved, given)]


def floats_of(tensors: Sequence[Any]) -> list[int]:
    """The numbers of the tensors that can have a gradient."""
    return [i for i, t in enumerate(tensors) if t.dtype.kind == "f"]


def _silent(node: Node, inputs: tuple[Any, ...]) -> Node:
    attrs = {key: held.silent if isinstance(held, TracedFunction) else held for key, held in node.attrs.items()}
    return reapplied(node, inputs, attrs)


def _cotangent(tracer: Tracer, output: Tensor, index: int) -> Tensor:
    cotangent = wrap(tracer.source("cotangent", index, output.shape, output.dtype, output.device), output.device)
    cotangent.requires_grad = True
    return cotangent


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
        """The gradients of all inputs, computed once: a backward pass asks for one after the other."""
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
