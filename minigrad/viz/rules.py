"""Gradient rules as people write them: the chain rule with the names, shapes and numbers of one node put in."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..core.node import Node
from ..core.primitive import P
from ..support.table import printable
from .naming import composed, operation_name
from .notation import gradient_of, symbol_of
from .numbers import short

ADDED = "<mo><mrow><mo>&#x0002B;</mo></mrow></mo><mo>&#x0003D;</mo>"  # what the package makes of "+="
# the name of a function, which the package sets without a space after it
FUNCTION = re.compile(r"(\\(?:operatorname\{\w+\}|cos|det|exp|ln|log|max|min|sin|tanh)(?:\^2)?) ")
NAMED = re.compile(r"\\(?:operatorname\{(\w+)\}|(det|max|min)\b)")  # which the package does not set as names
# where a formula that is too long for a line is broken
BREAKS = re.compile(r"(?= (?:\\mathrel\{\+\}=|=|\\cdot|[+-]) )|(?=\\,)")
REDUCED = re.compile(r"\\(?:sum|prod|max|min|operatorname\{argm\w+\})(?!\w)")
VARIABLE = re.compile(r"(?<![\\A-Za-z])[a-z](?![A-Za-z])")
OUT = r"\partial\mathrm{out}"  # the gradient of the result, in the rule of an operation
LETTERS = {"condition": "c", "base": "b", "value": "v", "indices": "i"}  # of inputs whose names are words
PARTS = P.project, P.gather  # whose gradient is that of a part
REPLACED = str.maketrans("{}\\", "()/")
TEXT = re.compile(r"\\text\{[^{}]*\}")
Called = Callable[[Node], str]  # what a value is called in a formula: a name, or an expression
Symbol = Callable[[Any], str]  # how an input of a node is written: LaTeX of its name or number


def formula_of(node: Node, called: Called, numbers: Mapping[Node, Any] = {}) -> str:
    r"""LaTeX of what `node` computes; with the `numbers` of single-number values, also how its own comes about.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> formula_of((x * 3).node, lambda node: "a")
    '\\text{a} \\cdot 3'
    >>> formula_of((x * x).node, lambda node: "a", numbers={x.node: 2.0})
    '\\text{a} \\cdot \\text{a} = 2 \\cdot 2'
    """
    assert node.op is not None
    symbol = _symbols(called)
    right = _filled(node, symbol, node.op.formula)
    letters = {*VARIABLE.findall(node.op.formula)} - {*_inputs(node), "e"}
    unsaid = node.op in (P.slice, P.reshape) or (node.op is P.permute_dims and node.ndim != 2)  # how it moves numbers
    if not right or unsaid or (letters and node.op.kind != "reduce"):
        right = _text(composed(node, [symbol_of(called(x)) if isinstance(x, Node) else short(x) for x in node.inputs]))
    right = _along(node, right)
    counted = _counted(node, numbers, node.op.formula)
    own = _number(numbers[node]) if counted and node in numbers else ""
    return " = ".join([each for each in (right, counted, own) if each])


def rule_of(node: Node, index: int, called: Called) -> str:
    r"""LaTeX of what `node` passes back to its input `index`.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> plain(rule_of(mg.tanh(x).node, 0, lambda node: "x" if node is x.node else "y"))
    '∂x += ∂y · (1 - tanh^2 x)'
    """
    assert node.op is not None
    source, symbol = node.inputs[index], _symbols(called)
    own = _gradient(source, called)
    if node.op in PARTS:
        where = [node.attrs["index"]] if node.op is P.project else map(symbol, node.inputs[1:])
        own = rf"{own}[{', '.join(map(str, where))}]"
    result = _gradient(node, called)
    return rf"{own} \mathrel{{+}}= {_summed(node, source)}{_right(node, index, result, symbol)}"


def rule_with_numbers(node: Node, index: int, numbers: Mapping[Node, Any], g: Any, value: Any) -> str:
    r"""LaTeX of the right side with the `numbers` of single-number values, the gradient `g` of `node`, and the result.

    It is empty where numbers say no more than the rule.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> rule_with_numbers((x * 3).node, 0, {}, 0.5, 1.5)
    '= 0.5 \\cdot 3 = 1.5'
    """
    counted = _counted(node, numbers, _local(node, index))
    if not counted:
        return ""
    result = short(value).replace("−", "-")
    return rf"= {_number(g)} \cdot {_factor(counted)} = {result}"


def _local(node: Node, index: int) -> str:
    """The derivative by an input, as the operation declares it; nothing where a rule of the user's replaces it."""
    local = node.op.local.get(node.op.name_of(index).split("[")[0], "")  # type: ignore[union-attr]
    return local if _by(node, index) is None else ""


