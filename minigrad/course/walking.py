"""What a walk back needs, for those who write one: what a node was made from, and what it passes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..autodiff import passing, reverse
from ..core.mode import switch
from ..core.node import Node, topological_order
from ..core.tensor import Tensor, as_tensor

Passes = Callable[[Node, Tensor], list[tuple[Node, Tensor]]]
LIMITS: list[Patience] = []  # those that count at present


class LostPatience(BaseException):
    """Raised in a walk that asks much too often; not an `Exception`, so that `except Exception` does not stop it."""


class Patience:
    """How many questions about nodes a walk may still ask."""

    def __init__(self, left: int) -> None:
        self.left = left

    def ask(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise LostPatience


@contextmanager
def patience(questions: int) -> Iterator[None]:
    """End what asks more than so many questions: where a walk takes every path, no time limit is long enough."""
    LIMITS.append(Patience(questions))
    try:
        yield
    finally:
        LIMITS.pop()


def made_from(node: Node) -> list[Node]:
    """The nodes that a node was made from and that gradients flow to, once for each use: of `a * a`, twice a.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [node.name for node in made_from((x * x).node)]
    ['leaf', 'leaf']
    """
    for limit in LIMITS:
        limit.ask()
    return [node.inputs[rule.index] for rule in node.plan.rules]


def contributions(node: Node, g: Tensor) -> list[tuple[int, Node, Tensor]]:
    """What a node of gradient g passes back: the number of an input, the input, and a gradient in its shape.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [(index, value.item()) for index, source, value in contributions((x * x).node, mg.ones(()))]
    [(0, 3.0), (1, 3.0)]
    """
    for limit in LIMITS:
        limit.ask()
    with switch(grad=False):
        return [(index, node.inputs[index], value) for index, value in passing.contributions(node, g)]


class Gradients(dict[Node, Any]):
    """The gradients that have come so far, by node, as a walk puts them in; and each event, for the picture."""

    def __init__(self, result: Node, seed: Tensor) -> None:
        super().__init__({result: seed})
        self.events: list[reverse.Contribution] = []
        self.times: Counter[Node] = Counter()  # that a node passed something back
        self._numbers = {result: seed.numpy().copy()}  # as they were put in: a tensor may have been changed since
        self._passed: list[tuple[Node, int, Tensor, Node, Tensor]] = []

    def passes_back(self, node: Node, g: Tensor) -> list[tuple[Node, Tensor]]:
        """What a node of gradient g passes back: pairs of a node that it was made from and a gradient."""
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


def kept_bytes(result: Tensor) -> int:
    """How many bytes are kept for the way back from a tensor.

    >>> h = mg.ones(1000, requires_grad=True)
    >>> kept_bytes(mg.tanh(h)), kept_bytes(h + 1)
    (4000, 0)
    """
    arrays = {}
    for node in topological_order([result.node]):
        for value in node.saved if isinstance(node.saved, tuple) else ():
            if getattr(value, "shape", ()):  # numbers are not worth counting
                arrays[id(value)] = value.nbytes
    return sum(arrays.values())


def add(gradients: Any, source: Node, value: Any) -> None:
    """What comes to a node is added to what has come before."""
    gradients[source] = gradients[source] + value if source in gradients else value


def pass_on(node: Node, g: Any, gradients: Any, passes_back: Passes) -> None:
    """Let a node of gradient g send to all that it was made from."""
    for source, value in passes_back(node, g):
        add(gradients, source, value)


# Engines as others have proposed them ---------------------------------------------------------------------------------


def impatient(result: Node, gradients: Any, passes_back: Passes) -> None:
    """Sends on at once: from a node to each that it was made from, and on from there if it was not there before."""
    seen = set()

    def visit(node: Node) -> None:
        if node in seen:
            return
        seen.add(node)
        pass_on(node, gradients[node], gradients, passes_back)
        for source in made_from(node):
            visit(source)

    visit(result)
