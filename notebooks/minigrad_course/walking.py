"""The tools to write a backward pass: the inputs of a node, its contributions, a dictionary of gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minigrad.autodiff import reverse, visits
from minigrad.core.mode import switch
from minigrad.core.node import Node
from minigrad.core.tensor import Tensor, as_tensor

Passes = Callable[[Node, Tensor], list[tuple[Node, Tensor]]]
LIMITS: list[Patience] = []  # the limits of the blocks that are running


class LostPatience(BaseException):
    """Raised after too many visits to nodes.  It is not an `Exception`, so `except Exception` does not catch it."""


class Patience:
    """The number of visits to nodes that are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def ask(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise LostPatience


@contextmanager
def patience(questions: int) -> Iterator[Patience]:
    """Stop a block that visits nodes too often.  Where it takes every path, a time limit would be too slow to test."""
    LIMITS.append(limit := Patience(questions))
    try:
        yield limit
    finally:
        LIMITS.pop()


def made_from(node: Node) -> list[Node]:
    """The inputs of a node that gradients flow to, once for each use: `a * a` has a twice.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [node.name for node in made_from((x * x).node)]
    ['leaf', 'leaf']
    """
    for limit in LIMITS:
        limit.ask()
    return [node.inputs[rule.index] for rule in node.plan.rules]


def inputs_of(node: Node) -> list[Node]:
    """The nodes among the inputs of a node, once for each use: `a * a` has a twice.  Numbers are not nodes.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [node.name for node in inputs_of((2 * (x * x)).node)]
    ['multiply']
    """
    for limit in LIMITS:
        limit.ask()
    return [each for each in node.inputs if isinstance(each, Node)]


def contributions(node: Node, g: Tensor) -> list[tuple[int, Node, Tensor]]:
    """The contributions of a node with gradient g: the index of an input, the input, and the contribution.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [(index, value.item()) for index, source, value in contributions((x * x).node, mg.ones(()))]
    [(0, 3.0), (1, 3.0)]
    """
    for limit in LIMITS:
        limit.ask()
    with switch(grad=False):
        return [(index, node.inputs[index], value) for index, value in visits.contributions(node, g)]


class Gradients(dict[Node, Any]):
    """The gradients by node, as a backward pass fills them in, and each event, for the picture."""

    def __init__(self, result: Node, seed: Tensor) -> None:
        super().__init__({result: seed})
        self.events: list[reverse.Contribution] = []
        self.times: Counter[Node] = Counter()  # how often each node passed something back
        self._numbers = {result: seed.numpy().copy()}  # copies, because tensors may be changed later
        self._passed: list[tuple[Node, int, Tensor, Node, Tensor]] = []

    def passes_back(self, node: Node, g: Tensor) -> list[tuple[Node, Tensor]]:
        """The contributions of a node with gradient g, as pairs of an input and a value."""
        found = contributions(node, g)
        self.times[node] += 1
        self._passed = [(node, index, g.copy(), source, value.copy()) for index, source, value in found]
        return [(source, value) for _, source, value in found]

    def __setitem__(self, target: Node, value: Any) -> None:
        value = as_tensor(value)
        now, before = value.numpy().copy(), self._numbers.get(target)
        at = next((i for i, each in enumerate(self._passed) if each[3] is target), None)
        if at is not None:
            node, index, g, _, came = self._passed.pop(at)
            added = before is not None and now.shape == before.shape and np.allclose(now, before + came.numpy())
            so_far = as_tensor(before) if added else None
            self.events.append(reverse.Contribution(node, index, g, came if added else as_tensor(now), so_far))
        super().__setitem__(target, value)
        self._numbers[target] = now

    def setdefault(self, target: Node, value: Any = None) -> Any:
        if target not in self:
            self[target] = value
        return self[target]

    def update(self, *others: Any, **more: Any) -> None:
        for target, value in dict(*others, **more).items():
            self[target] = value

    def __ior__(self, other: Any) -> Gradients:  # type: ignore[override, misc]
        self.update(other)
        return self


def add(gradients: Any, source: Node, value: Any) -> None:
    """Add a contribution to the gradient of a node."""
    gradients[source] = gradients[source] + value if source in gradients else value


def pass_on(node: Node, g: Any, gradients: Any, passes_back: Passes) -> None:
    """Pass the gradient g of a node back to all of its inputs."""
    for source, value in passes_back(node, g):
        add(gradients, source, value)


def impatient(result: Node, gradients: Any, passes_back: Passes) -> None:
    """A wrong backward pass: from a node it goes at once to each input, if it has not visited the input before."""
    seen = set()

    def visit(node: Node) -> None:
        if node in seen:
            return
        seen.add(node)
        pass_on(node, gradients[node], gradients, passes_back)
        for source in made_from(node):
            visit(source)

    visit(result)