def _by(node: Node, index: int) -> str | None:
    return next((getattr(rule.function, "by", None) for rule in node.plan.rules if rule.index == index), None)


def _right(node: Node, index: int, result: str, symbol: Symbol) -> str:
    """The right side of a rule."""
    assert node.op is not None
    local = _local(node, index)
    if not local and (by := _by(node, index)):
        return rf"{_text(by)}\left({result}, \dots\right)"
    if not local:  # the other linear operations move numbers about, and back
        if node.op in PARTS:
            return result
        if node.op is P.permute_dims and node.ndim == 2:
            return rf"\left({result}\right)^{{\mathsf T}}"
        back = _text(operation_name(node)) + (r"^{\mathsf T}" if node.op.linear else "'")
        return rf"{back}\left({result}\right)"
    sized = OUT in local
    inside = _filled(node, symbol, local, sized)
    if sized:
        return inside.replace(OUT, result)
    if inside == "1":  # of a sum, each of its numbers gets the gradient
        return rf"\mathrm{{broadcast}}\left({result}\right)" if node.op.kind == "reduce" else result
    return rf"{result} \cdot {_factor(_along(node, inside))}"


def _along(node: Node, latex: str) -> str:
    """A formula of a reduction with the axes along which it reduces, if these are not all."""
    axes = np.atleast_1d(node.attrs["axis"]) if node.op is not None and node.op.kind == "reduce" else ()
    if not 0 < len(axes) < node.inputs[0].ndim:
        return latex
    return REDUCED.sub(lambda found: rf"{found[0]}_{{\text{{axis {', '.join(map(str, axes))}}}}}", latex)


def _summed(node: Node, source: Node) -> str:
    """The sum along the axes along which an input was repeated."""
    assert node.op is not None
    if node.op.kind not in ("elementwise", "contract"):
        return ""
    rest = 2 if node.op.kind == "contract" else 0  # axes that are not repeated
    made, given = (each.shape[: each.ndim - rest] for each in (node, source))
    given = (1,) * (len(made) - len(given)) + given
    axes = [str(axis) for axis, (size, own) in enumerate(zip(made, given)) if size != own]
    return rf"\sum_{{\text{{axis {', '.join(axes)}}}}} " if axes else ""


def _factor(latex: str) -> str:
    """A factor of a product, in parentheses where it needs them."""
    single = re.fullmatch(
        r"\w|\d+(\.\d+)?|(e\^)?\\(mathrm|text)\{[^{}]*\}|\\frac\{.*\}|\\left\([^()]*\\right\)", latex
    )
    return latex if single else rf"\left({latex}\right)"


def _filled(node: Node, symbol: Symbol, formula: str, sized: bool = False) -> str:
    """The formula with its letters replaced by the symbols of the inputs, and with shapes if it is `sized`."""
    inputs = _inputs(node)

    def put(found: re.Match[str]) -> str:
        letter = found.group()
        own = ", ".join([_sized(symbol(x), x) if sized else symbol(x) for x in inputs.get(letter, ())]) or letter
        if formula[found.start() - 1 : found.end() + 1] == f"({letter})":  # with one pair of parentheses
            own = re.sub(r"\{\((.*)\)\}", r"{\1}", own)
        return own

    return VARIABLE.sub(put, formula)


def _gradient(node: Node, called: Called) -> str:
    return _sized(rf"\partial {_text(gradient_of(called(node))[1:])}", node)


def _inputs(node: Node) -> dict[str, list[Any]]:
    """The inputs that each letter of a formula stands for."""
    found: dict[str, list[Any]] = {}
    for i, x in enumerate(node.inputs):
        name = node.op.name_of(i).split("[")[0]  # type: ignore[union-attr]
        found.setdefault(LETTERS.get(name, name), []).append(x)
    return found


