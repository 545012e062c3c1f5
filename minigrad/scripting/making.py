"""Makes small pieces of syntax trees, and gives them the line of the code that they replace."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any


class Fresh:
    """Makes names that the function does not use: `loop_body`, then `loop_body_2`."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def __call__(self, base: str) -> str:
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


def placed(made: Any, original: ast.AST) -> Any:
    """`made`, with the position of `original` where it has none, so that tracebacks show that line.

    If the original spans several lines, this is the line of its condition, or the first.
    """
    shown: Any = getattr(original, "test", None) or getattr(original, "iter", None) or original
    for node in ast.walk(made):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, shown)
            if shown.end_lineno != shown.lineno:
                node.end_lineno, node.end_col_offset = shown.lineno, shown.col_offset + 1  # type: ignore[attr-defined]
    return made


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def stored(names: Sequence[str]) -> ast.expr:
    """The target of an assignment to one name or several."""
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    return targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())


def loaded(names: Sequence[str]) -> ast.expr:
    """The values of one name or several."""
    values: list[ast.expr] = [load(name) for name in names]
    return values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _arguments(parameters: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])


def thunk(value: ast.expr, parameters: Sequence[str] = ()) -> ast.Lambda:
    """`lambda: value`, which computes the value only when it is called."""
    return ast.Lambda(_arguments(parameters), value)


def function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, _arguments(parameters), body or [ast.Pass()], [], None)
    made.type_params = []  # type: ignore[attr-defined]  # from Python 3.12 on
    return made


def call(owner: str, method: str, *arguments: ast.expr, **keywords: ast.expr) -> ast.Call:
    named = [ast.keyword(name, value) for name, value in keywords.items()]
    return ast.Call(ast.Attribute(load(owner), method, ast.Load()), list(arguments), named)
