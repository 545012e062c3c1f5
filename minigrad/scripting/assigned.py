"""Finds the variables that surely have a value before each statement, in a walk forwards over the statements.

The walk follows the flags that replace jumps: a variable that is assigned wherever a flag stays on has a value under
`if flag:`.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .classify import LOOPS
from .names import COMPREHENSIONS, FUNCTIONS, Names, locals_of, parameters_of


class Facts(NamedTuple):
    """What holds at one place of a function."""

    names: set[str]  # they have a value
    off: set[str]  # flags that are off
    by_flag: set[tuple[str, str]]  # (flag, name): the name has a value if the flag is on

    def __or__(self, names: set[str]) -> Facts:
        return Facts(self.names | names, self.off, self.by_flag)

    def holds(self, flag: str, name: str) -> bool:
        return name in self.names or flag in self.off or (flag, name) in self.by_flag

    def __and__(self, other: Facts) -> Facts:
        """The facts that hold where two paths meet."""
        names = self.names | other.names | {name for _, name in (*self.by_flag, *other.by_flag)}
        flags = self.off | other.off | {flag for flag, _ in (*self.by_flag, *other.by_flag)}
        both = {(f, n) for f in flags for n in names if self.holds(f, n) and other.holds(f, n)}
        return Facts(self.names & other.names, self.off & other.off, both)

    def where(self, flag: str) -> Facts:
        """The facts where a flag is on."""
        return self | {name for f, name in self.by_flag if f == flag}

    def without(self, flag: str) -> Facts:
        """The facts after a flag has been switched on."""
        return Facts(self.names, self.off - {flag}, {(f, n) for f, n in self.by_flag if f != flag})


class Assigned:
    """`before[s]`: variables that surely have a value before statement s.  `unsure`: reads that may come too early."""

    def __init__(self, function: Any, flags: set[str]) -> None:
        self.local, self.flags = locals_of(function), flags
        self.before: dict[ast.AST, set[str]] = {}
        self.unsure: dict[ast.AST, str] = {}
        self.block(function.body, Facts(parameters_of(function.args), set(), set()))

    def block(self, body: list[ast.stmt], known: Facts) -> Facts:
        """The facts after these statements."""
        for node in body:
            known = self._statement(node, known)
        return known

    def _statement(self, node: Any, known: Facts) -> Facts:
        self.before[node] = known.names
        if isinstance(node, ast.If):
            return self._if(node, known)
        if isinstance(node, (*LOOPS, ast.AsyncFor)):
            return self._loop(node, known)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._reads(item.context_expr, known)
            return self.block(node.body, known | Names(node.items).bound)
        if isinstance(node, (ast.Try, ast.TryStar)):
            ends = [self.block(handler.body, known | {handler.name or ""}).names for handler in node.handlers]
            ends.append(self.block([*node.body, *node.orelse], known).names)
            return self.block(node.finalbody, known | set.intersection(*ends))
        if isinstance(node, ast.Match):
            for case in node.cases:
                self.block(case.body, known | Names([case.pattern]).bound)
            return known
        self._reads(node, known)
        names = Names([node])
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return known | self.local  # nothing after it is reached
        if isinstance(node, ast.Assign) and names.bound & self.flags:
            flag = min(names.bound)
            on = isinstance(node.value, ast.Constant) and node.value.value
            known = known.without(flag) if on else Facts(known.names, known.off | {flag}, known.by_flag)
        return Facts((known.names | names.bound) - names.deleted, known.off, known.by_flag)

    def _if(self, node: ast.If, known: Facts) -> Facts:
        self._reads(node.test, known)
        known = known | Names([node.test]).bound
        flag = node.test.id if isinstance(node.test, ast.Name) and node.test.id in self.flags else None
        body = self.block(node.body, known if flag is None else known.where(flag))
        other = self.block(node.orelse, known)
        if flag is not None:
            other = Facts(other.names, other.off | {flag}, other.by_flag)
        return body & other

    def _loop(self, node: Any, known: Facts) -> Facts:
        over = not isinstance(node, ast.While)
        self._reads(node.iter if over else node.test, known)
        known = known | Names([node.iter if over else node.test]).bound
        known = Facts(known.names, known.off - Names(node.body).bound, known.by_flag)
        end = self.block(node.body, known | (Names([node.target]).bound if over else set()))
        self.block(node.orelse, known)
        return known & end

    def _reads(self, node: ast.AST, known: Facts, bound: frozenset[str] = frozenset()) -> None:
        """Note reads of variables that may have no value."""
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return
        if isinstance(node, COMPREHENSIONS):
            bound = bound | Names([g.target for g in node.generators]).bound
        name = node.target if isinstance(node, ast.AugAssign) else node
        if isinstance(name, ast.Name) and (name is not node or isinstance(name.ctx, ast.Load)):
            if name.id in self.local and name.id not in known.names and name.id not in bound:
                self.unsure[node] = name.id
        for part in ast.iter_child_nodes(node):
            self._reads(part, known, bound)