def _symbols(called: Called) -> Symbol:
    return lambda value: _text(symbol_of(called(value))) if isinstance(value, Node) else _number(value)


def _counted(node: Node, numbers: Mapping[Node, Any], formula: str) -> str:
    """A formula of a node with the numbers of its inputs; nothing where it has none, or one is not known."""
    try:
        counted = _filled(node, lambda x: _number(numbers[x] if isinstance(x, Node) else x), formula)
    except KeyError:
        return ""
    return "" if counted == formula else counted


def _number(value: Any) -> str:
    """A number in a formula, in parentheses if it is negative."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return rf"\mathrm{{{value}}}"
    text = short(value).replace("−", "-")
    mantissa, e, exponent = text.partition("e")
    if e:
        text = rf"{mantissa} \times 10^{{{int(exponent)}}}"
    return rf"\left({text}\right)" if text.startswith("-") or e else text


def _sized(symbol: str, value: object) -> str:
    """The symbol with its shape below, if it has one that says something."""
    if not isinstance(value, Node) or not value.shape or isinstance(value.shape[0], tuple):
        return symbol
    shape = r" \times ".join(map(str, value.shape))
    return rf"\underset{{{shape}}}{{{symbol}}}"


def _text(name: str) -> str:
    """A name as text in a formula; what LaTeX would obey is replaced."""
    return rf"\text{{{printable(name).translate(REPLACED)}}}"


PLAIN = [
    (r"\\underset\{[^{}]*\}", ""), (r"\\(?:mathrm|text|operatorname)\{([^{}]*)\}", r"\1"),
    (r"\\partial ?", "∂"), (r"\^\{(-?)\\mathsf T\}", r"\1ᵀ"), (r"\^\{([^{}]{2,})\}", r"^(\1)"),
    (r"\\mathrel\{\+\}=", "+="),
    (r"\\sqrt\{([^{}]*)\}", r"√(\1)"),
    (r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"(\1) / (\2)"),
    (r"\\cdot", "·"), (r"\\dots", "…"), (r"\\(?:left|right)", ""), (r"\\,", " "),
    (r"\\sum", "∑"), (r"\\prod", "∏"),
    (r"\\ne\b", "≠"), (r"\\le\b", "≤"), (r"\\neg", "not"), (r"\\times", "×"), (r"\\(\w+)", r"\1"), (r"[{}]", ""),
]


def plain(latex: str) -> str:
    r"""LaTeX of ours as a line of text, for where no formula can be shown.

    >>> plain(r"\partial x \mathrel{+}= \partial\mathrm{out} \cdot \left(1 - \tanh^2 x\right)")
    '∂x += ∂out · (1 - tanh^2 x)'
    """
    for pattern, replacement in PLAIN:
        latex = re.sub(pattern, replacement, latex)
    return latex


@cache
def mathml(latex: str) -> str:
    """LaTeX as MathML, which browsers show; as a line of text, where the package that makes it is missing.

    >>> "math" in mathml("x") or "<code>" in mathml("x")
    True
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return f"<code>{html.escape(plain(latex))}</code>"
    parts = [""]
    for piece in BREAKS.split(latex):
        bare = TEXT.sub("", parts[-1])
        whole = all(bare.count(opens) == bare.count(closes) for opens, closes in ("{}", "[]", "()"))
        parts[-1:] = [parts[-1], piece] if whole else [parts[-1] + piece]
    spaced = [NAMED.sub(r"\\text{\1\2}", FUNCTION.sub(r"\1\\,", part)) for part in parts if part]
    found = [TEXT.sub(lambda name: html.escape(name[0]), part) for part in spaced]
    made = "".join(map(convert, found))  # which leaves text as it is
    # Text counts as space: an operator with nothing else beside it has no room.  All have the upright font.
    made = made.replace("<mtext>", '<mi mathvariant="normal">').replace("</mtext>", "</mi>")
    return made.replace(ADDED, "<mo>+=</mo>").replace('"sans-serif"', '"normal"')
