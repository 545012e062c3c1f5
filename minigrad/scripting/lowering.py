"""Replaces early `return`, `break` and `continue` by flags, so that only nested control flow is left.

The statements after an `if` that always jumps move into its other branch:

    if x < 0:               if x < 0:
        return -x     ->        result = -x
    return x                else:
                                result = x
                            return result

In loops, and after an `if` that only sometimes jumps, a flag says whether to go on: `looping` for the loop, `proceed`
for this turn of the loop, `running` for the function.  Flags that no statement reads are removed.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .classify import CLOSED, LOOPS, Kinds, bodies_of
from .making import Fresh, assign, load, placed


class Flow(NamedTuple):
    """Statements, the flagged jumps in them, and whether their end can be reached."""

    body: list[ast.stmt]
    jumps: frozenset[str]
    falls: bool


class Loop(NamedTuple):
    """The flags of a loop whose jumps are flagged."""

    looping: str
    proceed: str


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether the end of these statements can be reached."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return False
        if isinstance(node, ast.If) and node.orelse and not falls_through(node.body) and not falls_through(node.orelse):
            return False
        if isinstance(node, (ast.With, ast.AsyncWith)) and not falls_through(node.body):
            return False
        if isinstance(node, ast.While) and _forever(node.test) and not _breaks(node.body):
            return False
        if isinstance(node, (ast.Try, ast.TryStar)):
            ways = [[*node.body, *node.orelse], *[handler.body for handler in node.handlers]]
            if not any(map(falls_through, ways)) or (node.finalbody and not falls_through(node.finalbody)):
                return False
    return True


def _forever(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` in the body of a loop ends that loop."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        inner: list[Any] = node.orelse if isinstance(node, (*LOOPS, ast.AsyncFor)) else [*ast.iter_child_nodes(node)]
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and _breaks(inner):
            return True
    return False


class Lowering:
    """Lowers the body of one function in place, and adds the new statements to `kinds`."""

    def __init__(self, function: Any, kinds: Kinds, fresh: Fresh) -> None:
        self.kinds, self.fresh = kinds, fresh
        self.loops: list[Loop] = []
        self.flags: set[str] = set()
        self.going: dict[ast.AST, str] = {}  # a `for` loop -> the flag that must be on for its next turn
        self.result: str | None = None
        self.running = ""
        returns = [node for node in kinds.flagged if isinstance(node, ast.Return)]
        if returns:
            self._lower_returns(function)
        else:
            function.body = self.block(function.body).body
        self._forget_unread(function)

    def _lower_returns(self, function: Any) -> None:
        self.result, self.running = self.fresh("result"), self._flag("running")
        body = list(function.body)
        if falls_through(body):
            last = placed(ast.Return(ast.Constant(None)), body[-1])
            self.kinds.flagged.add(last)
            body.append(last)
        last = function.body[-1]
        start = 1 if ast.get_docstring(function, clean=False) is not None else 0
        lowered = self.block(body[start:]).body
        begin = placed(assign(self.running, ast.Constant(True)), body[start])
        end = placed(ast.Return(load(self.result)), last)
        function.body = [*body[:start], begin, *lowered, end]

    def _flag(self, base: str) -> str:
        name = self.fresh(base)
        self.flags.add(name)
        return name

    # statements -------------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> Flow:
        """Lower a list of statements."""
        done: list[ast.stmt] = []
        for number, node in enumerate(body):
            rest = body[number + 1 :]
            if node in self.kinds.flagged:
                return Flow([*done, *self._jump(node)], frozenset([type(node).__name__.lower()]), False)
            if isinstance(node, ast.If):
                flow = self._if(node, rest)
            elif isinstance(node, LOOPS):
                flow = self._loop(node, rest)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                flow = self._with(node, rest)
            else:
                for inner in bodies_of(node) if isinstance(node, (*CLOSED, ast.AsyncFor)) else ():
                    inner[:] = self.block(inner).body
                done.append(node)
                if not falls_through([node]):
                    return Flow(done, frozenset(), False)
                continue
            return Flow([*done, *flow.body], flow.jumps, flow.falls)
        return Flow(done, frozenset(), True)

    def _jump(self, node: Any) -> list[ast.stmt]:
        """The assignments that replace a jump."""
        made: list[ast.stmt] = []
        if isinstance(node, ast.Return):
            made.append(assign(self.result or "", node.value or ast.Constant(None)))
            off = [self.running, *[flag for loop in self.loops for flag in loop]]
        else:
            off = [self.loops[-1].proceed] if isinstance(node, ast.Continue) else list(self.loops[-1])
        made += [assign(flag, ast.Constant(False)) for flag in off]
        return [placed(statement, node) for statement in made]

    def _if(self, node: ast.If, rest: list[ast.stmt]) -> Flow:
        body, other = self.block(node.body), self.block(node.orelse)
        jumps = body.jumps | other.jumps
        if jumps and not body.falls and other.falls:
            other, rest = self._joined(other, rest), []
        elif jumps and body.falls and not other.falls:
            body, rest = self._joined(body, rest), []
        jumps = body.jumps | other.jumps
        node.body, node.orelse = body.body, other.body
        return self._then(Flow([node], jumps, body.falls or other.falls), rest, node)

    def _joined(self, flow: Flow, rest: list[ast.stmt]) -> Flow:
        """A branch whose end can be reached, and the statements after the `if`."""
        return self._then(flow, rest, rest[0]) if rest else flow

    def _then(self, first: Flow, rest: list[ast.stmt], node: ast.stmt) -> Flow:
        """Some statements, and the rest under the condition that no jump has happened."""
        if not rest or not first.falls:
            return first
        after = self.block(rest)
        jumps = first.jumps | after.jumps
        if not first.jumps:
            return Flow([*first.body, *after.body], jumps, after.falls)
        guard = placed(ast.If(load(self._go_on(first.jumps)), after.body, []), node)
        self.kinds.kinds[guard] = "dynamic"
        return Flow([*first.body, guard], jumps, True)

    def _go_on(self, jumps: frozenset[str]) -> str:
        """The flag that is on while none of these jumps has happened."""
        if not self.loops:
            return self.running
        return self.loops[-1].proceed if "continue" in jumps else self.loops[-1].looping

    def _with(self, node: Any, rest: list[ast.stmt]) -> Flow:
        flow = self.block(node.body)
        node.body = flow.body
        return self._then(Flow([node], flow.jumps, flow.falls), rest, node)

    def _loop(self, node: Any, rest: list[ast.stmt]) -> Flow:
        if self.kinds.of(node) != "dynamic":
            node.body, node.orelse = self.block(node.body).body, self.block(node.orelse).body
            return self._then(Flow([node], frozenset(), falls_through([node])), rest, node)
        loop = Loop(self._flag("looping"), self._flag("proceed"))
        self.loops.append(loop)
        flow = self.block(node.body)
        self.loops.pop()
        begin = [placed(assign(loop.proceed, ast.Constant(True)), node)] if "continue" in flow.jumps else []
        node.body, before, orelse = [*begin, *flow.body], [], node.orelse
        ends = flow.jumps - {"continue"}
        endless = isinstance(node, ast.While) and _forever(node.test)
        if ends:
            before = [placed(assign(loop.looping, ast.Constant(True)), node)]
            if isinstance(node, ast.While):
                test: ast.expr = load(loop.looping)
                node.test = placed(test if endless else ast.BoolOp(ast.And(), [test, node.test]), node)
            else:
                self.going[node] = loop.looping
            if orelse:
                orelse = [placed(ast.If(load(loop.looping), orelse, []), orelse[0])]
                self.kinds.kinds[orelse[0]] = "dynamic"
        node.orelse = []
        jumps = ends & {"return"}
        after = Flow([*before, node], frozenset(), not endless or bool(ends))
        if orelse:
            after = self._then(after, orelse, node)
            jumps |= after.jumps
        falls = after.falls and not (endless and ends == {"return"})
        return self._then(Flow(after.body, jumps, falls), rest, node)

    def _forget_unread(self, function: Any) -> None:
        """Remove the flags that no statement reads."""
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        unread = self.flags - read - set(self.going.values())
        for node in ast.walk(function):
            for body in bodies_of(node):
                kept = [s for s in body if not _sets(s, unread)]
                body[:] = kept or [ast.copy_location(ast.Pass(), body[0])]


def _sets(node: ast.stmt, names: set[str]) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names
