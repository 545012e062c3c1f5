"""`by_example`: trace a function by running it once with examples, as `torch.jit.trace` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compile.nodes.graph import Graph
from ..compile.nodes.interpret import run_nodes
from ..compile.nodes.source import Source
from ..core.emit import Eager
from ..core.mode import current_mode, switch
from ..core.node import Node
from ..core.primitive import Attrs, Primitive
from ..core.tensor import Tensor, wrap
from ..support.errors import ConversionError
from ..support.words import shown


class Recorder(Eager):
    """Eager mode that keeps the tensors that were not computed: examples, weights, constants."""

    def __init__(self) -> None:
        self.sources: dict[Node, Tensor] = {}

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Attrs) -> Any:
        out = super().manifest(op, inputs, attrs)
        node = (out[0] if isinstance(out, tuple) else out).node
        self.sources |= {n: x for n, x in zip(node.inputs, inputs) if isinstance(x, Tensor) and n.op is None}
        return out


class ByExample:
    """A function that repeats the operations of one run.  Its `graph` shows them."""

    def __init__(self, function: Callable[..., Any], examples: tuple[Tensor, ...]) -> None:
        self.name = getattr(function, "__name__", "a function")
        given, recorder = [_input(example) for example in examples], Recorder()
        with switch(interpreter=recorder, keep=True, grad=False):
            result = function(*given)
        if not isinstance(result, Tensor):
            raise ConversionError(f"by_example: {self.name} returns {shown(result)}", expect="one tensor")
        nodes = [each.node for each in given]
        self.others = {node: tensor for node, tensor in recorder.sources.items() if node not in nodes}
        self.graph = Graph([*nodes, *self.others], [result.node])

    def __call__(self, *tensors: Tensor) -> Tensor:
        """The result of the same operations for other tensors of the same shapes."""
        values = dict(zip(self.graph.inputs, [tensor._data for tensor in (*tensors, *self.others.values())]))
        (out,) = self.graph.outputs
        with switch(interpreter=None, grad=False):
            return wrap(run_nodes(self.graph.nodes, values, {}, [out])[out], out.device)

    def __repr__(self) -> str:
        return f"<{self.name} by example: {len(self.graph)} operations>"


def _input(example: Tensor) -> Tensor:
    """A copy of an example, whose node is an input of the graph."""
    copy = wrap(example._data.copy(), example.device)
    copy.node = Source("tensor", copy, copy.shape, copy.dtype, copy.device, current_mode())
    return copy


def by_example(function: Callable[..., Any], *examples: Tensor) -> ByExample:
    """Run a function once with examples, record its operations, and repeat them in each call.

    Nothing else of the function is kept: no branch, no loop, no name that it reads.

    >>> def sign(x):
    ...     return x if x.sum() > 0 else -x
    >>> frozen = by_example(sign, mg.asarray(-1.0))
    >>> frozen, frozen(mg.asarray(-2.0)).item(), frozen(mg.asarray(3.0)).item()
    (<sign by example: 1 operations>, 2.0, -3.0)
    """
    return ByExample(function, examples)
