"""A student's function for every operation, for as long as a `with` block lasts.

`emitter` lets the function compute and record each operation, and `dispatcher` lets it choose the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from minigrad.core.emit import EAGER, Eager, constant, recorded, several
from minigrad.core.mode import current_mode, switch
from minigrad.core.node import Node
from minigrad.core.primitive import Attrs, Primitive
from minigrad.core.tensor import Tensor, wrap
from minigrad.devices.registry import DEVICES
from minigrad.support.table import counted

from .feedback import Misused, written
from .swapping import Swapped


class Operation:
    """An operation as a student's `emit` gets it: its name, and `compute(values)`, which runs its kernel."""

    def __init__(self, op: Primitive, inputs: int, attrs: Attrs, device: Any) -> None:
        self.name, self._inputs, self._rest = op.name, inputs, (op, attrs, device)

    def compute(self, values: Sequence[Any]) -> Any:
        """The value of the result, from the values of the inputs."""
        op, attrs, device = self._rest
        for value in values:
            if isinstance(value, Tensor | Node):
                kind = "tensor" if isinstance(value, Tensor) else "node"
                raise Misused(self.name, f"compute got a {kind}, not a value", "the value of a tensor x is x.data")
        if len(values) != self._inputs:
            got = f"compute got {counted(len(values), 'value')}, and {self.name} has {counted(self._inputs, 'input')}"
            raise Misused(self.name, got, "one value for each input; a number is its own value")
        return EAGER.compute(op, list(values), attrs, device)

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Emitting(Eager):
    """Eager mode in which a student's `emit` computes and records each operation that is recorded."""

    def __init__(self, function: Callable[[Operation, list[Any]], Any], swapped: Swapped) -> None:
        self.function, self.swapped = function, swapped

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: Attrs, device: Any
    ) -> Any:
        mode = current_mode()
        if not mode.record_all and not (mask and mode.grad):
            return super().manifest_values(op, inputs, values, mask, attrs, device)
        self.swapped.calls += 1
        for x in inputs:
            if isinstance(x, Tensor) and x.node is None:
                constant(x)
        data, edges = self._emitted(Operation(op, len(inputs), attrs, device), list(inputs))
        if isinstance(data, tuple):
            return several(op, edges, values, mask, attrs, data, device)
        out = wrap(device.asarray(data), device)
        out.node = recorded(op, edges, values, mask, attrs, out._data, device)
        out.tracked = bool(out.node.plan.rules)
        return out

    def _emitted(self, operation: Operation, inputs: list[Any]) -> tuple[Any, list[Any]]:
        """The value and the edges that the student's function returns."""
        found = self.function(operation, inputs)
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise Misused(self.swapped.name, f"returned {written(found)} for {operation.name}", "return value, edges")
        data, edges = found
        strange = [each for each in edges if not isinstance(each, Node | int | float)]
        if strange or len(edges) != len(inputs):
            problem = f"{operation.name} has {counted(len(inputs), 'input')}, and its node got {written(list(edges))}"
            raise Misused(self.swapped.name, problem, "one edge for each input: the node of a tensor, or a number")
        for i, (x, edge) in enumerate(zip(inputs, edges)):
            if isinstance(x, Tensor) != isinstance(edge, Node):
                problem = f"{operation.name}: input {i} is {written(x)}, and its edge is {written(edge)}"
                raise Misused(self.swapped.name, problem, "the edges are in the order of the inputs")
        return data, list(edges)


@contextmanager
def emitter(function: Callable[[Operation, list[Any]], Any]) -> Iterator[Swapped]:
    """Let `function(op, inputs)` compute and record every operation: it returns the value and the edges of the node.

    Inputs are tensors and numbers.  `op.compute(values)` runs the kernel; the edges are nodes and numbers.

    >>> def emit(op, inputs):
    ...     return op.compute([x.data for x in inputs]), [x.node for x in inputs]
    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> with emitter(emit) as mine:
    ...     y = x * x
    >>> y.backward()
    >>> y.item(), x.grad.item(), mine
    (9.0, 6.0, <emit in the engine, called once>)
    """
    swapped = Swapped(function.__name__)
    with switch(interpreter=Emitting(function, swapped)):
        yield swapped


@contextmanager
def dispatcher(function: Callable[[str, list[Any], Mapping[str, Any]], Any]) -> Iterator[Swapped]:
    """Let `function(op, inputs, table)` choose the kernel of each operation: `table["cpu"]["add"]`, for example.

    >>> def always_the_first(op, inputs, table):
    ...     return table[inputs[0].device][op]
    >>> with dispatcher(always_the_first) as mine:
    ...     mg.tanh(mg.zeros(2)).tolist()
    [0.0, 0.0]
    >>> mine
    <always_the_first in the engine, called once>
    """
    swapped = Swapped(function.__name__)
    with switch(interpreter=_Dispatching(function, swapped)):
        yield swapped


class _Dispatching(Eager):
    """Eager mode, in which a student's function chooses the kernels."""

    def __init__(self, function: Callable[..., Any], swapped: Swapped) -> None:
        self.function, self.swapped = function, swapped
        self.chosen: list[Any] = []  # for each operation that is being applied: a cast inside of one is another

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Any) -> Any:
        kernel = None
        if "device" not in attrs and any(isinstance(x, Tensor) for x in inputs):
            self.swapped.calls += 1
            kernel = self.function(op.name, list(inputs), {name: each.kernels for name, each in DEVICES.items()})
            if not callable(kernel):
                raise Misused(self.swapped.name, f"returned {written(kernel)} for {op.name}", "return a kernel")
        self.chosen.append(kernel)
        try:
            return super().manifest(op, inputs, attrs)
        finally:
            self.chosen.pop()

    def compute(self, op: Primitive, values: list[Any], attrs: Any, device: Any) -> Any:
        if self.chosen[-1] is not None:
            rest = {name: getattr(device, name) for name in ("ndarray", "elementwise", "asarray")}
            device = SimpleNamespace(kernels={op.name: self.chosen[-1]}, **rest)
        return super().compute(op, values, attrs, device)
