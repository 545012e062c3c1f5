"""Finds the statements that a tensor may decide, those that must stay plain Python, and the reasons.

An `if` or a loop is one of three kinds:

`static`    its condition cannot be a tensor, `x is None`, `len(x) > 2`: it stays unchanged
`dynamic`   it becomes a call, which decides at run time whether Python runs it or a graph records it
`plain`     it holds something that cannot move into a function; it works unless a recorded tensor decides it

A jump (`return`, `break`, `continue`) out of a dynamic statement becomes a flag.  All statements that the jump leaves
are then dynamic, or all of them are plain.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .names import Names, locals_of, walk_frame

Control = (ast.If, ast.While, ast.For)
LOOPS = (ast.While, ast.For)
CLOSED = (ast.Try, ast.TryStar, ast.Match)  # jumps out of these stay jumps
JUMPS = (ast.Return, ast.Break, ast.Continue)
KNOWN_CALLS = {"isinstance", "issubclass", "hasattr", "callable", "len"}
KNOWN_ATTRIBUTES = {"shape", "ndim", "dtype", "device", "size", "requires_grad", "is_leaf", "training"}
MADE_OF = (ast.UnaryOp, ast.BoolOp, ast.BinOp, ast.Compare, ast.Tuple, ast.List)


def never_a_tensor(test: ast.expr) -> bool:
    """Whether the form of an expression rules out a tensor."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id in KNOWN_CALLS
    if isinstance(test, ast.Attribute):
        return test.attr in KNOWN_ATTRIBUTES
    if isinstance(test, ast.Subscript):
        return never_a_tensor(test.value)
    if isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in test.ops):
        return True
    if isinstance(test, MADE_OF):
        return all(never_a_tensor(part) for part in ast.iter_child_nodes(test) if isinstance(part, ast.expr))
    return False


