"""`by_example`: trace a function by running it once with examples, as `torch.jit.trace` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.compile.nodes.graph import Graph
from minigrad.compile.nodes.interpret import run_nodes
from minigrad.core.emit import Eager
from minigrad.core.mode import switch
from minigrad.core.node import Node, OuterResult, is_made
from minigrad.core.primitive import Attrs, Primitive
from minigrad.core.state import State
from minigrad.core.tensor import Tensor, wrap
from minigrad.support.errors import ConversionError
from minigrad.support.words import shown


class Given(OuterResult):
    """An example or a constant: a write to it is an operation, whose result it is from then on."""

    name = "tensor"  # type: ignore[assignment]


class Recorder(Eager, State):
    """Eager mode that keeps the tensors that were not computed: examples, weights, constants."""

    def __init__(self) -> None:
        self.sources: dict[Node, Tensor] = {}

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Attrs) -> Any:
        out = super().manifest(op, inputs, attrs)
        node = (out[0] if isinstance(out, tuple) else out).node
        self.sources |= {n: x for n, x in zip(node.inputs, inputs) if isinstance(x, Tensor) and n.op is None}
        return out

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        tensor.node = Given(tensor)
        return tensor

    def before_write(self, tensor: Tensor) -> None:
        base = tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base
        if not is_made(base.node):
            raise ConversionError("by_example: the function changes a tensor in place that it was not given",
                                  hint="give it as an example, or return its new value")


class ByExample:
    """A function that repeats the operations of one run.  Its `graph` shows them."""

    def __init__(self, function: Callable[..., Any], examples: tuple[Tensor, ...]) -> None:
        self.name = getattr(function, "__name__", "a function")
        recorder = Recorder()
        given = [recorder.admitted(wrap(example._data.copy(), example.device), None) for example in examples]
        nodes = [each.node for each in given]
        with switch(interpreter=recorder, record_all=True, grad=False):
            result = function(*given)
        if not isinstance(result, Tensor):
            raise ConversionError(f"by_example: {self.name} returns {shown(result)}", expect="one tensor")
        self.others = {node: tensor for node, tensor in recorder.sources.items() if node not in nodes}
        self.graph = Graph([*nodes, *self.others], [result.node])

    def __call__(self, *tensors: Tensor) -> Tensor:
        """The result of the same operations for other tensors of the same shapes."""
        (out,) = self.graph.outputs
        return wrap(self.values(*tensors)[out], out.device)

    def values(self, *tensors: Tensor) -> dict[Node, Any]:
        """The arrays that all nodes of the graph compute for other tensors."""
        given = dict(zip(self.graph.inputs, [tensor._data for tensor in (*tensors, *self.others.values())]))
        with switch(interpreter=None, grad=False):
            return run_nodes(self.graph.nodes, given, {}, {*given, *self.graph.nodes})

    def __repr__(self) -> str:
        return f"<{self.name} by example: {len(self.graph)} operations>"


def by_example(function: Callable[..., Any], *examples: Tensor) -> ByExample:
    """Run a function once with examples, record its operations, and repeat them in each call.

    Nothing else of the function is kept: no branch, no loop, no name that it reads.  A write to an example is one of
    its operations, and changes no tensor of yours.

    >>> def sign(x):
    ...     return x if x.sum() > 0 else -x
    >>> frozen = by_example(sign, mg.asarray(-1.0))
    >>> frozen, frozen(mg.asarray(-2.0)).item(), frozen(mg.asarray(3.0)).item()
    (<sign by example: 1 operations>, 2.0, -3.0)
    """
    return ByExample(function, examples)
