"""Bodies: the tracer that makes a function of a branch, or of the body or condition of a loop.

A branch may use parameters, and traced tensors from around it, that are not its arguments: they become inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from weakref import ref

from ...autodiff.batching import Batched
from ...autodiff.forward import Dual
from ...core.mode import current_mode, switch
from ...core.node import Leaf, Node
from ...core.primitive import P
from ...core.state import behind
from ...core.tensor import AbstractData, Tensor, wrap
from ...support.errors import MutationError, TraceError
from ..functions.derivatives import OnTensors, TracedFunction
from ..nodes.graph import Source
from ..tracing.tracer import Captured, Pending, Tracer


class Body(Tracer):
    """Traces a branch or a body, `what`.  `outer` is the mode around it; a `closed` one uses only its arguments."""

    def __init__(self, what: str, closed: bool = False) -> None:
        super().__init__()
        self.what, self.outer, self.closed = what, current_mode(), closed
        self.around: set[int] = set()  # ids of the interpreters below it
        interpreter: Any = self.outer.interpreter
        while interpreter is not None:
            self.around.add(id(interpreter))
            outer = getattr(interpreter, "outer", None)
            interpreter = None if outer is None else outer.interpreter
        self.arguments: list[Tensor] = []

    def argument(self, name: str, like: Any) -> Tensor:
        """Add an input of this shape and dtype.  The function may change it in place: it owns the memory."""
        given = wrap(self.source(name, None, like.shape, like.dtype, like.device), like.device)
        self.arguments.append(self._leaf(given))
        if not given.tracked:
            return given
        plan = P.reshape.plan(1, 1)
        own = wrap(given._data, given.device)
        attrs, device = {"shape": given.shape}, given.device
        own.node = Node(P.reshape, (given.node,), attrs, plan, None, given._data, device)
        own.node.mode = self._mode()
        own.tracked = True
        own.node.value = ref(given._data.node)
        return own

    def _leaf(self, stand_in: Tensor) -> Tensor:
        """The tensor, which requires a gradient if it can have one."""
        if stand_in.dtype.kind == "f":
            stand_in.node, stand_in.tracked = Leaf(stand_in), True
        return stand_in

    # tensors from around --------------------------------------------------------------------------------------------

    def lift(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        return tensor if data.__class__ is Pending and data.trace is self else self.stand_in(tensor)

    def stand_in(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        if isinstance(data, AbstractData):
            owner = data.trace if data.__class__ is Pending else getattr(data, "owner", None)
            if owner is self or (id(owner) not in self.around and data.__class__ is not Pending):
                return tensor  # of this trace, or of an interpreter on top of it
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
        """Make a constant outside, once, and not in each iteration."""
        if self.ended or self.closed:
            return super().admitted(tensor, None)
        with switch(self.outer):
            outside = self.outer.state.admitted(tensor, source)
        return self.stand_in(outside)

    def evaluated(self, pending: Pending) -> Any:
        node = pending.node
        known = self._known(node.held) if isinstance(node, Source) and node.kind == "tensor" else None
        return super().evaluated(pending) if known is None else known

    def _known(self, outside: Tensor | None) -> Any:
        """The value of a constant from around; None for any other tensor, whose value may change."""
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
                f"{self.what} changes a tensor of shape {base.shape} in place that was made outside it",
                expect="a branch or body that is recorded has no results but those that it returns",
                hint="return the new value (or carry it along), and assign it outside; x.copy() can be changed freely",
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
            raise TraceError(f"{self.what} sets the .grad of a tensor that was made outside it",
                             hint="mg.grad computes gradients without setting any: return them")
        tensor._grad = gradient

    def function(self, captured: Sequence[Tensor], outputs: Sequence[Tensor]) -> TracedFunction:
        """The function from these tensors from around and the arguments to the outputs.  The trace ends."""
        around = [self.stand_in(t) for t in captured]
        function = TracedFunction(self, [*around, *self.arguments], outputs, self.effects)
        self.ended = True
        for stand_in in around:
            stand_in._data.node.held = None  # nothing outside is kept alive
        self.captured.clear()
        self.standing.clear()
        return function


def traced(body: Body, function: OnTensors, arguments: Sequence[Tensor]) -> list[Tensor]:
    """The results of a function, traced by `body`."""
    around = body.outer.interpreter
    interpreter = body if around is None else around.on(body)
    with switch(interpreter=interpreter, state=body, control=body, grad=True):
        return [body.lift(t) for t in function(list(arguments))]


def function_of(what: str, function: OnTensors, likes: Sequence[Any]) -> TracedFunction:
    """Trace a function that uses nothing but its arguments, of these shapes and dtypes."""
    body = Body(what, closed=True)
    outputs = traced(body, function, [body.argument("argument", like) for like in likes])
    return body.function([], outputs)


def is_zero(tensor: Tensor) -> bool:
    """Whether the trace shows that all elements of a tensor are zero."""
    data = tensor._data
    while isinstance(data, (Batched, Dual)):
        if isinstance(data, Dual) and data.tangent is not None:
            return False
        data = (data.value if isinstance(data, Batched) else data.primal)._data
    return data.__class__ is Pending and data.node.op is P.full and data.node.attrs["value"] == 0


Draw = tuple[Any, Any, int, int]  # generator, key, the first block, and how many blocks further in each next round


def draws_of(drawn: Mapping[Any, int], rounds: int = 1) -> tuple[Draw, ...]:
    """The random numbers for `rounds` runs, taken now; `drawn` has the number of blocks that each run draws."""
    return tuple([(g, *g.take_blocks(count * rounds), count) for g, count in drawn.items()])
