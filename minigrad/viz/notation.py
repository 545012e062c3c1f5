"""The expressions of a program: each found by the instruction that computed its value, and written as mathematics.

Python stores for every instruction the lines and columns of its expression.  A picture shows it short enough for a box.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..support.source import Where, parsed, span_of

LONG = 28  # characters: in a longer expression, dots replace operands that have boxes of their own
SIGNS = {
    "add": "+", "subtract": "−", "multiply": "·", "divide": "/", "pow": "^", "matmul": "@", "equal": "=",
    "not_equal": "≠", "less": "<", "less_equal": "≤", "greater": ">", "greater_equal": "≥",
}
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
WRITTEN = {" * ": " · ", " ** ": " ^ ", "-": "−"}
LIBRARIES = {"mg", "minigrad", "nn", "F"}  # whose functions are written without the module's name
ATOMS = ast.Name | ast.Constant | ast.Attribute
PLACES = ast.Name | ast.Attribute | ast.Subscript


class _Renamed(ast.NodeTransformer):
    """Names get their numbers, and library functions lose the name of their module."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self.versions = versions

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, PLACES) and ast.unparse(node) in self.versions:
            return ast.Name(self.versions[ast.unparse(node)])
        node = self.generic_visit(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in LIBRARIES:
            return ast.Name(node.attr)
        return node


class _Called(ast.NodeTransformer):
    """Calls lose their arguments: `f(…)`, and `sum(…)` for `(h * h).sum()`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = self.visit(node.func)
        if isinstance(function, ast.Attribute) and not isinstance(function.value, ATOMS):
            function = ast.Name(function.attr)
        return ast.Call(function if isinstance(function, ATOMS) else DOTS, [DOTS], [])


DOTS = ast.Name("…")


def as_text(expression: Any, versions: Mapping[str, str]) -> str:
    """An expression as text that fits into a box; `versions` are the names that stand for names of the code.

    A long one loses the arguments of the calls in it, and then its operands, the longest first: boxes show them.

    >>> as_text(ast.parse("mg.tanh(h * w)", mode="eval").body, {"h": "h₂"})
    'tanh(h₂ · w)'
    """
    whole: Any = _Renamed(versions).visit(ast.parse(ast.unparse(expression), mode="eval").body)
    text = in_symbols(ast.unparse(whole))
    if len(text) > LONG:
        whole.keywords = []
        text = in_symbols(ast.unparse(_Called().generic_visit(whole)))
    while len(text) > LONG:
        parts = [(field, i, part) for field, i, part in _operands(whole) if part is not DOTS]
        if not parts:
            if isinstance(whole, ast.Call) and len(text) > LONG + 8:
                whole.args = [DOTS]
            text = in_symbols(ast.unparse(whole))
            break
        field, i, _ = max(parts, key=lambda part: len(ast.unparse(part[2])))
        if field == "func" and isinstance(whole.func, ast.Attribute):  # `(h * h).sum()` is sum(…)
            whole.func, whole.args = ast.Name(whole.func.attr), [DOTS, *whole.args]
        elif i is None:
            setattr(whole, field, DOTS)
        else:
            getattr(whole, field)[i] = DOTS
        text = in_symbols(ast.unparse(whole))
    text = re.sub(r"…\.(\w+)\(", r"\1(…, ", text).replace("(…, )", "(…)")  # `….sum()` is sum(…)
    text = re.sub(r"…(, …)+", "…", text)
    return text if len(text) <= LONG + 8 else text[: LONG + 7] + "…"


def _operands(whole: Any) -> Iterator[tuple[str, int | None, ast.AST]]:
    """The operands of an expression that are expressions themselves, each with its field and its place in a list."""
    for field, value in ast.iter_fields(whole):
        for i, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if field == "func":
                part = getattr(part, "value", part)
            if isinstance(part, ast.expr) and (part is DOTS or not isinstance(part, ATOMS)):
                yield field, i, part


def in_symbols(text: str) -> str:
    """Python as mathematics; a text in quotes stays as it is.

    >>> in_symbols("x ** 3 * w - -1"), in_symbols("einsum('ii->', w ** -1.5)")
    ('x³ · w − −1', "einsum('ii->', w ^ −1.5)")
    """
    def written(found: re.Match[str]) -> str:
        return (found[1] or "").translate(SUPERSCRIPTS) or WRITTEN.get(found[0], found[0])

    return re.sub(r"'[^']*'| \*\* (-?\d+)\b(?![.e])| \*\*? |-", written, text)


def symbol_of(text: str) -> str:
    """A name or an expression as it stands behind ∂: `h`, `tanh(x)`, `(h · h)`.

    >>> [symbol_of(text) for text in ("self.w", "tanh(x)", "h · h", "y.sum()")]
    ['self.w', 'tanh(x)', '(h · h)', '(y.sum())']
    """
    return text if re.fullmatch(r"[\w.#\[\]'…∂ᵀ⁻₀-₉]+|∂?\w*\(([^()]|\([^()]*\))*\)[\wᵀ⁻]*", text) else f"({text})"


def gradient_of(text: str) -> str:
    """What the gradient of a name or an expression is called.

    >>> [gradient_of(text) for text in ("w", "h · h", "tanh(x)²")]
    ['∂w', '∂(h · h)', '∂(tanh(x)²)']
    """
    symbol = symbol_of(text)
    return f"∂({symbol})" if symbol.endswith(tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")) else f"∂{symbol}"


def unnumbered(words: str) -> str:
    """Names without their numbers, which differ from round to round of a loop; of a range, its name.

    >>> unnumbered("alpha₁₂, s₂ … s₄, t…")
    'alpha, s, t…'
    """
    return re.sub("[₀-₉]| … [^,…]*", "", words)


# Found in the source --------------------------------------------------------------------------------------------------


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
