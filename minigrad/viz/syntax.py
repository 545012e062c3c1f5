"""The expressions of a program, each found by the position of the instruction that computed its value.

Python stores for every instruction the lines and columns of its expression.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from typing import Any

from ..support.source import Where, parsed, span_of
from .notation import as_text


class Syntax:
    """The expressions of a file, by where they are, and what their values are assigned to."""

    def __init__(self, text: str) -> None:
        self.expressions: dict[tuple[int, ...], ast.AST] = {}
        self.targets: dict[tuple[int, ...], str] = {}
        self.loops: list[tuple[int, int, str]] = []  # the first and the last line, and what is repeated
        try:
            tree = parsed(text)
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                self._assigned(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._assigned(node.target, node.value)
            elif isinstance(node, ast.AugAssign):
                self._assigned(node.target, node)
                written = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
                self.expressions[_key(node)] = written
            elif isinstance(node, ast.Call) and "viz" in ast.unparse(node.func).split("."):
                continue  # what a view calls is not written there
            elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call | ast.Subscript | ast.Attribute):
                self.expressions.setdefault(_key(node), node)
            elif isinstance(node, ast.For | ast.While):
                self.loops.append((node.lineno, node.end_lineno or node.lineno, _repeats(node)))

    def _assigned(self, target: ast.expr, value: ast.AST) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self.targets[_key(value)] = ast.unparse(target)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):  # q, k = x @ wq, x @ wk
            for each, part in zip(target.elts, value.elts):
                self._assigned(each, part)
        elif isinstance(target, ast.Tuple):  # a, b = f(x)
            self.targets[_key(value)] = ""


def _repeats(loop: ast.For | ast.While) -> str:
    """The head of a loop: `for word in words`."""
    if isinstance(loop, ast.While):
        return f"while {as_text(loop.test, {})}"
    return f"for {ast.unparse(loop.target)} in {as_text(loop.iter, {})}"


def _key(node: Any) -> tuple[int, ...]:
    """Where an expression is.  Of a call, only the end: the start that Python stores differs between its versions."""
    start = (0, 0) if isinstance(node, ast.Call) else (node.lineno, node.col_offset)
    return (*start, node.end_lineno, node.end_col_offset)


_syntax = lru_cache(64)(Syntax)


def syntax_of(file: str) -> Syntax:
    return _syntax("".join(linecache.getlines(file)))


@lru_cache(10_000)
def found_at(where: Where | None) -> tuple[ast.AST | None, str | None]:
    """The expression at an instruction, and what its value is assigned to; "" for several names."""
    span = None if where is None else span_of(where)
    if where is None or span is None:
        return None, None
    line, last, start, end = span
    syntax = syntax_of(where[0].co_filename)
    for key in ((line, start, last, end), (0, 0, last, end)):
        found: Any = syntax.expressions.get(key)
        if found is not None and (found.lineno, found.col_offset) <= (line, start):  # a loop may end where a call ends
            return found, syntax.targets.get(key)
    return None, None


def expression_at(where: Where | None) -> ast.AST | None:
    """The expression at an instruction."""
    return found_at(where)[0]


def function_of(written: ast.AST | None) -> str | None:
    """The name of the function that is called."""
    function = getattr(written, "func", None)
    while isinstance(function, ast.Call):  # grad(f)(x)
        function = function.func
    return getattr(function, "attr", getattr(function, "id", None))
