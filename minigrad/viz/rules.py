"""Gradient rules as people write them: the chain rule with the names and shapes of this very node put in."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from ..core.node import Node
from .numbers import short

ADDED = "<mo><mrow><mo>&#x0002B;</mo></mrow></mo><mo>&#x0003D;</mo>"  # what the package makes of "+="
VARIABLE = re.compile(r"(?<![\\A-Za-z])[a-z](?![A-Za-z])")


def rule_of(node: Node, index: int, called: Callable[[Node], str]) -> str:
    r"""LaTeX of what `node` passes back to its input `index`.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> rule_of(mg.tanh(x).node, 0, lambda node: node.name)
    '\\bar{x} \\mathrel{+}= \\bar{\\mathrm{out}} \\cdot \\left(1 - \\tanh^2 x\\right)'
    """
    op = node.op
    assert op is not None
    name = op.name_of(index).split("[")[0]
    local = op.local.get(name, "")
    own = _bar(_symbol(node.inputs[index], called, name))
    result = _bar(_symbol(node, called, r"\mathrm{out}"))
    if not local:
        return rf"{own} \mathrel{{+}}= \text{{what {_words(op.name)} says}}"
    names = {op.name_of(i): x for i, x in enumerate(node.inputs)}
    filled = VARIABLE.sub(lambda m: _put_in(m.group(), names, called), local)
    if r"\bar g" in filled:
        filled = filled.replace(r"\bar g", result)
        return rf"{own} \mathrel{{+}}= {filled}"
    if filled == "1":
        return rf"{own} \mathrel{{+}}= {result}"
    single = len(filled) == 1 or re.fullmatch(r"\\mathrm\{\w+\}", filled)
    return rf"{own} \mathrel{{+}}= {result} \cdot " + (filled if single else rf"\left({filled}\right)")


def _put_in(letter: str, names: dict[str, object], called: Callable[[Node], str]) -> str:
    return _symbol(names[letter], called, letter) if letter in names else letter


def _symbol(value: object, called: Callable[[Node], str], otherwise: str) -> str:
    """What an input is called in a formula: its number, its name if it has one, else the letter of the rule."""
    if not isinstance(value, Node):
        return short(value).replace("−", "-")
    name = called(value)
    plain = name.isidentifier() and name != value.name and name != "parameter"
    return (name if len(name) == 1 else rf"\mathrm{{{_words(name)}}}") if plain else otherwise


def _bar(symbol: str) -> str:
    return rf"\bar{{{symbol}}}"


def _words(name: str) -> str:
    return name.replace("_", r"\_")


def mathml(latex: str) -> str:
    """LaTeX as MathML, which browsers show by themselves; as it is, where the package for that is missing.

    >>> "math" in mathml("x") or "<code>" in mathml("x")
    True
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return f"<code>{escape(latex)}</code>"
    return str(convert(latex)).replace(ADDED, "<mo>+=</mo>")
