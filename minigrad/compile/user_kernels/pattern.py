"""Patterns: traced functions, and the places of a graph that compute the same.

Shapes are not part of a pattern.  First it is traced with examples, and every place with the same operations in the
same order is a candidate.  Then it is traced again with the shapes and dtypes of the candidate, which must be equal in
everything: axes, numbers, shapes, dtypes.  A match therefore computes exactly what the function computes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.mode import Mode, switch
from ...core.node import Node
from ...core.tensor import Tensor, default_device, wrap
from ...support.errors import ConversionError, MinigradError
from ...support.words import shown
from ..jitted import trace
from ..nodes.graph import Graph
from ..rewriting.common import comparable
from ..rewriting.equation import Bound, Operation, Part, ways
from ..rewriting.passes import OURS, optimise

MOST_BINDINGS = 16  # tried at one node: a pattern of sums can match in many ways
Kind = tuple[tuple[int, ...], Any, Any]  # shape, dtype, device


class Pattern:
    """A function of tensors with one result; `examples` are tensors to trace it with, (4, 4) by default."""

    def __init__(self, function: Callable[..., Any], examples: Sequence[Tensor]) -> None:
        self.function = function
        if not examples:
            examples = [_stand_in(((4, 4), float32, default_device()))] * _count(function)
        self._traced: dict[tuple[Kind, ...], list[Graph]] = {}
        graphs = self._graphs(tuple([_kind(t._data, t.device) for t in examples]))
        for graph in graphs:
            _check(graph, len(examples))
        self.general = {graph: parts_of(graph, general=True) for graph in graphs}

    def at(self, node: Node) -> tuple[tuple[Node, ...], str]:
        """The inputs of the pattern if its result is this node; else no inputs, and the reason."""
        why = ""
        for graph, parts in self.general.items():
            nearest = Nearest()
            for bound in islice(ways(parts[graph.outputs[0]], node, {}, nearest), MOST_BINDINGS):
                inputs = tuple([bound[parts[i]] for i in graph.inputs])
                reason = self._exactly(node, inputs)
                if not reason:
                    return inputs, ""
                why = why or reason
            why = why or nearest.reason
        return (), why

    def begins(self, node: Node) -> bool:
        """Whether a node has the operation of the pattern's result."""
        return any(node.op is graph.outputs[0].op for graph in self.general)

    def _exactly(self, node: Node, inputs: tuple[Node, ...]) -> str:
        """Why the pattern on these inputs does not match the node; empty if it does."""
        try:
            graphs = self._graphs(tuple([_kind(i, i.device) for i in inputs]))
        except MinigradError as error:
            return f"for these shapes the pattern raises an error: {error.first_line}"
        reasons = []
        for graph in graphs:
            nearest, parts = Nearest(), parts_of(graph)
            bound = {parts[i]: x for i, x in zip(graph.inputs, inputs)}
            if next(ways(parts[graph.outputs[0]], node, bound, nearest), None) is not None:
                return ""
            reasons.append((nearest.found, nearest.reason))
        return max(reasons)[1]

    def _graphs(self, kinds: tuple[Kind, ...]) -> list[Graph]:
        """The pattern for inputs of these kinds, before and after the passes."""
        found = self._traced.get(kinds)
        if found is None:
            with switch(Mode(grad=False)):
                traced = trace(self._result, *[_stand_in(kind) for kind in kinds])
                optimised, _ = optimise(traced, only=OURS)
            found = self._traced[kinds] = [traced, optimised]
        return found

    def _result(self, *tensors: Tensor) -> Tensor:
        result = self.function(*tensors)
        if not isinstance(result, Tensor):
            raise no_pattern(f"it returns a {type(result).__name__}")
        return result


class Nearest:
    """Why a node does not match: the reason of the attempt that found the most parts."""

    def __init__(self) -> None:
        self.found, self.reason = -1, ""

    def __call__(self, bound: Bound, reason: str) -> None:
        if len(bound) > self.found:
            self.found, self.reason = len(bound), reason


class TracedPattern(Operation):
    """A node or a number of a traced function; if `general`, only the operation counts."""

    def __init__(self, what: Any, inputs: Sequence[Part], general: bool) -> None:
        super().__init__(what.name if isinstance(what, Node) else repr(what), inputs)
        self.what, self.general = what, general

    def differs(self, x: Any) -> str:
        what = self.what
        if not isinstance(what, Node):
            if isinstance(x, Node):
                return f"{x.name} where the pattern has the number {what!r}"
            same = self.general or comparable(what) == comparable(x)
            return "" if same else f"the number {x!r} where the pattern has {what!r}"
        if what.op is None and isinstance(x, Node):
            return "" if self.general or what.name == "tensor" else _different_constant(what, x)
        why = super().differs(x)
        if why or self.general:
            return why
        if comparable(x.attrs) != comparable(what.attrs):
            return f"{x.name} with {_listed(x.attrs)}, in the pattern with {_listed(what.attrs)}"
        if (x.shape, x.dtype) != (what.shape, what.dtype):
            return f"{x.name} is {x.dtype} {x.shape}, in the pattern {what.dtype} {what.shape}"
        return ""


def parts_of(graph: Graph, general: bool = False) -> dict[Node, Part]:
    """The part of the pattern for each node of a traced function."""
    parts: dict[Node, Part] = {node: TracedPattern(node, (), general) for node in graph.inputs}
    for node in graph.nodes:
        inputs = [parts[x] if isinstance(x, Node) else TracedPattern(x, (), general) for x in node.inputs]
        parts[node] = TracedPattern(node, inputs, general)
    return parts


def _different_constant(pattern: Any, node: Any) -> str:
    if node.op is None and node.name in ("constant", "array"):
        ours, theirs = pattern.array(), node.array()
        if ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
            return ""
    return "another constant than in the pattern"


def _listed(attrs: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in attrs.items()) or "nothing"


def _kind(data: Any, device: Any) -> Kind:
    return data.shape, data.dtype, device


def _stand_in(kind: Kind) -> Tensor:
    """A tensor to trace with, which needs no memory."""
    shape, dtype, device = kind
    return wrap(np.broadcast_to(np.zeros((), dtype), shape), device)


def _count(function: Callable[..., Any]) -> int:
    """The number of tensors that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ConversionError(f"kernel: a pattern is a function of tensors, not {shown(function)}") from None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ConversionError(
            "kernel: the pattern takes any number of tensors", hint="pass an example for each input of this pattern"
        )
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _check(graph: Graph, count: int) -> None:
    """Refuse functions that cannot be a pattern."""
    inputs = graph.inputs
    reason = ""
    if len(graph.outputs) != 1:
        reason = "it does not have one result that it computes"
    elif len(inputs) != count or any(n.name == "tensor" and n not in inputs for n in graph.nodes):
        reason = "it uses a tensor that is not an argument"
    elif graph.outputs[0] in inputs or graph.outputs[0].op is None or not set(inputs) <= set(graph.uses()):
        reason = "its result does not depend on all of its inputs"
    elif graph.effects or any(node.op is not None and node.op.kind == "random" for node in graph.nodes):
        reason = "it draws random numbers or has effects"
    if reason:
        raise no_pattern(reason)


def no_pattern(reason: str) -> ConversionError:
    """The error for a function that cannot be a pattern."""
    return ConversionError(
        f"this function is not a pattern: {reason}", expect="one tensor, computed from all inputs and nothing else"
    )