def never_over_a_tensor(iterated: ast.expr) -> bool:
    """Whether the form of an expression rules out a loop over a tensor."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range":
        return all(never_a_tensor(a) for a in iterated.args)
    return isinstance(iterated, (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Constant, ast.ListComp))


def bodies_of(node: Any) -> list[list[ast.stmt]]:
    """The lists of statements in a compound statement, also in its handlers and cases."""
    parts = (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ()))
    found = [getattr(part, field, None) for part in parts for field in ("body", "orelse", "finalbody")]
    return [body for body in found if body and isinstance(body, list)]


class Jump(NamedTuple):
    """A jump, and the statements that it leaves: outermost first, with the loop that it ends or continues."""

    node: ast.stmt
    leaves: list[ast.stmt]


class Kinds:
    """The kind of each control statement of a function, and which of its jumps become flags."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.reasons: dict[ast.AST, str] = {}
        self.kinds: dict[ast.AST, str] = {}
        self.jumps: list[Jump] = []
        self.loops: dict[ast.AST, list[ast.stmt]] = {}  # the loops around a statement, outermost first
        self.local = locals_of(function)
        whole = _whole_reason(function)
        self._look(function.body, [], [], whole)
        for node, free in Names(function.body).inner:
            self._note_inner(node, free & self.local)
        self._settle()
        self.flagged = {jump.node for jump in self.jumps if self._leaves_dynamic(jump)}
        self.flagged |= {jump.node for jump in self._later_returns()}

    def of(self, node: ast.AST) -> str:
        return self.kinds[node]

    # looking ----------------------------------------------------------------------------------------------------------

    def _look(self, body: list[ast.stmt], leaves: list[ast.stmt], loops: list[ast.stmt], reason: str | None) -> None:
        for node in body:
            if isinstance(node, JUMPS):
                start = 0 if isinstance(node, ast.Return) else leaves.index(loops[-1])
                self.jumps.append(Jump(node, leaves[start:]))
            elif isinstance(node, Control):
                self._look_at(node, leaves, loops, reason)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                self._look(node.body, [*leaves, node], loops, reason)
            elif isinstance(node, CLOSED):
                word = "match" if isinstance(node, ast.Match) else "try"
                for part in bodies_of(node):
                    self._look(part, [*leaves, node], loops, reason or f"it is inside `{word}`")
            elif isinstance(node, ast.AsyncFor):
                self._look([*node.body, *node.orelse], [*leaves, node], [*loops, node], reason)

    def _look_at(self, node: Any, leaves: list[ast.stmt], loops: list[ast.stmt], reason: str | None) -> None:
        self.loops[node] = loops
        own = reason or self._own_reason(node)
        if own:
            self.reasons[node] = own
        asked = never_over_a_tensor(node.iter) if isinstance(node, ast.For) else never_a_tensor(node.test)
        self.kinds[node] = "static" if asked else "plain" if own else "dynamic"
        inside = [*loops, node] if isinstance(node, LOOPS) else loops
        self._look(node.body, [*leaves, node], inside, reason)
        self._look(node.orelse, [*leaves, node], loops, reason)

    def _own_reason(self, node: Any) -> str | None:
        names = Names([node])
        declared = Names(self.function.body).outer & names.written
        if declared:
            return f"it changes `{min(declared)}`, which is declared global or nonlocal"
        if names.deleted:
            return f"`del {min(names.deleted)}` is in it"
        if isinstance(node, ast.While) and any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            return "`:=` is in its condition"
        return None

    def _note_inner(self, inner: Any, captured: set[str]) -> None:
        """Make statements plain if they change a variable that an inner function reads: a block would have a copy."""
        if isinstance(inner, ast.GeneratorExp) and inner in _arguments(self.function):
            return
        for node in self.kinds:
            for name in sorted(captured & Names([node]).written):
                if self._would_differ(node, inner, name):
                    why = f"the inner function at line {inner.lineno} uses `{name}`, which it changes"
                    self.reasons.setdefault(node, why)
                    if self.kinds[node] == "dynamic":
                        self.kinds[node] = "plain"

    def _would_differ(self, node: Any, inner: Any, name: str) -> bool:
        after = _place(inner)
        if not any(n is inner for n in ast.walk(node)):
            shared = [loop for loop in self.loops[node] if any(n is inner for n in ast.walk(loop))]
            return bool(shared) or _place(node) > after
        within = set(map(id, ast.walk(node)))
        later = [n for n in walk_frame(self.function.body)
                 if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                 and id(n) not in within and _place(n) > after]
        return isinstance(node, LOOPS) or bool(self.loops[node]) or bool(later)

    # settling ---------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Make the statements that a jump leaves all dynamic, or all plain."""
        changed = True
        while changed:
            before = dict(self.kinds)
            for jump in self.jumps:
                self._settle_jump(jump)
            for jump in self._later_returns():
                self._settle_return(jump)
            changed = before != self.kinds

    def _settle_jump(self, jump: Jump) -> None:
        dynamic = [s for s in jump.leaves if self.kinds.get(s) == "dynamic"]
        if not dynamic:
            return
        loops = [s for s in jump.leaves if isinstance(s, LOOPS) and self.kinds[s] == "static"]
        why = self._hindrance(jump, loops)
        for node in dynamic if why else loops:
            self.kinds[node] = "plain" if why else "dynamic"
            if why:
                self.reasons.setdefault(node, why)

    def _leaves_dynamic(self, jump: Jump) -> bool:
        return any(self.kinds.get(node) == "dynamic" for node in jump.leaves)

    def _later_returns(self) -> list[Jump]:
        """The `return`s after one that becomes a flag: they move into its `else`."""
        returns = [jump for jump in self.jumps if isinstance(jump.node, ast.Return)]
        flagged = [_place(jump.node) for jump in returns if self._leaves_dynamic(jump)]
        return [jump for jump in returns if flagged and _place(jump.node) > min(flagged)]

    def _settle_return(self, jump: Jump) -> None:
        """Make a later `return` a flag as well, or make all statements with a `return` plain."""
        loops = [s for s in jump.leaves if isinstance(s, LOOPS) and self.kinds[s] == "static"]
        why = self._hindrance(jump, loops)
        for node in () if why else loops:
            self.kinds[node] = "dynamic"
        for other in self.jumps if why else ():
            for left in other.leaves if isinstance(other.node, ast.Return) else ():
                if self.kinds.get(left) == "dynamic":
                    self.kinds[left] = "plain"
                    self.reasons.setdefault(left, why or "")

    def _hindrance(self, jump: Jump, loops: list[Any]) -> str | None:
        word = type(jump.node).__name__.lower()
        for node in jump.leaves:
            if isinstance(node, (*CLOSED, ast.AsyncFor)):
                closed = {ast.Match: "match", ast.AsyncFor: "async for"}.get(type(node), "try")
                return f"the `{word}` at line {jump.node.lineno} leaves `{closed}`"
            if self.kinds.get(node) == "plain" or (node in loops and node in self.reasons):
                return f"the `{word}` at line {jump.node.lineno} leaves the statement at line {node.lineno}, " + (
                    f"which stays plain Python: {self.reasons[node]}"
                )
        return None


def _place(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _whole_reason(function: Any) -> str | None:
    if isinstance(function, ast.AsyncFunctionDef):
        return "it is in an `async` function"
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_frame(function.body)):
        return "it is in a generator"
    return None


def _arguments(function: Any) -> list[ast.expr]:
    return [a for n in ast.walk(function) if isinstance(n, ast.Call) for a in n.args]
