"""Rules: what may be put in the place of one node, and the walk that applies them.

A rule is an equation, or a function of a node whose inputs have been replaced already, which returns what computes the
same for less, or None.  It looks at the node, its inputs, perhaps at theirs, and never at what reads it, so that one
walk over a graph applies all rules, in time linear in its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

from ...core.node import Node
from ...core.primitive import Primitive
from ..nodes.graph import Graph, node_like, remade
from .equation import EVERY, Equation
from .match import head

IN_A_ROW = 20  # rules that may follow each other at one node; more would be rules that undo each other


@dataclass(frozen=True, eq=False)
class Rule:
    """What may be put in the place of nodes of some primitives.

    The name is the text of an equation, or that of the function, without underscores.
    """

    name: str
    says: str
    function: Callable[[Node], Node | None]
    primitives: frozenset[str]
    kinds: frozenset[str]
    reads: str = ""  # fires only where the node reads the result of this primitive
    alone: bool = False  # fires only where nothing else reads the node's first input, which is then not needed any more

    def may_fire(self, heads: tuple[Any, ...]) -> bool:
        """Whether the rule may fire at a node whose inputs have these heads."""
        if isinstance(self.function, Equation):
            return self.function.pattern.may_have(heads)
        return not self.reads or any(getattr(head, "name", "") == self.reads for head in heads)


@dataclass(frozen=True)
class Fired:
    """That a rule has fired: at which node of the graph before, and what is in its place now."""

    rule: str
    node: Node
    replacement: Node


Found = tuple[tuple[Rule, ...], dict[Any, tuple[Rule, ...]] | None]  # rules of a primitive: all, and by its inputs
Note = Callable[[str, Node, Node], None]  # how a pass says what it has done: rule, node, replacement


class Rules:
    """The rules of a pass, after those of `others`: equations, and functions that `@rule("multiply")` decorates.

    >>> rule = Rules()
    >>> rule("-(-x) -> x", "~~x -> x")
    >>> @rule("exp", "log")
    ... def nothing_yet(node):
    ...     "exp(x) and log(x) stay."
    >>> [each.name for each in rule]
    ['-(-x) -> x', '~~x -> x', 'nothing yet']
    """

    def __init__(self, *others: Rules) -> None:
        self._rules: list[Rule] = [rule for rules in others for rule in rules]
        self._found: dict[Primitive | None, Found] = {}

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __call__(
        self, *what: str, on: str = EVERY, when: Callable[..., Any] | None = None,
        kind: str | tuple[str, ...] = (), reads: str = "", alone: bool = False,
    ) -> Any:
        """Add equations, or the decorated function as a rule for some primitives.

        An equation holds for operands of the kinds of dtypes that `on` lists, `when` a function of its letters returns
        True.  A function is for the primitives that are named, and for all of a `kind` ("source": without one), where
        they read the result of the primitive `reads`, if that is given.  A rule that is `alone` fires only where
        nothing else reads the first input.
        """
        if any("->" in text for text in what):
            for text in what:
                equation = Equation(text, on, when)
                primitives = frozenset({equation.pattern.name})
                self._add(Rule(text, equation.says, equation, primitives, frozenset(), alone=alone))
            return None
        kinds = frozenset((kind,) if isinstance(kind, str) else kind)

        def declare(function: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
            name = function.__name__.strip("_").replace("_", " ")
            self._add(Rule(name, (function.__doc__ or "").strip(), function, frozenset(what), kinds, reads, alone))
            return function

        return declare

    def _add(self, rule: Rule) -> None:
        if any(known.name == rule.name for known in self._rules):
            raise ValueError(f"there is a rule named {rule.name!r} already")
        self._rules.append(rule)
        self._found.clear()

    def forget(self, name: str) -> None:
        """Take a rule away."""
        self._rules = [rule for rule in self._rules if rule.name != name]
        self._found.clear()

    def at(self, node: Node) -> tuple[Rule, ...]:
        """The rules that may fire at a node, as far as its inputs' operations show, in the order of declaration."""
        rules, by_heads = self._found.get(node.op) or self._find(node.op)
        if by_heads is None:
            return rules
        heads = tuple([head(x) for x in node.inputs])
        found = by_heads.get(heads)
        if found is None:
            found = by_heads[heads] = tuple([rule for rule in rules if rule.may_fire(heads)])
        return found

    def _find(self, op: Primitive | None) -> Found:
        name, kind = ("", "source") if op is None else (op.name, op.kind)
        rules = tuple([rule for rule in self._rules if name in rule.primitives or kind in rule.kinds])
        looks = any(rule.reads or isinstance(rule.function, Equation) for rule in rules)
        found = self._found[op] = rules, {} if looks else None
        return found


def apply_rules(graph: Graph, rules: Rules, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """The graph with each node replaced as long as a rule fires."""
    readers = graph.uses()
    readers.update(graph.outputs)

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        now = remade(node, inputs)
        for _ in range(IN_A_ROW):
            for rule in rules.at(now):
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


def rewritten(
    graph: Graph, replace: Callable[[Node, tuple[Any, ...]], Node], also: Container[Node] = ()
) -> Graph:
    """The graph in which each node is what `replace(node, inputs)` says: the graph itself, if that changes nothing.

    What has an effect is replaced only if it is one of `also`.  It gets other inputs, and those behind it are made anew
    too, because the order of making is the order of effects.
    """
    moved = False

    def step(node: Node, inputs: tuple[Any, ...]) -> Node:
        nonlocal moved
        if node.op is None or node.effect is None:
            return replace(node, inputs)
        if node in also:
            now = replace(node, inputs)
        else:
            now = node_like(node.op, inputs, node.attrs, like=node) if moved else remade(node, inputs)
        moved = moved or now is not node
        return now

    after = graph.rebuilt(step)
    return graph if after.outputs == graph.outputs and after.effects == graph.effects else after
