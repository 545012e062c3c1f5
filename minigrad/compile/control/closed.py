"""Closed functions: a branch or a body as a graph of its own, with its gradient, which nodes hold as an attribute.

A branch is traced like a jitted function, by a tracer of its own.  What it uses without being given, parameters and
traced tensors from around it, becomes an input.  From then on it is a thing to compute with: it runs as a program, is
written out node by node into another trace, and has a gradient, a batched form and a forward-mode form, which are
closed functions again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, ClassVar

from ...autodiff.batching import Batched, vmap
from ...autodiff.custom import call_with_gradient
from ...autodiff.forward import Dual
from ...autodiff.reverse import gradients
from ...core.mode import Mode, current_mode, switch
from ...core.node import Leaf, Node
from ...core.primitive import P
from ...core.state import behind
from ...core.tensor import StandIn, Tensor, wrap
from ...ops.creation import zeros
from ...support.errors import MutationError, TraceError
from ..functions.function import Traced, walked_back
from ..nodes.graph import Graph, node_like, remade
from ..nodes.interpret import Starts, written_out
from ..nodes.source import Source
from ..tracing.tracer import Captured, Pending, Tracer

Function = Callable[[list[Tensor]], Sequence[Tensor]]


class Body(Tracer):
    """Traces a branch or a body.  `what` it is, in words; `outer` is the mode around it."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.outer = what, current_mode()
        self.around: set[int] = set()  # ids of the interpreters that it works on top of
        interpreter: Any = self.outer.interpreter
        while interpreter is not None:
            self.around.add(id(interpreter))
            outer = getattr(interpreter, "outer", None)
            interpreter = None if outer is None else outer.interpreter
        self.arguments: list[Tensor] = []

    def argument(self, name: str, like: Any) -> Tensor:
        """One more thing that the function is given, and may change in place: it is its own."""
        given = wrap(self.source(name, None, like.shape, like.dtype, like.device), like.device)
        self.arguments.append(self._leaf(given))
        if not given.tracked:
            return given
        plan = P.reshape.plan(1, 1)
        own = wrap(given._data, given.device)
        attrs, device = {"shape": given.shape}, given.device
        own.node = Node(P.reshape, (given.node,), attrs, plan, None, given._data, device)
        own.node.mode = self._mode()
        own.tracked = 1
        self.values[own.node] = given._data.node
        return own

    def _leaf(self, stand_in: Tensor) -> Tensor:
        """A tensor to which gradients flow, whoever may ask for them, if it can have one."""
        if stand_in.dtype.kind == "f":
            stand_in.node, stand_in.tracked = Leaf(stand_in), 1
        return stand_in

    # what is around it ----------------------------------------------------------------------------------------------

    def lift(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        return tensor if data.__class__ is Pending and data.trace is self else self.stand_in(tensor)

    def stand_in(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        if isinstance(data, StandIn):
            owner = data.trace if data.__class__ is Pending else getattr(data, "owner", None)
            if owner is self or (id(owner) not in self.around and data.__class__ is not Pending):
                return tensor  # ours, or that of an interpreter that works on top of this one
        known = self.captured.get(id(tensor))
        return (known or self.capture(tensor)).stand_in

    def capture(self, tensor: Tensor) -> Captured:
        if self.ended:
            raise TraceError(
                f"the gradient of {self.what} uses a tensor from around it, of shape {tensor.shape}",
                hint="let the function keep the tensor for its gradient",
            )
        source = self.source("tensor", tensor, tensor.shape, tensor.dtype, tensor.device)
        stand_in = self._leaf(wrap(source, tensor.device))
        known = self.captured[id(tensor)] = self.standing[id(stand_in)] = Captured(tensor, stand_in)
        return known

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """A constant is made outside, once, and not in each round."""
        if self.ended:
            return super().admitted(tensor, None)
        with switch(self.outer):
            outside = self.outer.state.admitted(tensor, source)
        return self.stand_in(outside)

    def evaluated(self, pending: Pending) -> Any:
        node = pending.node
        known = self._known(node.held) if isinstance(node, Source) and node.kind == "tensor" else None
        return super().evaluated(pending) if known is None else known

    def _known(self, outside: Tensor | None) -> Any:
        """The value of a constant from around; of nothing else, because that may be another one the next time."""
        data = None if outside is None else outside._data
        if data.__class__ is not Pending or not isinstance(data.node, Source):
            return None
        if data.node.kind not in ("constant", "array") and not isinstance(data.trace, Body):
            return None
        value = data.trace.evaluated(data)
        return None if value is data else value

    def before_write(self, tensor: Tensor) -> None:
        base = tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base
        if id(behind(base)) in self.standing:
            raise MutationError(
                f"{self.what} changes a tensor of shape {base.shape} in place that was made outside of it",
                expect="where operations are only recorded, nothing but what is returned comes out of it",
                hint="return the new value (or carry it along), and assign it outside; x.copy() can be changed at will",
            )

    def hunting(self, hunter: Any) -> Any:
        self.hunter = hunter
        return self.outer.state.hunting(hunter) or nullcontext()

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        known = self.standing.get(id(tensor))
        outside = tensor if known is None else known.tensor
        if outside._data.__class__ is Pending and outside._data.trace is self:
            return outside._grad
        with switch(self.outer):
            found = outside.grad
        return None if found is None else self.stand_in(found)

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        if id(tensor) in self.standing or id(tensor) in self.captured or tensor._data.__class__ is not Pending:
            raise TraceError(f"{self.what} sets the .grad of a tensor that was made outside of it",
                             hint="mg.grad computes gradients without setting any: return them")
        tensor._grad = gradient

    def closed(self, captured: Sequence[Tensor], outputs: Sequence[Tensor]) -> Closed:
        """What has been traced, from these tensors from around and the arguments to the outputs."""
        around = [self.stand_in(t) for t in captured]
        inputs = [*[self.captured[id(t)].stand_in for t in captured], *self.arguments]
        function = Closed(self, inputs, [t._data.node for t in inputs], outputs, self.effects)
        self.ended = True
        for stand_in in around:
            stand_in._data.node.held = None  # nothing outside is kept alive
        self.captured.clear()
        self.standing.clear()
        return function


def traced(body: Body, function: Function, arguments: Sequence[Tensor]) -> list[Tensor]:
    """What a function returns, run by the tracer `body`."""
    around = body.outer.interpreter
    interpreter = body if around is None else around.on(body)
    with switch(interpreter=interpreter, state=body, control=body, grad=True):
        return [body.lift(t) for t in function(list(arguments))]


def closed(what: str, function: Function, likes: Sequence[Any]) -> Closed:
    """A function that uses nothing but its arguments, of these shapes and dtypes, as a closed function."""
    body = Body(what)
    given = [body.argument("argument", like) for like in likes]
    outputs = traced(body, function, given)
    return body.closed([], outputs)


class Closed(Traced):
    """A function from inputs to outputs, as it was traced."""

    rules: ClassVar[Any]  # the gradients and batches of branches and loops: `compile.control` sets this

    def __init__(
        self, tracer: Body, inputs: Sequence[Tensor], own: Sequence[Node], outputs: Sequence[Tensor],
        effects: Sequence[Node] = (), again: frozenset[Node] = frozenset(),
    ) -> None:
        super().__init__(tracer, inputs, own, (), outputs, effects)
        self.again = again  # what it computes for the second time: without its effects
        self.drawn = dict(tracer.drawn)  # how many blocks of random numbers a run takes, of each generator
        self.known: dict[Any, Closed] = {}
        self.unused: set[int] = set()  # of a gradient, the inputs that nothing depends on
        self.pulled: tuple[Any, Any] = (None, None)  # the gradients that a walk is asking for, one after the other

    def __repr__(self) -> str:
        return f"<graph of {len(self.graph)} nodes>"

    def __call__(self, values: Sequence[Any], starts: Starts) -> list[Any]:
        """The raw outputs for raw inputs."""
        return self.program(values, starts)

    @property
    def results(self) -> list[tuple[tuple[int, ...], Any]]:
        """The shapes and dtypes of the outputs."""
        return [(o.shape, o.dtype) for o in self.outputs]

    @cached_property
    def _traced(self) -> Graph:
        return Graph(self.sources, [o._data.node for o in self.outputs], self.effects)

    @cached_property
    def graph(self) -> Graph:
        """From the inputs to the outputs; what was printed once is not printed when it is computed again."""
        whole = self._traced
        loud = {node for node in whole.nodes if node in self.again and _effects(node)}
        if not loud:
            return whole
        return whole.rebuilt(lambda node, inputs: (_silent if node in loud else remade)(node, inputs))

    @cached_property
    def silent(self) -> Closed:
        """The same, for the second time."""
        return Closed(self._body, self.inputs, self.own, self.outputs, (), frozenset(self._traced.nodes))

    def inlined(self, tensors: Sequence[Tensor], starts: Starts | None = None) -> tuple[Tensor, ...]:
        """Written out where this is called.  Its gradient is that of what was traced, with its custom rules."""
        floats, roots = floats_of(self.inputs), floats_of(self.outputs)

        def forward(*xs: Tensor) -> Any:
            return tuple(written_out(self.graph, xs, starts or {})), None

        def backward(xs: Sequence[Tensor], g: Any) -> tuple[Any, ...]:
            gradient = self.gradient_by(floats, roots)
            found = dict(zip(floats, gradient.inlined([*xs, *[g[i] for i in roots]], starts)))
            return tuple([found.get(i) for i in range(len(xs))])

        results: tuple[Tensor, ...] = call_with_gradient(tensors, forward, backward, keeps=False)
        return results

    def gradient_by(self, wanted: Sequence[int], roots: Sequence[int]) -> Closed:
        """From the inputs and the gradients of the outputs `roots` to the gradients of the inputs `wanted`.

        The walk back, traced.  It computes again what it needs of the values in between.
        """
        key = "gradient", tuple(wanted), tuple(roots)
        if key not in self.known:
            targets = [self.inputs[i] for i in wanted]
            given, found, effects = walked_back(self, roots, targets)
            with switch(Mode().but(interpreter=self.tracer)):
                outputs = [found[t.node] if t.node in found else zeros(t.shape, t.dtype, t.device) for t in targets]
            inputs = [*self.inputs, *given]
            own = [t._data.node for t in inputs]
            again = self.again | set(self._traced.nodes)
            found_by = self.known[key] = Closed(self._body, inputs, own, outputs, effects, again)
            found_by.unused = {i for i, t in zip(wanted, targets) if t.node not in found}
        return self.known[key]

    @property
    def _body(self) -> Body:
        assert isinstance(self.tracer, Body)
        return self.tracer

    @property
    def what(self) -> str:
        """What it is, in words."""
        return self._body.what

    def depends(self, many: Sequence[bool]) -> list[bool]:
        """Which outputs depend on the inputs that are marked."""
        marked = {node for node, m in zip(self.graph.inputs, many) if m}
        for node in self.graph.nodes:
            if any(i in marked for i in node.inputs if isinstance(i, Node)):
                marked.add(node)
        return [o in marked for o in self.graph.outputs]

    def batched(self, many: Sequence[bool], kept: Sequence[bool], starts: Starts | None = None) -> Function:
        """For tensors with one more dimension in front, where `many` says so; of the outputs, `kept` have one."""
        axes = tuple([0 if m else None for m in many])

        def function(tensors: list[Tensor]) -> list[Tensor]:
            results = vmap(lambda *xs: self.inlined(xs, starts), in_axes=axes)(*tensors)
            return [r if k else r[0] for r, k in zip(results, kept)]

        return function

    def pushed(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs, and how they change when the floats among the inputs move along their tangents.

        The gradient is linear in the gradients that it is given: its own gradient by these is the way forward.
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


def _effects(node: Node) -> bool:
    """Whether a branch or body that the node holds has effects."""
    return any(isinstance(held, Closed) and held.effects for held in node.attrs.values())


def _silent(node: Node, inputs: tuple[Any, ...]) -> Node:
    assert node.op is not None
    attrs = {key: held.silent if isinstance(held, Closed) else held for key, held in node.attrs.items()}
    return node_like(node.op, inputs, attrs, like=node)


def floats_of(tensors: Sequence[Any]) -> list[int]:
    """The numbers of those that can have a gradient."""
    return [i for i, t in enumerate(tensors) if t.dtype.kind == "f"]


def is_zero(tensor: Tensor) -> bool:
    """Whether a tensor is known to be nothing but zeros."""
    data = tensor._data
    while isinstance(data, (Batched, Dual)):
        if isinstance(data, Dual) and data.tangent is not None:
            return False
        data = (data.value if isinstance(data, Batched) else data.primal)._data
    return data.__class__ is Pending and data.node.op is P.full and data.node.attrs["value"] == 0


Draw = tuple[Any, Any, int, int]  # generator, key, the first block, and how many blocks further in each next round


def draws_of(drawn: Mapping[Any, int], rounds: int = 1) -> tuple[Draw, ...]:
    """The random numbers for so many runs that draw so many blocks each, taken now."""
    return tuple([(g, *g.take_blocks(count * rounds), count) for g, count in drawn.items()])
