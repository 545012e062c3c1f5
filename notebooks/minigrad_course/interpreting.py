"""A student's function for every operation, for as long as a `with` block lasts.

`emitter` lets the function compute and record each operation, and `dispatcher` lets it choose the kernels.  One block
may be inside the other: then the function of `emitter` records, and its `op.compute` runs the kernel that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
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

Student = tuple[Callable[..., Any], Swapped]  # a function, and the count of its calls


class Operation:
    """An operation as a student's `emit` gets it: its name, and `compute(values)`, which runs its kernel."""

    def __init__(self, op: Primitive, inputs: int, attrs: Attrs, device: Any, below: Eager = EAGER) -> None:
        self.name, self._inputs, self._rest = op.name, inputs, (below, op, attrs, device)

    def compute(self, values: Sequence[Any]) -> Any:
        """The value of the result, from the values of the inputs."""
        below, op, attrs, device = self._rest
        for value in values:
            if isinstance(value, Tensor | Node):
                kind = "tensor" if isinstance(value, Tensor) else "node"
                raise Misused(self.name, f"compute got a {kind}, not a value", "the value of a tensor x is x.data")
        if len(values) != self._inputs:
            got = f"compute got {counted(len(values), 'value')}, and {self.name} has {counted(self._inputs, 'input')}"
            raise Misused(self.name, got, "one value for each input; a number is its own value")
        return below.compute(op, list(values), attrs, device)

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Students(Eager):
    """Eager mode in which a student's functions record operations that are recorded, or choose kernels, or both."""

    emit: Student | None = None
    dispatch: Student | None = None

    def __init__(self) -> None:
        self.chosen: list[Any] = []  # for each operation that is being applied: a cast inside of one is another

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Any) -> Any:
        self.chosen.append(None if self.dispatch is None else self._kernel(self.dispatch, op, inputs, attrs))
        try:
            return super().manifest(op, inputs, attrs)
        finally:
            self.chosen.pop()

    def _kernel(self, dispatch: Student, op: Primitive, inputs: Sequence[Any], attrs: Any) -> Any:
        """The kernel that the student's function chooses for an operation on tensors."""
        if "device" in attrs or not any(isinstance(x, Tensor) for x in inputs):
            return None
        function, swapped = dispatch
        swapped.calls += 1
        kernel = function(op.name, list(inputs), {name: each.kernels for name, each in DEVICES.items()})
        if not callable(kernel):
            raise Misused(swapped.name, f"returned {written(kernel)} for {op.name}", "return a kernel")
        return kernel

    def compute(self, op: Primitive, values: list[Any], attrs: Any, device: Any) -> Any:
        if self.chosen[-1] is not None:
            rest = {name: getattr(device, name) for name in ("ndarray", "elementwise", "asarray")}
            device = SimpleNamespace(kernels={op.name: self.chosen[-1]}, **rest)
        return super().compute(op, values, attrs, device)

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: Attrs, device: Any
    ) -> Any:
        mode = current_mode()
        if self.emit is None or not (mode.record_all or (mask and mode.grad)):
            return super().manifest_values(op, inputs, values, mask, attrs, device)
        function, swapped = self.emit
        swapped.calls += 1
        for x in inputs:
            if isinstance(x, Tensor) and x.node is None:
                constant(x)
        found = function(Operation(op, len(inputs), attrs, device, self), list(inputs))
        data, edges = _recording(found, op.name, list(inputs), swapped.name)
        if isinstance(data, tuple):
            return several(op, edges, values, mask, attrs, data, device)
        out = wrap(device.asarray(data), device)
        out.node = recorded(op, edges, values, mask, attrs, out._data, device)
        out.tracked = bool(out.node.plan.rules)
        return out


def _recording(found: Any, op: str, inputs: list[Any], name: str) -> tuple[Any, list[Any]]:
    """The value and the edges that a student's `emit` returned for an operation."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Misused(name, f"returned {written(found)} for {op}", "return value, edges")
    data, edges = found
    strange = [each for each in edges if not isinstance(each, Node | int | float)]
    if strange or len(edges) != len(inputs):
        problem = f"{op} has {counted(len(inputs), 'input')}, and its node got {written(list(edges))}"
        raise Misused(name, problem, "one edge for each input: the node of a tensor, or a number")
    for i, (x, edge) in enumerate(zip(inputs, edges)):
        if isinstance(x, Tensor) != isinstance(edge, Node):
            problem = f"{op}: input {i} is {written(x)}, and its edge is {written(edge)}"
            raise Misused(name, problem, "the edges are in the order of the inputs")
    return data, list(edges)


@contextmanager
def _with(part: str, function: Callable[..., Any]) -> Iterator[Swapped]:
    """Interpret by a student's function too, beside that of a block around this one."""
    around, swapped = current_mode().interpreter, Swapped(function.__name__)
    both = copy(around) if isinstance(around, Students) else Students()
    setattr(both, part, (function, swapped))
    with switch(interpreter=both):
        yield swapped


def emitter(function: Callable[[Operation, list[Any]], Any]) -> AbstractContextManager[Swapped]:
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
    return _with("emit", function)


def dispatcher(function: Callable[[str, list[Any], Mapping[str, Any]], Any]) -> AbstractContextManager[Swapped]:
    """Let `function(op, inputs, table)` choose the kernel of each operation: `table["cpu"]["add"]`, for example.

    >>> def always_the_first(op, inputs, table):
    ...     return table[inputs[0].device][op]
    >>> with dispatcher(always_the_first) as mine:
    ...     mg.tanh(mg.zeros(2)).tolist()
    [0.0, 0.0]
    >>> mine
    <always_the_first in the engine, called once>
    """
    return _with("dispatch", function)
