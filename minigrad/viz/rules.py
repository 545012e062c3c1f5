"""Gradient rules as people write them: the chain rule with the names and shapes of this very node put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache

from ..core.node import Node
from ..support.table import escape
from .numbers import short

ADDED = "<mo><mrow><mo>&#x0002B;</mo></mrow></mo><mo>&#x0003D;</mo>"  # what the package makes of "+="
DIGITS = re.compile(r"\\operatorname\{(\w*\d\w*)\}")  # names that the package takes apart
BASE = "".join(f"(?<!<{tag}>)" for tag in ("msup", "msub", "munder", "mover", "munderover"))
NAMED = re.compile(BASE + r"<(m[io])[^>]*>([A-Za-z]{2,})</\1>(?=(<mo[^>]*>&#x00028;)?)")
POWER = re.compile(r"(<msup><mi>[a-z]{2,}</mi><mn>\d</mn></msup>)(?=<mi>)")
THIN = '<mspace width="0.167em"/>'
VARIABLE = re.compile(r"(?<![\\A-Za-z])[a-z](?![A-Za-z])")


def formula_of(node: Node, called: Callable[[Node], str], around: Collection[str] = ()) -> str:
    r"""LaTeX of what `node` computes, of what it computes it from: the `x` of a formula may be somebody else's.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> formula_of((x * 3).node, lambda node: node.name), formula_of((x + x).node, lambda node: "a")
    ('x \\cdot 3', 'a + a')
    """
    assert node.op is not None
    names = {node.op.name_of(i): x for i, x in enumerate(node.inputs)}
    taken = {called(each) for each in (node, *node.inputs) if isinstance(each, Node)} | set(around)
    return VARIABLE.sub(lambda m: _put_in(m.group(), names, called, taken, False), node.op.formula)


def rule_of(node: Node, index: int, called: Callable[[Node], str], around: Collection[str] = ()) -> str:
    r"""LaTeX of what `node` passes back to its input `index`; `around` it are other values of these names.

    >>> x = mg.asarray(2.0, requires_grad=True)
    >>> rule_of(mg.tanh(x).node, 0, lambda node: node.name)
    '\\bar{x} \\mathrel{+}= \\bar{\\mathrm{out}} \\cdot \\left(1 - \\tanh^2 x\\right)'
    """
    op = node.op
    assert op is not None
    name = op.name_of(index).split("[")[0]
    local = op.local.get(name, "")
    by = next((getattr(rule.function, "by", None) for rule in node.plan.rules if rule.index == index), None)
    taken = {called(each) for each in (node, *node.inputs) if isinstance(each, Node)} | set(around)
    source = node.inputs[index]
    own = _sized(_bar(_symbol(source, called, _letter(name, source, taken))), source)
    result = _sized(_bar(_symbol(node, called, r"\mathrm{out}")), node)
    if by is not None:  # somebody put a rule of theirs in the place of ours
        return rf"{own} \mathrel{{+}}= \text{{{_words(by)}}}\left({result}, \dots\right)"
    if not local:  # the other linear operations move numbers about, and back
        back = rf"\mathrm{{{_words(op.name)}}}" + (r"^{\mathsf T}" if op.linear else "'")
        return rf"{own} \mathrel{{+}}= {back}\left({result}\right)"
    names = {op.name_of(i): x for i, x in enumerate(node.inputs)}
    sized = r"\bar g" in local
    filled = VARIABLE.sub(lambda m: _put_in(m.group(), names, called, taken, sized), local)
    if r"\bar g" in filled:
        filled = filled.replace(r"\bar g", result)
        return rf"{own} \mathrel{{+}}= {filled}"
    if filled == "1":
        return rf"{own} \mathrel{{+}}= {result}"
    single = re.fullmatch(r"\w|\d+(\.\d+)?|\\mathrm\{\w+\}|\\frac\{.*\}", filled)
    return rf"{own} \mathrel{{+}}= {result} \cdot " + (filled if single else rf"\left({filled}\right)")


def _letter(letter: str, value: object, taken: set[str]) -> str:
    """The letter that a rule has for an input, or the operation's name where the user calls something else so."""
    return rf"\mathrm{{{_words(value.name)}}}" if letter in taken and isinstance(value, Node) else letter


def _put_in(
    letter: str, names: dict[str, object], called: Callable[[Node], str], taken: set[str], sized: bool
) -> str:
    if letter not in names:
        return letter
    symbol = _symbol(names[letter], called, _letter(letter, names[letter], taken))
    return _sized(symbol, names[letter]) if sized else symbol


def _sized(symbol: str, value: object) -> str:
    """The symbol with its shape below, if it has one that says something."""
    if not isinstance(value, Node) or not value.shape or isinstance(value.shape[0], tuple):
        return symbol
    shape = r" \times ".join(map(str, value.shape))
    return rf"\underset{{{shape}}}{{{symbol}}}"


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


PLAIN = [
    (r"\\underset\{[^{}]*\}", ""), (r"\\(?:mathrm|text|operatorname)\{([^{}]*)\}", r"\1"),
    (r"\\bar\{([^{}]*)\}", r"∂\1"), (r"\\bar ", "∂"), (r"\^\{(-?)\\mathsf T\}", r"\1ᵀ"), (r"\\mathrel\{\+\}=", "+="),
    (r"\\sqrt\{([^{}]*)\}", r"√(\1)"),
    (r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"(\1) / (\2)"),
    (r"\\cdot", "·"), (r"\\dots", "…"), (r"\\(?:left|right)", ""), (r"\\,", " "), (r"\\_", "_"),
    (r"\\sum", "∑"), (r"\\prod", "∏"),
    (r"\\ne\b", "≠"), (r"\\le\b", "≤"), (r"\\neg", "not"), (r"\\times", "×"), (r"\\(\w+)", r"\1"), (r"[{}]", ""),
]


def plain(latex: str) -> str:
    r"""LaTeX of ours as a line of text, for where no formula can be shown.

    >>> plain(r"\bar{x} \mathrel{+}= \bar{\mathrm{out}} \cdot \left(1 - \tanh^2 x\right)")
    '∂x += ∂out · (1 - tanh^2 x)'
    """
    for pattern, replacement in PLAIN:
        latex = re.sub(pattern, replacement, latex)
    return latex


@cache
def mathml(latex: str, block: bool = False) -> str:
    """LaTeX as MathML, which browsers show by themselves; as a line of text, where the package for that is missing.

    >>> "math" in mathml("x") or "<code>" in mathml("x")
    True
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return f"<code>{escape(plain(latex))}</code>"
    made = convert(DIGITS.sub(r"\\text{\1}", latex), display="block" if block else "inline")
    made = POWER.sub(rf"\1{THIN}", NAMED.sub(_as_a_function, str(made)))
    made = made.replace(r"\_", "_")
    return made.replace(ADDED, "<mo>+=</mo>").replace('"sans-serif"', '"normal"')  # as no browser has it any more


def _as_a_function(found: re.Match[str]) -> str:
    """The name of a function set as TeX does: no space before it, and a thin one where no parenthesis follows."""
    return f"<mi>{found[2]}</mi>" + ("" if found[3] else THIN)
