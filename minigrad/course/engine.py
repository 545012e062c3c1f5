"""A student's function in the engine's place: a rule, or the whole walk, which then computes every gradient there is.

Nothing is imitated: `backward()`, the pictures and the training of the digits run as always, and call the student.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..autodiff import reverse
from ..core.mode import switch
from ..core.node import FREED, Leaf, Node, topological_order
from ..core.primitive import P
from ..core.tensor import Tensor, as_tensor
from ..ops.view import unbroadcast
from ..viz.stepper import Stepper
from ..viz.steps import record_steps

Engine = Callable[[Node, dict[Node, Tensor]], Any]  # fills in the gradients of all that a node was made from


# A rule ---------------------------------------------------------------------------------------------------------------


@contextmanager
def rule_of(name: str, function: Callable[..., Any], by: str = "you") -> Iterator[Counted]:
    """In this block, the gradients of the operation `name` are what `function(g, out, *inputs)` returns, one per input.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> with rule_of("multiply", lambda g, out, a, b: (g * b, g * a)) as rule:
    ...     (x * x).backward()
    >>> x.grad.item(), rule.calls
    (6.0, 2)
    """
    op = P[name]
    counted = Counted(function)
    title = rf"\text{{{function.__name__.replace('_', ' ')} by {by}}}"
    rules, local = dict(op.rules), dict(op.local)
    names = ", ".join(op.inputs)
    try:
        for index, each in enumerate(op.inputs):
            op.rules[each] = _rule(counted, index, op.inputs)
            op.local[each] = rf"{title}\left(\bar g,\, \mathrm{{out}},\, {names}\right)_{{{index + 1}}}"
        op.plans.clear()
        yield counted
    finally:
        op.rules.update(rules)
        op.local.update(local)
        op.plans.clear()


class Counted:
    """A function, and how often it was called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.function(*args)


def _rule(function: Callable[..., Any], index: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """The rule of one input: its parameters must have the names of the inputs, for they say what is kept for it."""
    given = f"g, out, {', '.join(names)}"
    rule: Callable[..., Any] = eval(f"lambda {given}: one_of({given})", {"one_of": _one_of(function, index)})
    return rule


def _one_of(function: Callable[..., Any], index: int) -> Callable[..., Any]:
    def one_of(*given: Any) -> Tensor:
        found = function(*given)
        return as_tensor(found[index] if isinstance(found, (tuple, list)) else found)

    return one_of


# The walk -------------------------------------------------------------------------------------------------------------


def made_from(node: Node) -> list[Node]:
    """The nodes that a node was made from and that gradients flow to, one for each use: of a * a, twice a.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [node.name for node in made_from((x * x).node)]
    ['leaf', 'leaf']
    """
    return [node.inputs[rule.index] for rule in node.plan.rules]


def passes_back(node: Node, g: Tensor) -> list[tuple[Node, Tensor]]:
    """What a node of gradient g passes back: pairs of a node that it was made from, once for each use, and a gradient.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [(source.name, value.item()) for source, value in passes_back((x * x).node, mg.asarray(1.0))]
    [('leaf', 3.0), ('leaf', 3.0)]
    """
    if node.saved is FREED:
        raise reverse._freed(node)
    with switch(grad=False):
        found = []
        for rule in node.plan.rules:
            source = node.inputs[rule.index]
            value = rule.function(g, *[reverse.read(node, slot, False, rule.index) for slot in rule.reads])
            if value is not None:
                found.append((source, unbroadcast(value, source.shape).astype(source.dtype)))
    for observer in OBSERVERS:
        observer(node, g, found)
    return found


OBSERVERS: list[Callable[[Node, Tensor, list[tuple[Node, Tensor]]], None]] = []  # are told what is passed back


@contextmanager
def walk_of(engine: Engine) -> Iterator[Counted]:
    """In this block, `backward()` runs `engine(result, gradients)`, which fills a dictionary: node -> its gradient.

    >>> def chain_only(result, gradients):
    ...     node = result
    ...     while made_from(node):
    ...         ((source, value),) = passes_back(node, gradients[node])
    ...         gradients[source], node = value, source
    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> with walk_of(chain_only):
    ...     mg.tanh(x * 2).backward()
    """
    counted = Counted(engine)

    def walk(roots: Any, cotangents: Any, wanted: Any = None, retain: bool = False, **ignored: Any) -> Any:
        (root,), (seed,) = roots, cotangents
        order = topological_order([root])
        gradients = {root: seed}
        counted(root, gradients)
        targets = [node for node in order if isinstance(node, Leaf)] if wanted is None else list(wanted)
        if not retain:
            for node in order:
                if node.saved is not None:
                    node.saved = FREED
        return {node: gradients[node].copy() for node in targets if node in gradients}
        yield  # a walk is a generator

    before = reverse.walk
    reverse.walk = walk  # type: ignore[assignment]
    try:
        yield counted
    finally:
        reverse.walk = before


class Watched(dict[Node, Any]):
    """A dictionary of gradients that notes what is put into it."""

    def __init__(self, first: dict[Node, Tensor]) -> None:
        self.events: list[tuple[Node, int, Tensor, Tensor, Tensor | None]] = []
        self.numbers: dict[Node, Any] = {}  # as they were put in: the tensors may have been changed since
        self.passed: list[tuple[Node, int, Tensor, Node, Any]] = []
        for node, value in first.items():
            super().__setitem__(node, value)
            self.numbers[node] = value.numpy().copy()

    def note(self, node: Node, g: Tensor, found: list[tuple[Node, Tensor]]) -> None:
        """What a node has just passed back, which somebody is going to put in."""
        rules = [rule.index for rule in node.plan.rules]
        self.passed = [(node, i, g.copy(), source, value.copy()) for i, (source, value) in zip(rules, found)]

    def __setitem__(self, target: Node, value: Any) -> None:
        value = as_tensor(value)
        now, before = value.numpy().copy(), self.numbers.get(target)
        at = next((i for i, each in enumerate(self.passed) if each[3] is target), None)
        if at is not None:
            node, index, g, _, contribution = self.passed.pop(at)
            added = before is not None and np.allclose(now, before + contribution.numpy())
            so_far = as_tensor(before) if added else None
            self.events.append((node, index, g, contribution if added else as_tensor(now), so_far))
        super().__setitem__(target, value)
        self.numbers[target] = now


def step(engine: Engine, result: Tensor, **options: Any) -> Stepper:
    """The picture of a backward pass as an engine of yours does it, mistakes and all.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> step(lambda result, gradients: None, x * x)
    <backprop of 2 nodes, 1 steps>
    """

    def walk(roots: Any, cotangents: Any, retain: bool = False) -> Any:
        gradients = Watched(dict(zip(roots, cotangents)))
        OBSERVERS.append(gradients.note)
        try:
            engine(roots[0], gradients)
        finally:
            OBSERVERS.remove(gradients.note)
        yield from gradients.events

    return Stepper(record_steps(result, walk=walk), result.node, **options)
