"""The values of a graph's nodes, computed when they are read.

A program hides most of its values, or never stores them.  Here the same graph runs node by node, with the kernels of
eager mode, on the same inputs and with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.clock import tick, written_since
from ...core.mode import switch
from ...core.node import Node
from ...core.tensor import Tensor, as_tensor, wrap
from ...devices.effects import held_back
from ...support.errors import ConversionError, Gone, ShapeError
from ...support.source import show
from ..nodes.graph import Graph, Starts
from ..nodes.interpret import run_nodes

KEPT = 1 << 28  # bytes of values that are kept; others are computed again at each read


class Values(Mapping[Any, Any]):
    """The values of a graph's nodes, by node or by its name in the printed graph.

    A read computes the value and everything it depends on.  Random numbers are those that the next run would draw, and
    nothing is printed again.  A value is a copy, as a tensor; for several results, a tuple of tensors.

    >>> values = mg.trace(lambda x: mg.exp(x * 2).sum(), mg.zeros(2)).values()
    >>> values["exp_1"].tolist(), list(values.named())
    ([1.0, 1.0], ['tensor_1', 'multiply_1', 'exp_1', 'sum_1'])
    """

    def __init__(self, graph: Graph, arrays: Sequence[Any], starts: Starts) -> None:
        self.graph = graph
        self._names = graph.names()
        self._nodes = {name: node for node, name in self._names.items()}
        self._inputs = list(zip(graph.inputs, arrays))
        self._known: dict[Node, Any] = dict(self._inputs)
        self._starts, self._kept = starts, 0
        self._since = tick()

    def __getitem__(self, which: Any) -> Any:
        node = self._nodes.get(which, which) if isinstance(which, str) else which
        if node not in self._names:
            raise KeyError(f"{which!r} is not a node of this graph, which has {', '.join(self._nodes)}")
        return _as_tensors(self.array(node), node)

    def array(self, node: Node) -> Any:
        """The value of a node as an array, which must not be changed."""
        if node.op is None or node not in self._known:
            self._check_inputs()
        return self._known[node] if node in self._known else self._computed(node)

    def __iter__(self) -> Iterator[Node]:
        return iter([node for node in self._names if node.op is None or node.op.effect in (None, "collective")])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def named(self) -> dict[str, Any]:
        """All values, by name, in the order of the graph."""
        return {self._names[node]: self[node] for node in self}

    def __repr__(self) -> str:
        return f"<values of {self.graph!r}>"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value!r}" for name, value in self.named().items())

    def _check_inputs(self) -> None:
        for node, array in self._inputs:
            changed = written_since(array, self._since)
            if changed is not None:
                raise Gone(f"{self._names[node]} has changed since, at {show(changed)}")

    def _computed(self, wanted: Node) -> Any:
        """Run the nodes that lead to a node, and keep values while there is room."""

        def keep(node: Node, given: list[Any], value: Any) -> None:
            size = 0 if isinstance(value, tuple) else value.nbytes
            if self._kept + size <= KEPT:
                self._known[node] = value
                self._kept += size

        nodes = Graph(list(self._known), [wanted]).nodes
        with switch(interpreter=None, grad=False), held_back():
            return run_nodes(nodes, dict(self._known), self._starts, {wanted}, keep)[wanted]


def _as_tensors(value: Any, node: Node) -> Any:
    if isinstance(value, tuple):
        return tuple([wrap(part.copy(), node.device) for part in value])
    return wrap(value.copy(), node.device)


def values(graph: Graph, *inputs: Any) -> Values:
    """The values of a graph's nodes, each computed when it is read, by node or by its printed name.

    `inputs` are tensors for each of `graph.inputs`; by default, the tensors that the graph was traced with.

    >>> graph = mg.trace(lambda x: (x * 2).sum(), mg.ones(2))
    >>> graph.values()["multiply_1"].tolist(), graph.values(mg.zeros(2))[graph.outputs[0]].item()
    ([2.0, 2.0], 0.0)
    """
    if not inputs:
        return Values(graph, [_traced_with(node) for node in graph.inputs], starts_of(graph))
    if len(inputs) != len(graph.inputs):
        raise ConversionError(
            f"values: the graph has {len(graph.inputs)} inputs, and {len(inputs)} are given",
            expect=f"one for each of graph.inputs: {', '.join(f'{n.dtype} {n.shape}' for n in graph.inputs)}",
            hint="f.values(...) of a jitted function takes its arguments, and finds the other inputs",
        )
    arrays = [_fitting(node, as_tensor(given, node.device)) for node, given in zip(graph.inputs, inputs)]
    return Values(graph, arrays, starts_of(graph))


def _fitting(node: Node, given: Tensor) -> Any:
    if (given.shape, given.dtype, given.device) != (node.shape, node.dtype, node.device):
        raise ShapeError(
            f"values: an input of the graph is {node.dtype} {node.shape} on {node.device}",
            actual=f"{given.dtype} {given.shape} on {given.device}",
        )
    return given._data


def _traced_with(node: Any) -> Any:
    """The value of an input when the graph was traced."""
    kind = getattr(node, "kind", None)
    if kind in ("constant", "array"):
        return node.array()
    if kind != "tensor" or node.held is None:
        raise Gone(f"the value of the input {node.name} {node.shape} is not known: pass one for each of graph.inputs")
    changed = written_since(node.held._data, node.serial)
    if changed is not None:
        raise Gone(f"an input {node.shape} has changed since it was recorded, at {show(changed)}")
    return node.held._data


def starts_of(graph: Graph) -> Starts:
    """Where the generators of a graph would begin in the next run.  They are not advanced."""
    drawn = [node.attrs["key"] for node in graph.nodes if "key" in node.attrs]
    drawn += [draw[1] for node in graph.nodes for draw in node.attrs.get("draws", ())]
    states = {generator: generator.get_state() for generator in drawn if hasattr(generator, "get_state")}
    return {generator: (state["key"], state["block"]) for generator, state in states.items()}


def became(graph: Graph, first: Graph) -> dict[Node, Node]:
    """What became of the inputs and nodes of a graph that this one was rebuilt from.

    A node that was removed is not in it; nodes that became one node all are.  Where a pass computes the value in
    another layout, with a view of it in the old one, it is the node below that view.

    >>> program = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4))
    >>> [(old.name, new.name) for old, new in program.final.became(program.graph).items() if new.op is not None]
    [('tanh', 'tanh'), ('tanh', 'tanh'), ('add', 'add')]
    """
    steps: list[dict[Node, Node]] = []
    last = graph
    while last is not first and last.rebuilt_from is not None:
        last, new = last.rebuilt_from
        steps += [new] if new else []
    here, found = {node: node for node in (*graph.inputs, *graph.nodes)}, {}
    for old in (*first.inputs, *first.nodes):
        now = old
        for new in (*reversed(steps), here):
            while now not in new and now.op is not None and now.op.kind == "view":
                now = now.inputs[0]
            now = new.get(now, now)
        if now in here:
            found[old] = now
    return found
