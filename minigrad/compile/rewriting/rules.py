"""Rules, which replace single nodes, and the walk over a graph that applies them.

A rule is an equation, or a function that takes a node and returns a cheaper node with the same value, or None.  The
inputs of that node have already been replaced.  A rule may look at the node and at what it is computed from, but not at
its readers.  So one walk applies all rules, in time linear in the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...core.node import Node
from ...core.primitive import P, Primitive
from ...support.errors import ConversionError
from ..nodes.graph import Graph, reapplied, remade
from .equation import EVERY, Equation, head

NONE: frozenset[str] = frozenset()
IN_A_ROW = 20  # the most rules that fire one after the other at a node; more would be rules that undo each other


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule for nodes of some primitives; its name is the text of the equation or the name of the function."""

    name: str
    says: str
    function: Callable[[Node], Node | None]
    primitives: frozenset[str]
    kinds: frozenset[str]
    reads: str = ""  # it fires only where the node reads the result of this primitive
    alone: bool = False  # it fires only where nothing else reads the node's first input, which then is no longer needed

    def may_fire(self, heads: tuple[Any, ...]) -> bool:
        """Whether the rule may fire at a node whose inputs have these heads (see `match.head`)."""
        if isinstance(self.function, Equation):
            return self.function.pattern.may_have(heads)
        return not self.reads or self.reads in [getattr(head, "name", "") for head in heads]


Found = tuple[tuple[Rule, ...], dict[Any, tuple[Rule, ...]] | None]  # of a primitive: all rules, and by heads
Note = Callable[[str, Node, Node], None]  # a pass calls it with each change: rule, node, replacement


def left_out(note: Note) -> frozenset[str]:
    """The rules, and parts of passes, that this run leaves out."""
    return getattr(note, "without", NONE)


class Rules:
    """The rules of a pass, in order: those of `others`, equations, and functions decorated by `@rule("multiply")`.

    The `guests` are files of this room by name: the rules in each are added when a graph has one of its primitives.

    >>> rule = Rules()
    >>> rule("-(-x) -> x", "~~x -> x")
    >>> @rule("exp", "log")
    ... def nothing_yet(node):
    ...     "exp(x) and log(x) stay."
    >>> [each.name for each in rule]
    ['-(-x) -> x', '~~x -> x', 'nothing yet']
    """

    def __init__(self, *others: Rules, **guests: tuple[str, ...]) -> None:
        self._rules: list[Rule] = [rule for rules in others for rule in rules]
        self.guests = {primitive: file for file, primitives in guests.items() for primitive in primitives}
        self.forgotten: set[str] = set()  # the names of rules that were removed
        self._found: dict[Primitive | None, Found] = {}
        self.version = 0  # grows with each change of the rules: a program compiled with another version is out of date

    def __iter__(self) -> Iterator[Rule]:
        for file in {*self.guests.values()}:
            self._load(file)
        return iter(self._rules)

    def _load(self, file: str) -> None:
        """Add the rules of a guest."""
        found = [rule for rule in import_module(f"{__package__}.{file}").rule if rule not in self._rules]
        self._rules = [*self._rules, *found]  # another thread may do the same
        self._found.clear()
        self.guests = {primitive: other for primitive, other in self.guests.items() if other != file}

    def __call__(
        self, *what: str, on: str = EVERY, when: Callable[..., Any] | None = None,
        kind: str | tuple[str, ...] = (), reads: str = "", alone: bool = False,
    ) -> Any:
        """Add equations, or return a decorator that adds a function as a rule for some primitives.

        An equation holds for the kinds of dtypes in `on`, where `when`, a function of its letters, returns True.  A
        function is for the named primitives and for all primitives of a `kind` ("source": nodes without a primitive).
        With `reads`, the node must read the result of that primitive; with `alone`, nothing else may read its first
        input.
        """
        if any("->" in text for text in what):
            for text in what:
                equation = Equation(text, on, when)
                primitives = frozenset({equation.pattern.name})
                self._add(Rule(text, equation.says, equation, primitives, frozenset(), alone=alone))
            return None
        unknown = set(what) - {op.name for op in P}
        if unknown:
            raise ConversionError(
                f"rule: {unknown.pop()!r} is not an equation and not the name of a primitive",
                expect="'left -> right', or names of primitives before a function",
            )
        kinds = frozenset((kind,) if isinstance(kind, str) else kind)

        def declare(function: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
            name = function.__name__.strip("_").replace("_", " ")
            self._add(Rule(name, (function.__doc__ or "").strip(), function, frozenset(what), kinds, reads, alone))
            return function

        return declare

    def _add(self, rule: Rule) -> None:
        if any(known.name == rule.name for known in self._rules):
            raise ValueError(f"there is a rule named {rule.name!r} already")
        self._change([*self._rules, rule])

    def forget(self, name: str) -> None:
        """Remove a rule."""
        self.forgotten.add(name)
        self._change([rule for rule in self if rule.name != name])

    def _change(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._found.clear()
        self.version += 1

    def at(self, node: Node) -> tuple[Rule, ...]:
        """The rules that may fire at a node, judged by the operations of its inputs, in the order of declaration."""
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
        if name in self.guests:
            self._load(self.guests[name])
        rules = tuple([rule for rule in self._rules if name in rule.primitives or kind in rule.kinds])
        looks = any(rule.reads or isinstance(rule.function, Equation) for rule in rules)
        found = self._found[op] = rules, {} if looks else None
        return found


def apply_rules(graph: Graph, rules: Rules, note: Note) -> Graph:
    """The graph in which each node has been replaced as long as a rule fires."""
    readers, without = graph.uses(), left_out(note)
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
            f"the rule {rule.name!r} replaced {node.dtype} {node.shape} by {better.dtype} {better.shape}"
        )


def rewritten(
    graph: Graph, replace: Callable[[Node, tuple[Any, ...]], Node], also: Container[Node] = ()
) -> Graph:
    """The graph in which `replace(node, inputs)` takes the place of each node; the same object if nothing changes.

    Nodes with effects are replaced only if they are in `also`.  Once such a node has changed, all later ones are made
    anew, because the order in which nodes are made is the order of their effects.
    """
    moved = False

    def step(node: Node, inputs: tuple[Any, ...]) -> Node:
        nonlocal moved
        if node.op is None or node.effect is None:
            return replace(node, inputs)
        if node in also:
            now = replace(node, inputs)
        else:
            now = reapplied(node, inputs) if moved else remade(node, inputs)
        moved = moved or now is not node
        return now

    ops = {node.op for node in graph.nodes if node.op is not None}
    quiet = not [op for op in ops if op.effect is not None or op.kind == "structural"]
    return graph.rebuilt(replace if quiet else step)
