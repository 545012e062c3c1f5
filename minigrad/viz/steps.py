"""The steps of a backward pass, recorded while it runs: what each operation passes back to each of its inputs.

The walk is the one that `backward()` exhausts.  Here somebody looks at every contribution, checks it by finite
differences, and writes down the numbers before and after it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.reverse import seeds, walk
from ..core.emit import EAGER
from ..core.mode import switch
from ..core.node import Node, topological_order
from ..core.replay import Gone, recompute, sources
from ..core.tensor import Tensor
from .numbers import Summary

CHECKED = 10_000  # numbers: contributions to larger tensors are not checked by finite differences
NEAR = 1e-5, 1e-4  # how far apart, absolutely and relatively, a rule and finite differences may be in float64


class Step(NamedTuple):
    """One event of a backward pass.

    `kind` is "seed" (the result's own gradient is 1), "pass" (`node` passes `value` to its input `index`), or "sum"
    (what came to `target` before and `value` are added).  `total` is the gradient of `target` after the step.
    """

    kind: str
    target: Node
    node: Node | None
    index: int | None  # type: ignore[assignment]  # of the input; a tuple has a method of that name
    value: Summary
    before: Summary | None
    total: Summary
    check: Check | None


class Check(NamedTuple):
    """A contribution along a random direction, by the rule and by finite differences."""

    by_rule: float
    by_differences: float

    @property
    def agrees(self) -> bool:
        """Whether the two are equal, as far as numbers go."""
        apart = abs(self.by_rule - self.by_differences)
        return apart <= NEAR[0] + NEAR[1] * max(abs(self.by_rule), abs(self.by_differences))


class Recording(NamedTuple):
    """A backward pass: its nodes in the order of their making, the values of those that are still known, its steps."""

    nodes: list[Node]
    values: dict[Node, Any]
    missing: str | None  # why values are not known
    steps: list[Step]


def record_steps(result: Tensor, cotangent: Tensor | None = None) -> Recording:
    """Go back from a tensor and note every step.  Nothing is changed: `backward()` can still be called.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [(step.kind, step.value.short()) for step in record_steps(x * x).steps]
    [('seed', '1'), ('pass', '3'), ('pass', '3'), ('sum', '3')]
    """
    with switch(grad=False):
        start = seeds([result], [cotangent], "step")
        nodes = topological_order([result.node])
        values, missing = values_of(nodes)
        begun = Summary.of(start[0].numpy())
        steps = [Step("seed", result.node, None, None, begun, None, begun, None)]
        for node, index, g, value, so_far in walk([result.node], start, retain=True):
            target = node.inputs[index]
            passed = Summary.of(value.numpy())
            check = _checked(node, index, g.numpy(), value.numpy(), values)
            if so_far is None:
                steps.append(Step("pass", target, node, index, passed, None, passed, check))
                continue
            before = Summary.of(so_far.numpy())
            steps.append(Step("pass", target, node, index, passed, before, before, check))
            total = Summary.of(so_far.numpy() + value.numpy())
            steps.append(Step("sum", target, node, index, passed, before, total, None))
    return Recording(nodes, values, missing, steps)


def values_of(nodes: Sequence[Node]) -> tuple[dict[Node, Any], str | None]:
    """The values of nodes, computed again from what they were made from; or why they can't be."""
    try:
        values = dict(sources(nodes))
    except Gone as gone:
        return {}, str(gone)
    known = dict(values)
    for node, _, value in recompute(nodes, values):
        known[node] = value
    return known, None


def _checked(node: Node, index: int, g: Any, value: Any, values: dict[Node, Any]) -> Check | None:
    """(f(x + εd) - f(x - εd)) · g / 2ε beside value · d, in float64; None where that says nothing."""
    target = node.inputs[index]
    known = all(source in values for source in node.inputs if isinstance(source, Node))
    smooth = node.op is not None and node.op.kind not in ("random", "creation", "structural") and not node.op.effect
    if not known or not smooth or isinstance(node.dtype, tuple) or isinstance(target.dtype, tuple):
        return None
    if target.size > CHECKED or target.dtype.kind != "f":
        return None
    inputs = [_in_float64(values[source]) if isinstance(source, Node) else source for source in node.inputs]
    direction = np.random.default_rng(target.size).standard_normal(target.shape)
    width = 1e-6 * max(1.0, float(np.abs(inputs[index]).max(initial=0.0)))

    def moved(by: float) -> Any:
        there = [*inputs]
        there[index] = inputs[index] + by * direction
        return np.asarray(EAGER.compute(node.op, there, node.attrs, node.device), np.float64)  # type: ignore[arg-type]

    slope = float(((moved(width) - moved(-width)) * _in_float64(g)).sum()) / (2 * width)
    return Check(float((_in_float64(value) * direction).sum()), slope)


def _in_float64(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
