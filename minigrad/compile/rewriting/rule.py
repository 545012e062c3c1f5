"""Rules: small functions that put one node in the place of another, and the walk that applies them.

A rule is given a node whose inputs have been replaced already, and returns what computes the same for less, or None.
It looks at the node, its inputs, perhaps at theirs, and never at what reads it, so that one walk over a graph applies
all rules, in time linear in its nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core.node import Node
from ...core.primitive import P, Primitive
from ..nodes.graph import Graph, made, remade

IN_A_ROW = 20  # rules that may follow each other at one node; more would be rules that undo each other


@dataclass(frozen=True, eq=False)
class Rule:
    """What may be put in the place of nodes of some primitives.  It is named like its function, without underscores."""

    name: str
    says: str
    function: Callable[[Node], Node | None]
    primitives: frozenset[str]
    kinds: frozenset[str]
    alone: bool  # fires only where nothing else reads the node's first input, which will not be needed any more


@dataclass(frozen=True)
class Fired:
    """That a rule has fired: at which node of the graph before, and what is in its place now."""

    rule: str
    node: Node
    replacement: Node


Note = Callable[[str, Node, Node], None]  # how a pass says what it has done: rule, node, replacement


class Rules:
    """The rules of a pass, after those of `others`; `@rules("multiply", "divide")` in front of a function adds one.

    >>> rules = Rules()
    >>> @rules("negative")
    ... def double_negation(node):
    ...     "-(-x) is x."
    ...     (x,) = node.inputs
    ...     return x.inputs[0] if x.op is node.op else None
    >>> list(rules)[0].name, list(rules)[0].says
    ('double negation', '-(-x) is x.')
    """

    def __init__(self, *others: Rules) -> None:
        self._rules: list[Rule] = [rule for rules in others for rule in rules]
        self._found: dict[Any, tuple[Rule, ...]] = {}

    def __iter__(self) -> Any:
        return iter(self._rules)

    def __call__(self, *primitives: str, kind: str | tuple[str, ...] = (), alone: bool = False) -> Any:
        """Add the decorated function as a rule for these primitives, and for all of a kind ("source": without one)."""
        kinds = frozenset((kind,) if isinstance(kind, str) else kind)

        def declare(function: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
            name = function.__name__.strip("_").replace("_", " ")
            if any(rule.name == name for rule in self._rules):
                raise ValueError(f"there is a rule named {name!r} already")
            said = (function.__doc__ or "").strip()
            self._rules.append(Rule(name, said, function, frozenset(primitives), kinds, alone))
            self._found.clear()
            return function

        return declare

    def forget(self, name: str) -> None:
        """Take a rule away."""
        self._rules = [rule for rule in self._rules if rule.name != name]
        self._found.clear()

    def of(self, op: Primitive | None) -> tuple[Rule, ...]:
        """The rules for a primitive, in the order of their declaration."""
        found = self._found.get(op)
        if found is None:
            name, kind = ("", "source") if op is None else (op.name, op.kind)
            found = tuple([rule for rule in self._rules if name in rule.primitives or kind in rule.kinds])
            self._found[op] = found
        return found


def apply_rules(graph: Graph, rules: Rules, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """The graph with each node replaced as long as a rule fires."""
    readers = graph.uses()
    readers.update(graph.outputs)

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        now = remade(node, inputs)
        for _ in range(IN_A_ROW):
            for rule in rules.of(now.op):
                if rule.alone and readers.get(now.inputs[0], 1) > 1:
                    continue
                better = rule.function(now)
                if better is not None and rule.name not in without:
                    _check(rule, now, better)
                    note(rule.name, node, better)
                    now = better
                    break
            else:
                break
        if now is not node:
            readers[now] += readers[node]
        return now

    return rewritten(graph, replace)


def _check(rule: Rule, node: Node, better: Node) -> None:
    if better.shape != node.shape or better.dtype != node.dtype:
        raise ValueError(
            f"the rule {rule.name!r} put {better.dtype} {better.shape} in the place of {node.dtype} {node.shape}"
        )


def rewritten(graph: Graph, replace: Callable[[Node, tuple[Any, ...]], Node]) -> Graph:
    """The graph in which each node is what `replace(node, inputs)` says: the graph itself, if that changes nothing.

    What has an effect is not replaced.  It gets other inputs, and those behind it are made anew too, because the order
    of making is the order of effects.
    """
    moved = False

    def step(node: Node, inputs: tuple[Any, ...]) -> Node:
        nonlocal moved
        if node.op is None or node.effect is None:
            return replace(node, inputs)
        now = made(node.op, inputs, node.attrs, like=node) if moved else remade(node, inputs)
        moved = now is not node
        return now

    after = graph.rebuilt(step)
    return graph if after.outputs == graph.outputs and after.effects == graph.effects else after


def shaped(x: Any, node: Node) -> Node:
    """`x`, which may be a number, in the place of a node that it broadcasts to."""
    if not isinstance(x, Node):
        return filled(x, node)
    return x if x.shape == node.shape else made(P.broadcast_to, (x,), {"shape": node.shape}, like=node)


def filled(value: Any, node: Node) -> Node:
    """A tensor of one number in the place of a node."""
    attrs = {"shape": node.shape, "value": value, "dtype": node.dtype, "device": node.device}
    return made(P.full, (), attrs, like=node)


def applied(name: str, *inputs: Any, node: Node, **attrs: Any) -> Node:
    """A primitive on these inputs, in the place of `node` and in its shape."""
    return shaped(made(P[name], inputs, attrs, like=node), node)


def is_made_by(x: Any, name: str) -> bool:
    """Whether an input is a node of this primitive."""
    return isinstance(x, Node) and x.name == name and x.op is not None


def kind_of(node: Node) -> str:
    """The kind of what a node computes: b, i, u or f."""
    return node.dtype.kind
