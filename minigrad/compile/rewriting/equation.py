"""Equations: rules such as `x * 1 -> x`, written as the pattern to find and its replacement.

A pattern consists of parts, like a graph of nodes: the left side of an equation is a pattern, and so is a traced
function.  The operands of a commutative operation are matched in both orders.

In an equation, n and m match Python numbers and tensors filled with one number; other small letters match any input.
Arithmetic on numbers alone on the right side is done when the rule fires; integers wrap around like those of the dtype.
Keywords are attributes, `reshape(x, shape=s)`; a left side without keywords matches any attributes.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

import numpy as np

from ...core.dtypes import KIND_NAMES, float64
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import NUMBERS
from ...support.errors import ConversionError
from ...support.source import parsed
from ..loops.operations import operator_of
from ..nodes.graph import node_like

# Numbers: their values in a dtype, when two are the same, and tensors filled with one ---------------------------------


def in_dtype(number: Any, dtype: Any) -> Any:
    """A Python number as the nearest value of a dtype; None where there is none: running that would be an error.

    >>> in_dtype(0.1, np.dtype("float32")), in_dtype(300, np.dtype("int8"))
    (0.10000000149011612, None)
    """
    box = np.empty((), dtype)
    try:
        with np.errstate(all="ignore"):
            box.fill(number)
    except (OverflowError, ValueError):
        return None
    return box.item()


def wrapped(number: int, dtype: Any) -> int:
    """An integer as an integer of a dtype, which wraps around at the limits.

    >>> wrapped(130, np.dtype("int8")), wrapped(-1, np.dtype("uint8"))
    (-126, 255)
    """
    limits = np.iinfo(dtype)
    return (number - int(limits.min)) % (1 << limits.bits) + int(limits.min)


def value_of(x: Any) -> Any:
    """The number that an input of a node is or is filled with; None if it is not a constant."""
    if x.__class__ in NUMBERS:
        return x
    return in_dtype(x.attrs["value"], x.dtype) if x.op is P.full else None


def same_number(a: Any, b: Any) -> bool:
    """Whether two numbers are the same value: 0.0 and -0.0 are not, and two nans are.

    >>> same_number(1, 1.0), same_number(0.0, -0.0), same_number(math.nan, math.nan)
    (True, False, True)
    """
    if a != a or b != b:
        return a != a and b != b
    return bool(a == b and math.copysign(1, a) == math.copysign(1, b))


def exponent(number: Any) -> int | None:
    """n where the absolute value of a number is 2**n, else None.

    >>> exponent(-8), exponent(0.5), exponent(3)
    (3, -1, None)
    """
    if not math.isfinite(number):
        return None
    mantissa, power = math.frexp(number)
    return power - 1 if abs(mantissa) == 0.5 else None


def shaped(x: Any, node: Node) -> Node:
    """`x`, a node or a number, broadcast to the shape of the node that it replaces."""
    if not isinstance(x, Node):
        return filled(x, node)
    return x if x.shape == node.shape else node_like(P.broadcast_to, (x,), {"shape": node.shape}, like=node)


def filled(value: Any, node: Node) -> Node:
    """A tensor filled with one number, in place of a node."""
    attrs = {"shape": node.shape, "value": value, "dtype": node.dtype, "device": node.device}
    return node_like(P.full, (), attrs, like=node)


# The matcher: the ways in which nodes of a graph match a pattern ------------------------------------------------------


COMMUTE = {"add", "multiply", "equal", "bitwise_and", "bitwise_or", "bitwise_xor"}
EITHER = COMMUTE | {"maximum", "minimum"}  # these commute except for 0.0 and -0.0: which is the larger may differ

Bound = dict["Part", Any]  # the node or the Python number that each part has matched
Goals = tuple["Part", Any, "Goals"] | None  # a linked list: a part, what it must match, and the other goals
Miss = Callable[[Bound, str], object]  # called with the parts that matched, and why the next part did not


class Part:
    """One place in a pattern.  This class matches any node or number; every occurrence matches the same one."""

    def __init__(self, name: str, inputs: Sequence[Part] = ()) -> None:
        self.name, self.inputs = name, tuple(inputs)

    def differs(self, x: Any) -> str:
        """Why `x` does not match this part, inputs aside; "" if it does."""
        return ""

    def may_be(self, head: Any) -> bool:
        """Whether something with this head may match."""
        return True


class Operation(Part):
    """An operation on other parts."""

    def differs(self, x: Any) -> str:
        if x.__class__ in NUMBERS:
            return f"the number {x!r} where the pattern has {self.name}"
        if x.op is None or x.op.name != self.name or len(x.inputs) != len(self.inputs):
            return f"{x.name} where the pattern has {self.name}"
        return ""

    def may_be(self, head: Any) -> bool:
        return getattr(head, "name", "") == self.name

    def may_have(self, heads: Sequence[Any]) -> bool:
        """Whether a node of this operation may match when its inputs have these heads."""
        for order in (heads, heads[::-1]) if self.name in EITHER else (heads,):
            if False not in [part.may_be(head) for part, head in zip(self.inputs, order)]:
                return True
        return False


class Number(Part):
    """Any number: a Python number, or a tensor filled with one."""

    def differs(self, x: Any) -> str:
        return "" if value_of(x) is not None else f"{x.name} where the pattern has a number"

    def may_be(self, head: Any) -> bool:
        return head.__class__ in NUMBERS or head is OTHER or head is P.full


class Literal(Number):
    """One number, such as 0 or -0.0."""

    def __init__(self, number: Any) -> None:
        super().__init__(repr(number))
        self.number = number
        LITERALS[number] = number

    def differs(self, x: Any) -> str:
        value = value_of(x)
        return "" if value is not None and same_number(value, self.number) else f"not the number {self.name}"

    def may_be(self, head: Any) -> bool:
        return head == self.number or head is P.full


LITERALS: dict[Any, Any] = {}  # the numbers that occur in patterns
OTHER = "another number"


def head(x: Any) -> Any:
    """The operation of an input, or the literal that it equals: enough to rule out most patterns."""
    return LITERALS.get(x, OTHER) if x.__class__ in NUMBERS else x.op


def ways(part: Part, x: Any, bound: Bound, miss: Miss | None = None) -> Iterator[Bound]:
    """All ways in which `x` matches a part of a pattern, given what other parts have matched."""
    alternatives: list[tuple[Goals, Bound]] = [((part, x, None), {**bound})]
    while alternatives:
        goals, bound = alternatives.pop()
        while goals is not None:
            part, x, goals = goals
            if part in bound:
                why = "" if _same(bound[part], x) else f"two {part.name}s where the pattern has one"
            else:
                why = part.differs(x)
            if why:
                if miss is not None:
                    miss(bound, why)
                break
            if part not in bound:
                bound[part] = x
                if part.name in EITHER:
                    alternatives.append((_goals(part, x.inputs[::-1], goals), {**bound}))
                if part.inputs:
                    goals = _goals(part, x.inputs, goals)
        else:
            yield bound


def _goals(part: Part, inputs: Sequence[Any], rest: Goals) -> Goals:
    """The goals that the inputs of a part match these inputs, in order, and then the rest."""
    for p, x in zip(part.inputs[::-1], inputs[::-1]):
        rest = (p, x, rest)
    return rest


def _same(a: Any, b: Any) -> bool:
    return a is b or (not isinstance(a, Node) and not isinstance(b, Node) and same_number(a, b))


# Equations ------------------------------------------------------------------------------------------------------------


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
        """The kind of the first operand that is a tensor; the result of a comparison has a different kind."""
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
