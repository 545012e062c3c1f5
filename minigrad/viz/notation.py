"""How expressions of a program are written in a picture: Python as mathematics, short enough for a box."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

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
        if not parts and isinstance(whole, ast.Call) and len(text) > LONG + 8:
            whole.args = [DOTS]
        if not parts:
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
