"""Equations: rules such as `x * 1 -> x`, written as the pattern to find and its replacement.

In an equation, n and m match Python numbers and tensors filled with one number; other small letters match any input.
Arithmetic on numbers alone on the right side is done when the rule fires; integers wrap around like those of the dtype.
Keywords are attributes, `reshape(x, shape=s)`; a left side without keywords matches any attributes.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import Any

from ...core.dtypes import KIND_NAMES, float64
from ...core.node import Node
from ...core.primitive import P
from ...support.errors import ConversionError
from ...support.source import parsed
from ..loops.scalar import operator_of
from ..nodes.graph import node_like
from .match import Bound, Literal, Number, Operation, Part, ways
from .numbers import exponent, in_dtype, shaped, value_of, wrapped

EVERY = "biuf"  # all kinds of dtypes
NUMBER_NAMES = ("n", "m")


def log2(number: Any) -> int:
    """The exponent of a power of two."""
    power = exponent(number)
    if power is None:
        raise ArithmeticError(f"{number} is not a power of two")
    return power


def _parsed(text: str) -> ast.expr:
    return parsed(text.strip(), "eval").body


OPERATORS: dict[type | None, str] = {ast.Pow: "pow"}  # and the primitives that are one operator, expr="x + y"
for _op in P:
    _symbol, _operands = operator_of(_parsed(_op.expr)) if _op.expr else (None, [])
    if _symbol is not None and all(isinstance(operand, ast.Name) for operand in _operands):
        OPERATORS[_symbol] = _op.name
FUNCTIONS = {"__builtins__": {}, "log2": log2}  # of numbers

Names = dict[str, Any]  # the values of an equation's letters
Made = Callable[[Bound, Names, Node], Any]  # makes the replacement of a node, or an operand of the replacement


class Equation:
    """`left -> right` for the kinds of dtypes in `on`, where the function `when` returns True.

    `when` is called with the values of the letters that its parameters name; `node` is the node itself.

    >>> equation = Equation("x - -y -> x + y")
    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> equation((x - -x).node).name, equation((x - x).node)
    ('add', None)
    """

    def __init__(self, text: str, on: str = EVERY, when: Callable[..., Any] | None = None) -> None:
        self.text, self.on, self.when = text, on, when
        if text.count("->") != 1 or not on or not set(on) <= set(EVERY):
            raise ConversionError(
                f"{text!r} on {on!r} is not an equation", expect=f"'left -> right', and kinds of dtypes among {EVERY!r}"
            )
        left, right = map(_parsed, text.split("->"))
        self.parts: dict[str, Part] = {}  # of the left side, by their text: equal texts are one part
        self.attributes: list[tuple[Part, str, str]] = []  # on the left side: operation, attribute, letter
        pattern = self._part(left)
        if not isinstance(pattern, Operation):
            raise ConversionError(f"the left side of {text!r} is not an operation")
        self.pattern = pattern
        self.letters = [part for part in self.parts.values() if part.__class__ is Part]
        self.numbers = [part for part in self.parts.values() if part.__class__ is Number]
        self._given = [] if when is None else [*inspect.signature(when).parameters]
        known = {part.name for part in (*self.letters, *self.numbers)} | {letter for *_, letter in self.attributes}
        if not {*_letters(right), *self._given} <= known | {"node"}:
            raise ConversionError(
                f"the left side of {text!r} lacks a letter that is used",
                expect=", ".join(sorted(known)), actual=", ".join(sorted({*_letters(right), *self._given})),
            )
        self._made = self._made_by(right, top=True)

    @property
    def says(self) -> str:
        """The dtypes and the condition for which the equation holds, in words."""
        kinds = "for all dtypes" if self.on == EVERY else "for " + " and ".join(KIND_NAMES[kind] for kind in self.on)
        when = "" if self.when is None else (self.when.__doc__ or f"where {self.when.__name__}").strip()
        says = f"{kinds}, {when}".removesuffix(", ")
        return f"{says[:1].upper()}{says[1:]}."

    def __call__(self, node: Node) -> Node | None:
        """The replacement of a node, or None."""
        for bound in ways(self.pattern, node, {}):
            names = self._names(bound, node)
            if names is None or not (self.when is None or self.when(*[names[name] for name in self._given])):
                continue
            with suppress(ArithmeticError):  # a number on the right side does not exist
                new = shaped(self._made(bound, names, node), node)
                if new.dtype == node.dtype:  # a Python number lacks the dtype of the tensor beside it
                    return new
        return None

    def _names(self, bound: Bound, node: Node) -> Names | None:
        """The values of the letters; None where the kind of dtype or a number does not fit."""
        names: Names = {"node": node}
        for part in self.letters:
            names[part.name] = bound[part]
        if self.on != EVERY and self._kind(names) not in self.on:
            return None
        for part in self.numbers:
            number = _number(value_of(bound[part]), node.dtype)
            if number is None:
                return None
            names[part.name] = number
        for part, attribute, letter in self.attributes:
            value = bound[part].attrs[attribute]
            if names.setdefault(letter, value) != value:
                return None
        return names

    def _kind(self, names: Names) -> str:
        """The kind of the first operand that is a tensor; the result of a comparison has another kind."""
        tensors = [names[part.name] for part in self.letters if isinstance(names[part.name], Node)]
        return (tensors or [names["node"]])[0].dtype.kind  # type: ignore[no-any-return]

    # The left side --------------------------------------------------------------------------------------------------

    def _part(self, e: ast.expr) -> Part:
        text = ast.unparse(e)
        if text not in self.parts:
            self.parts[text] = self._new_part(e)
        return self.parts[text]

    def _new_part(self, e: ast.expr) -> Part:
        if isinstance(e, ast.Name):
            return (Number if e.id in NUMBER_NAMES else Part)(e.id)
        number = _literal(e)
        if number is not None:
            return Literal(number)
        name, operands = _operation(e)
        part = Operation(name, [self._part(operand) for operand in operands])
        self.attributes += [(part, attribute, letter) for attribute, letter in _attributes(e).items()]
        return part

    # The right side -------------------------------------------------------------------------------------------------

    def _made_by(self, e: ast.expr, top: bool = False) -> Made:
        part = self.parts.get(ast.unparse(e))
        if part is not None and part.__class__ is not Number:
            return lambda bound, names, node: bound[part]  # it exists already
        if _is_of_numbers(e):
            code = compile(ast.Expression(e), self.text, "eval")
            return lambda bound, names, node: _calculated(code, names, node, alone=top)
        name, operands = _operation(e)
        makers = [self._made_by(operand) for operand in operands]
        letters = _attributes(e)

        def apply(bound: Bound, names: Names, node: Node) -> Node:
            attrs = {attribute: names[letter] for attribute, letter in letters.items()}
            return node_like(P[name], tuple([make(bound, names, node) for make in makers]), attrs, like=node)

        return apply


def _operation(e: ast.expr) -> tuple[str, list[ast.expr]]:
    """The primitive that an expression applies, and its operands."""
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name):
        name, operands = e.func.id, e.args
    else:
        operator, operands = operator_of(e)
        name = OPERATORS.get(operator, "")
    if name not in [op.name for op in P]:
        raise ConversionError(
            f"an equation cannot contain {ast.unparse(e)!r}",
            expect="numbers, primitives, and letters of the left side",
        )
    return name, operands


def _attributes(e: ast.expr) -> dict[str, str]:
    """The attributes of an operation, and their letters."""
    return {str(k.arg): ast.unparse(k.value) for k in e.keywords} if isinstance(e, ast.Call) else {}


def _literal(e: ast.expr) -> Any:
    """The number that an expression is, such as -0.0, else None."""
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub) and isinstance(e.operand, ast.Constant):
        return -e.operand.value  # type: ignore[operator]
    return e.value if isinstance(e, ast.Constant) else None


def _letters(e: ast.expr) -> list[str]:
    """The names in an expression, except those of operations."""
    operations = {call.func for call in ast.walk(e) if isinstance(call, ast.Call)}
    return [name.id for name in ast.walk(e) if isinstance(name, ast.Name) and name not in operations]


def _is_of_numbers(e: ast.expr) -> bool:
    calls = [call.func for call in ast.walk(e) if isinstance(call, ast.Call)]
    known = all(isinstance(function, ast.Name) and function.id in FUNCTIONS for function in calls)
    return known and all(name in NUMBER_NAMES for name in _letters(e))


def _number(number: Any, dtype: Any) -> Any:
    """A number as a Python integer or float, depending on the dtype; None if the dtype does not hold it."""
    if dtype.kind == "b":
        return number
    if dtype.kind == "f":
        return number if number.__class__ is float else in_dtype(number, float64)
    return None if in_dtype(number, dtype) is None else int(number)


def _calculated(code: CodeType, names: Names, node: Node, alone: bool) -> Any:
    number = eval(code, FUNCTIONS, names)
    if node.dtype.kind in "iu":
        number = wrapped(number, node.dtype)
    return in_dtype(number, node.dtype) if alone else number
