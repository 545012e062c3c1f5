"""Patterns: an ordinary function, traced, and the places of a graph that compute the same.

Shapes are not part of a pattern.  It is traced with examples first, and whatever has its operations, in its order, is a
candidate.  Then it is traced again with the shapes and dtypes that were found there, and the candidate has to be the
same in everything: axes, numbers, shapes, dtypes.  So a pattern means what the function means, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.errors import ConversionError, MinigradError
from ...core.mode import Mode, switch
from ...core.node import Node
from ...core.tensor import Tensor, default_device, wrap
from ...core.words import shown
from ..jitted import trace
from ..nodes.graph import Graph
from ..rewriting.common import COMMUTE, hashable
from ..rewriting.passes import OURS, optimise

MOST_BINDINGS = 16  # that are tried at one node: a pattern of sums can be read in many ways
Bound = dict[Node, Any]  # a node of the pattern -> the node of the graph that it is
Kind = tuple[tuple[int, ...], Any, Any]  # shape, dtype, device


class Pattern:
    """A function of tensors with one result; `examples` are tensors that it can be traced with, (4, 4) by default."""

    def __init__(self, function: Callable[..., Any], examples: Sequence[Tensor]) -> None:
        self.function = function
        if not examples:
            examples = [_stand_in(((4, 4), float32, default_device()))] * _count(function)
        self._traced: dict[tuple[Kind, ...], list[Graph]] = {}
        self.general = self._graphs(tuple([_kind(t._data, t.device) for t in examples]))
        for graph in self.general:
            _check(graph, len(examples))

    def at(self, node: Node) -> tuple[tuple[Node, ...], str]:
        """The nodes that are the pattern's inputs where this one is its result; none, and why it is not."""
        why = ""
        for graph in self.general:
            match = Match(general=True)
            for bound in islice(match.all(graph.outputs[0], node, {}), MOST_BINDINGS):
                inputs = tuple([bound[i] for i in graph.inputs])
                reason = self._exactly(node, inputs)
                if not reason:
                    return inputs, ""
                why = why or reason
            why = why or match.reason
        return (), why

    def begins(self, node: Node) -> bool:
        """Whether a node has the operation of the result."""
        return any(node.op is graph.outputs[0].op for graph in self.general)

    def _exactly(self, node: Node, inputs: tuple[Node, ...]) -> str:
        """Why the pattern with inputs of these shapes is not what the node is; nothing if it is."""
        try:
            graphs = self._graphs(tuple([_kind(i, i.device) for i in inputs]))
        except MinigradError as error:
            return f"for these shapes the pattern is an error: {str(error).splitlines()[0]}"
        reasons = []
        for graph in graphs:
            match = Match(general=False)
            bound = dict(zip(graph.inputs, inputs))
            if next(match.all(graph.outputs[0], node, bound), None) is not None:
                return ""
            reasons.append((match.matched, match.reason))
        return max(reasons)[1]

    def _graphs(self, kinds: tuple[Kind, ...]) -> list[Graph]:
        """The pattern for inputs of these kinds, as it is traced and as the passes leave it."""
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


class Match:
    """One try to find a pattern at a node.  `general`: only the operations count, and how they are connected."""

    def __init__(self, general: bool) -> None:
        self.general = general
        self.reason = ""
        self.matched = -1  # nodes, when the reason was found: the try that came furthest says why it failed

    def all(self, pattern: Node, node: Any, bound: Bound) -> Iterator[Bound]:
        """The ways to read `node` as `pattern`, given what has been read already."""
        if pattern in bound:
            if bound[pattern] is node:
                yield bound
            else:
                self._note(bound, f"two {pattern.name}s where the pattern has one")
            return
        reason = self._difference(pattern, node)
        if reason:
            self._note(bound, reason)
            return
        bound = bound | {pattern: node}
        yield from self._inputs(list(zip(pattern.inputs, node.inputs)), bound)
        if pattern.name in COMMUTE and pattern.op is not None:
            yield from self._inputs(list(zip(pattern.inputs, node.inputs[::-1])), bound)

    def _inputs(self, pairs: list[tuple[Any, Any]], bound: Bound) -> Iterator[Bound]:
        if not pairs:
            yield bound
            return
        (pattern, node), rest = pairs[0], pairs[1:]
        if isinstance(pattern, Node):
            for found in self.all(pattern, node, bound):
                yield from self._inputs(rest, found)
        elif isinstance(node, Node):
            self._note(bound, f"{node.name} where the pattern has the number {pattern!r}")
        elif self.general or hashable(pattern) == hashable(node):
            yield from self._inputs(rest, bound)
        else:
            self._note(bound, f"the number {node!r} where the pattern has {pattern!r}")

    def _difference(self, pattern: Node, node: Any) -> str:
        if not isinstance(node, Node):
            return f"the number {node!r} where the pattern has {pattern.name}"
        if pattern.op is None:
            return "" if self.general or pattern.name == "tensor" else _different_constant(pattern, node)
        if node.op is not pattern.op or len(node.inputs) != len(pattern.inputs):
            return f"{node.name} where the pattern has {pattern.name}"
        if self.general:
            return ""
        if hashable(node.attrs) != hashable(pattern.attrs):
            return f"{node.name} with {_listed(node.attrs)}, in the pattern with {_listed(pattern.attrs)}"
        if (node.shape, node.dtype) != (pattern.shape, pattern.dtype):
            return f"{node.name} is {node.dtype} {node.shape}, in the pattern {pattern.dtype} {pattern.shape}"
        return ""

    def _note(self, bound: Bound, reason: str) -> None:
        if len(bound) > self.matched:
            self.matched, self.reason = len(bound), reason


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
    """A tensor to trace with, which takes no memory."""
    shape, dtype, device = kind
    return wrap(np.broadcast_to(np.zeros((), dtype), shape), device)


def _count(function: Callable[..., Any]) -> int:
    """How many tensors a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ConversionError(f"kernel: a pattern is a function of tensors, not {shown(function)}") from None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ConversionError(
            "a pattern of any number of tensors", hint="give as many examples as it has inputs in this pattern"
        )
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _check(graph: Graph, count: int) -> None:
    """Refuse what can't be a pattern."""
    inputs = graph.inputs
    reason = ""
    if len(graph.outputs) != 1:
        reason = "it returns what it was given"
    elif len(inputs) != count or any(n.name == "tensor" and n not in inputs for n in graph.nodes):
        reason = "it uses a tensor that it is not given"
    elif graph.outputs[0] in inputs or graph.outputs[0].op is None or not set(inputs) <= set(graph.uses()):
        reason = "its result does not depend on all of its inputs"
    elif graph.effects or any(node.op is not None and node.op.kind == "random" for node in graph.nodes):
        reason = "it draws random numbers, or does more than compute its result"
    if reason:
        raise no_pattern(reason)


def no_pattern(reason: str) -> ConversionError:
    """The error of a function that can't be a pattern."""
    return ConversionError(
        f"this function is no pattern: {reason}", expect="one tensor, computed from all inputs and nothing else"
    )
