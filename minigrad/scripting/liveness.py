"""Finds the variables that are still needed after each statement, in a walk backwards over the statements.

Loops are walked until nothing changes.  Jumps are flags by now, except those that stay plain Python.
"""

from __future__ import annotations

import ast
from typing import Any

from .classify import CLOSED, LOOPS
from .names import Names, locals_of

Targets = tuple[set[str], set[str]]  # the variables needed at the targets of `break` and `continue`
NOWHERE: Targets = (set(), set())


class Liveness:
    """Needed variables: `after[s]` after a statement, `inside[s]` in each turn of a loop, `branches[s]` in an `if`."""

    def __init__(self, function: Any, going: dict[ast.AST, str]) -> None:
        self.going = going  # each turn of a `for` loop reads its flag
        self.after: dict[ast.AST, set[str]] = {}
        self.inside: dict[ast.AST, set[str]] = {}
        self.branches: dict[ast.AST, tuple[set[str], set[str]]] = {}
        inner = [free for _, free in Names(function.body).inner]
        self.captured = set().union(*inner) & locals_of(function)  # inner functions may read these at any time
        self.block(function.body, set(), NOWHERE)

    def block(self, body: list[ast.stmt], after: set[str], to: Targets) -> set[str]:
        """The variables needed before these statements."""
        wanted = after | self.captured
        for node in reversed(body):
            wanted = self._statement(node, wanted, to) | self.captured
        return wanted

    def _statement(self, node: Any, after: set[str], to: Targets) -> set[str]:
        self.after[node] = after
        if isinstance(node, ast.If):
            test = Names([node.test])
            body, other = self.block(node.body, after, to), self.block(node.orelse, after, to)
            self.branches[node] = body, other
            return ((body | other) - test.bound) | test.read
        if isinstance(node, LOOPS):
            return self._loop(node, after, to)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            items = Names(node.items)
            return ((self.block(node.body, after, to) | after) - items.bound) | items.read
        if isinstance(node, (*CLOSED, ast.AsyncFor)):
            self._all(node, after | Names([node]).read | to[0] | to[1])
            return after | Names([node]).read | to[0] | to[1]
        if isinstance(node, ast.Break):
            return to[0]
        if isinstance(node, ast.Continue):
            return to[1]
        names = Names([node])
        if isinstance(node, (ast.Return, ast.Raise)):
            return names.read
        return (after - names.bound - names.deleted) | names.read

    def _loop(self, node: Any, after: set[str], to: Targets) -> set[str]:
        over = isinstance(node, ast.For)
        test, target = Names([node.iter if over else node.test]), Names([node.target] if over else [])
        end = self.block(node.orelse, after, to)
        head = end | {self.going[node]} if node in self.going else end if over else end | test.read
        while True:
            inside = self.block(node.body, head, (after, head))
            again = head | (inside - target.bound) | target.read
            if again == head:
                break
            head = again
        self.inside[node] = head
        return head | test.read

    def _all(self, node: Any, wanted: set[str]) -> None:
        """Mark everything that a `try` or `match` reads as needed throughout: any statement may be the last."""
        for part in ast.walk(node):
            if isinstance(part, ast.stmt):
                self.after[part] = self.inside[part] = wanted
                self.branches[part] = wanted, wanted
