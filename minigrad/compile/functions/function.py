"""Functions: a graph that can be called, and, where it was traced, its gradient.

A jitted function and the branches and bodies of control flow are functions.  A traced function is differentiable like
any operation: its gradient is traced too, from the inputs and the gradients of the outputs to the gradients of the
inputs.  So the gradient is a traced function, and has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.node import Node
from ...core.programs import Closed
from ...core.tensor import Tensor, wrap
from ...support.collector import no_collection
from ...support.errors import GradError
from ..nodes.graph import Graph, Starts, later, reapplied, remade
from ..running.program import Program, program_for
from ..running.targets import HOST, target_of
from ..tracing.tracer import Pending, Tracer

if TYPE_CHECKING:
    from ..fusion.tally import Tally
    from ..running.plain import PlainProgram
    from ..running.rounds import NativeLoop


class Function:
    """A graph as a function of raw arrays.  The nodes of branches and loops have functions as attributes."""

    looks_inside = True  # under `debug_nans`, its program checks each node
    in_rounds = later("minigrad.compile.running.rounds", "in_rounds")
    rules: Any = later("minigrad.compile.control.gradients")  # the gradients and batches of branches and loops
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
        from ..fusion.tally import Tally

        return Tally()

    def __call__(self, values: Sequence[Any], starts: Starts) -> list[Any]:
        """The raw outputs for raw inputs."""
        self.tally.runs += 1
        return self.program(values, starts)

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

    _walked_back = later("minigrad.compile.functions.derivatives", "walked_back")
    _gradient_given_values = later("minigrad.compile.functions.derivatives", "gradient_given_values")
    inlined = later("minigrad.compile.functions.derivatives", "inlined")
    batched = later("minigrad.compile.functions.derivatives", "batched")
    _application = later("minigrad.compile.functions.derivatives", "Application")
    pushed = later("minigrad.compile.functions.derivatives", "pushed")

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

    @cached_property
    def application(self) -> Callable[..., Any]:
        """What makes a run on tensors with a history."""
        return self._application

    # the gradient ---------------------------------------------------------------------------------------------------

    def gradient_by(self, wanted: Sequence[int], roots: Sequence[int]) -> TracedFunction:
        """From the inputs and the gradients of the outputs `roots` to the gradients of the inputs `wanted`.

        It computes again what it reads of the values in between.
        """
        key = tuple(wanted), tuple(roots)
        if key not in self.gradients:
            self.gradients[key] = self._walked_back(*key)
        return self.gradients[key]

    @cached_property
    def gradient(self) -> TracedFunction:
        """The gradients of all inputs that have one, given the values that `keeping` computes for it."""
        return self._gradient_given_values()  # type: ignore[no-any-return]

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

    def depends(self, many: Sequence[bool]) -> list[bool]:
        """Which outputs depend on the inputs that are marked."""
        marked = {node for node, m in zip(self.graph.inputs, many) if m}
        for node in self.graph.nodes:
            if any(i in marked for i in node.inputs if isinstance(i, Node)):
                marked.add(node)
        return [o in marked for o in self.graph.outputs]

def _silent(node: Node, inputs: tuple[Any, ...]) -> Node:
    attrs = {key: held.silent if isinstance(held, TracedFunction) else held for key, held in node.attrs.items()}
    return reapplied(node, inputs, attrs)
