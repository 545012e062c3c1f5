"""Simplify: algebra that is exact for every value of every dtype, nan, inf and -0.0 included, and folding.

Exact means: the same bits as the operation in eager mode gives, save for two things that no operation promises either:
the sign and payload of a nan, and which of 0.0 and -0.0 is the larger.  So x + 0.0 stays, because for -0.0 it is 0.0,
and x * 0.0 stays, because for inf it is nan; (x + 1.0) + 1.0 stays, because it rounds twice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

from ...core.dtypes import can_cast, finfo, iinfo
from ...core.node import Node
from ...core.tensor import NUMBERS
from ..nodes.graph import Graph
from . import constants, overlaps, reductions
from .common import COMMUTE
from .constants import in_dtype, is_number, same_number, value_of, wrapped
from .rule import Note, Rules, applied, apply_rules, filled, is_made_by, kind_of, shaped

NumberRule = Callable[[Node, Any, Any], Node | None]
rule = Rules(constants.rule, overlaps.rule, reductions.rule)


def simplify(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Constants folded, and algebra that is exact for nan, inf and -0.0."""
    return apply_rules(graph, rule, note, without)


# What rules ask -----------------------------------------------------------------------------------------------------


EITHER = COMMUTE | {"maximum", "minimum"}  # whose number may come first: elsewhere only the second operand may be one


def tensor_and_number(node: Node) -> tuple[Any, Any]:
    """The operands of an operation, the one that is a Python number last; (None, None) if there is none."""
    x, y = node.inputs
    if y.__class__ in NUMBERS:
        return x, y
    return (y, x) if x.__class__ in NUMBERS and node.name in EITHER else (None, None)


def number_rule(*primitives: str, kinds: str = "biuf") -> Callable[[NumberRule], NumberRule]:
    """Declare a rule for where an operand is a Python number and the result of one of these kinds.

    The function is given the node, its other operand, and the number.
    """

    def declare(function: NumberRule) -> NumberRule:
        @rule(*primitives)
        @wraps(function)
        def asked(node: Node) -> Node | None:
            x, number = tensor_and_number(node)
            return None if number is None or node.dtype.kind not in kinds else function(node, x, number)

        return function

    return declare


def is_zero(number: Any, sign: float) -> bool:
    """Whether a number is the zero of this sign."""
    return number == 0 and math.copysign(1, number) == sign


def exponent(number: Any) -> int | None:
    """n, where the absolute value of a number is 2**n.

    >>> exponent(-8), exponent(0.5), exponent(3)
    (3, -1, None)
    """
    if not math.isfinite(number):
        return None
    mantissa, power = math.frexp(number)
    return power - 1 if abs(mantissa) == 0.5 else None


def negated(number: Any, node: Node) -> Any:
    """-number, as integers count it; None for what is no integer of this dtype, which is an error when it is run."""
    if kind_of(node) == "f":
        return -number
    return None if in_dtype(number, node.dtype) is None else wrapped(-number, node.dtype)


def with_number_negated(inputs: Any, node: Node) -> list[Any] | None:
    """The two operands with the number among them negated; None where there is none."""
    turned = [negated(x, node) if is_number(x) else x for x in inputs]
    return turned if any(map(is_number, inputs)) and None not in turned else None


# Sums ---------------------------------------------------------------------------------------------------------------


@number_rule("add")
def add_nothing(node: Node, x: Node, number: Any) -> Node | None:
    """x + 0 is x for integers, x + -0.0 for floats, x or False for bools."""
    return x if is_zero(number, -1.0) or (number == 0 and kind_of(node) != "f") else None


@number_rule("subtract")
def subtract_nothing(node: Node, x: Node, number: Any) -> Node | None:
    """x - 0 is x; x - -0.0 is not."""
    return x if is_zero(number, 1.0) else None


@rule("subtract")
def subtract_from_nothing(node: Node) -> Node | None:
    """0 - x is -x for integers, -0.0 - x for floats."""
    number, x = node.inputs
    if not is_number(number) or not is_zero(number, -1.0 if kind_of(node) == "f" else 1.0):
        return None
    return applied("negative", x, node=node)


@rule("add")
def add_a_negative(node: Node) -> Node | None:
    """x + -y is x - y."""
    x, y = node.inputs
    if is_made_by(y, "negative"):
        return applied("subtract", x, y.inputs[0], node=node)
    return applied("subtract", y, x.inputs[0], node=node) if is_made_by(x, "negative") else None


@rule("subtract")
def subtract_a_negative(node: Node) -> Node | None:
    """x - -y is x + y."""
    x, y = node.inputs
    return applied("add", x, y.inputs[0], node=node) if is_made_by(y, "negative") else None


@rule("subtract", "bitwise_xor")
def less_itself(node: Node) -> Node | None:
    """x - x and x ^ x are 0 for integers and bools; for floats x may be inf or nan."""
    x, y = node.inputs
    if x is not y or kind_of(node) == "f":
        return None
    return filled(kind_of(node) != "b" and 0, node)


@rule("negative")
def turned_difference(node: Node) -> Node | None:
    """-(x - y) is y - x for integers; for floats one of them would be -0.0 where x is y."""
    (x,) = node.inputs
    if not is_made_by(x, "subtract") or kind_of(node) == "f":
        return None
    return applied("subtract", *x.inputs[::-1], node=node)


# Products -----------------------------------------------------------------------------------------------------------


@number_rule("multiply")
def times_one(node: Node, x: Node, number: Any) -> Node | None:
    """x * 1 is x."""
    return x if number == 1 else None


@number_rule("divide")
def divide_by_one(node: Node, x: Node, number: Any) -> Node | None:
    """x / 1 is x."""
    return x if number == 1 else None


@number_rule("multiply", kinds="iuf")
def times_minus_one(node: Node, x: Node, number: Any) -> Node | None:
    """x * -1 is -x."""
    return applied("negative", x, node=node) if number == -1 else None


@number_rule("multiply", "bitwise_and", kinds="biu")
def times_nothing(node: Node, x: Node, number: Any) -> Node | None:
    """x * 0 and x & 0 are 0 for integers and bools; for floats x may be inf or nan."""
    return filled(number, node) if number == 0 else None


@rule("multiply", "divide")
def negative_factors(node: Node) -> Node | None:
    """-x * -y is x * y, and -x * 2 is x * -2; so for quotients."""
    assert node.op is not None
    signless = [x.inputs[0] if is_made_by(x, "negative") else x for x in node.inputs]
    turned = [a is not b for a, b in zip(signless, node.inputs)]
    if not any(turned):
        return None
    inputs = signless if all(turned) else with_number_negated(signless, node)
    return None if inputs is None else applied(node.op.name, *inputs, node=node)


@rule("negative", alone=True)
def negative_of_a_multiple(node: Node) -> Node | None:
    """-(x * 2) is x * -2, and -(2 / x) is -2 / x."""
    (x,) = node.inputs
    if not is_made_by(x, "multiply") and not is_made_by(x, "divide"):
        return None
    inputs = with_number_negated(x.inputs, node)
    return None if inputs is None else applied(x.name, *inputs, node=node)


@number_rule("divide")
def divide_by_a_power_of_two(node: Node, x: Node, number: Any) -> Node | None:
    """x / 4 is x * 0.25: both are exact but for the last rounding."""
    power = exponent(number)
    if power is None:
        return None
    limits = finfo(node.dtype)
    if not limits.smallest_normal <= 2.0**power <= 1 / limits.smallest_normal:
        return None
    return applied("multiply", x, 1 / float(number), node=node)


@number_rule("multiply", kinds="f")
def multiple_of_a_multiple(node: Node, x: Node, number: Any) -> Node | None:
    """(x * 2) * 4 is x * 8: powers of two from 1 upwards round nothing, and overflow together."""
    first, factor = tensor_and_number(x) if is_made_by(x, "multiply") else (None, None)
    if factor is None or any((exponent(n) or -1) < 0 for n in (number, factor)):
        return None
    product = float(number) * float(factor)
    return applied("multiply", first, product, node=node) if abs(product) <= finfo(node.dtype).max else None


@number_rule("add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor", kinds="iu")
def numbers_together(node: Node, x: Node, number: Any) -> Node | None:
    """(x + 2) + 3 is x + 5 for integers, which wrap around alike; so for * & | ^."""
    return _together(node, x, number, COMBINED[node.name])


@number_rule("subtract", kinds="iu")
def subtract_together(node: Node, x: Node, number: Any) -> Node | None:
    """(x - 2) - 3 is x - 5 for integers."""
    return _together(node, x, number, operator.add)


COMBINED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "multiply": operator.mul, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}  # fmt: skip


def _together(node: Node, x: Node, number: Any, combined: Callable[[int, int], int]) -> Node | None:
    """The operation once, where `x` is the same operation with another integer."""
    first, other = tensor_and_number(x) if is_made_by(x, node.name) else (None, None)
    if other is None or in_dtype(number, node.dtype) is None or in_dtype(other, node.dtype) is None:
        return None
    return applied(node.name, first, wrapped(combined(int(other), int(number)), node.dtype), node=node)


@rule("negative", "bitwise_invert")
def undone(node: Node) -> Node | None:
    """-(-x) and ~~x are x."""
    (x,) = node.inputs
    return x.inputs[0] if x.op is node.op else None


# Powers and whole quotients -----------------------------------------------------------------------------------------


@number_rule("pow")
def small_power(node: Node, x: Node, number: Any) -> Node | None:
    """x**0 is 1, even of a nan, x**1 is x, and x**2 is x * x.  (x**0.5 is not sqrt(x) for -inf and -0.0.)"""
    if number not in (0, 1, 2):
        return None
    return filled(1, node) if number == 0 else x if number == 1 else applied("multiply", x, x, node=node)


@number_rule("floor_divide", kinds="iu")
def whole_quotient(node: Node, x: Node, number: Any) -> Node | None:
    """x // 1 is x, and x // 8 is x >> 3, for integers."""
    power = _whole_power(number, node)
    if power is None:
        return None
    return x if power == 0 else applied("bitwise_right_shift", x, power, node=node)


@number_rule("remainder", kinds="iu")
def whole_remainder(node: Node, x: Node, number: Any) -> Node | None:
    """x % 1 is 0, and x % 8 is x & 7, for integers."""
    power = _whole_power(number, node)
    if power is None:
        return None
    return filled(0, node) if power == 0 else applied("bitwise_and", x, number - 1, node=node)


def _whole_power(number: Any, node: Node) -> int | None:
    """n, where an integer is divided by 2**n."""
    return exponent(number) if 0 < number <= iinfo(node.dtype).max else None


# Bits ---------------------------------------------------------------------------------------------------------------


@number_rule("bitwise_left_shift", "bitwise_right_shift", "bitwise_or", "bitwise_xor")
def no_bits(node: Node, x: Node, number: Any) -> Node | None:
    """x | 0, x ^ 0, x << 0 and x >> 0 are x."""
    return x if number == 0 else None


@number_rule("bitwise_and", "bitwise_or", "bitwise_xor")
def all_bits(node: Node, x: Node, number: Any) -> Node | None:
    """Where all bits are set, x & it is x, x | it is it, and x ^ it is ~x."""
    every = {"b": True, "u": 255}.get(kind_of(node), -1)
    if number != every:
        return None
    if node.name == "bitwise_xor":
        return applied("bitwise_invert", x, node=node)
    return x if node.name == "bitwise_and" else filled(every, node)


@rule("bitwise_and", "bitwise_or", "maximum", "minimum")
def with_itself(node: Node) -> Node | None:
    """x & x, x | x, max(x, x) and min(x, x) are x."""
    x, y = node.inputs
    return x if x is y else None


# Extremes, absolute values, whole numbers ---------------------------------------------------------------------------


@number_rule("maximum", "minimum", kinds="iuf")
def no_bound(node: Node, x: Node, number: Any) -> Node | None:
    """max(x, -inf) is x, and so is a bound that no integer of the dtype passes."""
    low, high = (-math.inf, math.inf) if kind_of(node) == "f" else (iinfo(node.dtype).min, iinfo(node.dtype).max)
    return x if number == (low if node.name == "maximum" else high) else None


@number_rule("maximum", "minimum")
def bounds_together(node: Node, x: Node, number: Any) -> Node | None:
    """max(max(x, 1), 2) is max(x, 2)."""
    first, other = tensor_and_number(x) if is_made_by(x, node.name) else (None, None)
    if other is None:
        return None
    number, other = in_dtype(number, node.dtype), in_dtype(other, node.dtype)
    if number is None or other is None or not (number < other or other < number):
        return None
    bound = max(number, other) if node.name == "maximum" else min(number, other)
    return applied(node.name, first, bound, node=node)


@rule("abs")
def absolute_twice(node: Node) -> Node | None:
    """abs(abs(x)) is abs(x), and so is abs(-x); what has no sign is its own absolute value."""
    (x,) = node.inputs
    if kind_of(node) == "u" or is_made_by(x, "abs"):
        return x
    return applied("abs", x.inputs[0], node=node) if is_made_by(x, "negative") else None


@rule("floor", "round")
def whole_already(node: Node) -> Node | None:
    """Rounding what is whole does nothing: integers, integers made floats, what has been rounded."""
    (x,) = node.inputs
    whole = kind_of(node) in "iu" or is_made_by(x, "floor") or is_made_by(x, "round")
    return x if whole or (is_made_by(x, "astype") and x.inputs[0].dtype.kind in "biu") else None


# Comparisons and choice ---------------------------------------------------------------------------------------------


@rule("less", "less_equal", "equal")
def compared_with_itself(node: Node) -> Node | None:
    """x < x is False; x == x and x <= x are True, save for floats, which may be nan."""
    x, y = node.inputs
    if x is not y:
        return None
    if node.name == "less":
        return filled(False, node)
    return filled(True, node) if kind_of(x) != "f" else None


@number_rule("equal")
def equal_to_a_bool(node: Node, x: Node, number: Any) -> Node | None:
    """x == True is x, and x == False is ~x, for bools."""
    if kind_of(x) != "b":
        return None
    return x if number else applied("bitwise_invert", x, node=node)


@rule("bitwise_invert")
def turned_comparison(node: Node) -> Node | None:
    """~(x < y) is y <= x, and ~(x <= y) is y < x, save for floats, which may be nan."""
    (x,) = node.inputs
    if not (is_made_by(x, "less") or is_made_by(x, "less_equal")) or x.op.common_dtype(x.inputs).kind == "f":
        return None
    return applied("less_equal" if x.name == "less" else "less", *x.inputs[::-1], node=node)


@rule("where")
def where_constant(node: Node) -> Node | None:
    """A choice that is known is what it chooses."""
    condition, x, y = node.inputs
    value = value_of(condition)
    return None if value is None else shaped(x if value else y, node)


@rule("where")
def where_no_choice(node: Node) -> Node | None:
    """A choice between equal things is either."""
    _, x, y = node.inputs
    equal = same_number(x, y) if is_number(x) and is_number(y) else x is y
    return shaped(x, node) if equal else None


@rule("where")
def where_inverted(node: Node) -> Node | None:
    """where(~c, x, y) is where(c, y, x)."""
    condition, x, y = node.inputs
    if not is_made_by(condition, "bitwise_invert") or kind_of(condition) != "b":
        return None
    return applied("where", condition.inputs[0], y, x, node=node)


@rule("where")
def where_again(node: Node) -> Node | None:
    """where(c, where(c, x, y), z) is where(c, x, z): the same question has the same answer."""
    condition, x, y = node.inputs
    first = x.inputs[1] if is_made_by(x, "where") and x.inputs[0] is condition else x
    last = y.inputs[2] if is_made_by(y, "where") and y.inputs[0] is condition else y
    if (first is x and last is y) or (is_number(first) and is_number(last)):
        return None
    return applied("where", condition, first, last, node=node)


# Types --------------------------------------------------------------------------------------------------------------


@rule("astype", "bitcast")
def same_type(node: Node) -> Node | None:
    """A cast to the dtype that it has is nothing: values in a graph are never overwritten, so no copy is needed."""
    (x,) = node.inputs
    return x if x.dtype == node.dtype else None


@rule("astype")
def cast_twice(node: Node) -> Node | None:
    """A cast that loses nothing, followed by another, is that other."""
    (x,) = node.inputs
    if not is_made_by(x, "astype"):
        return None
    (first,) = x.inputs
    if not loses_nothing(first.dtype, x.dtype) or (x.dtype.kind == "f" and not _same_from(first.dtype, node.dtype)):
        return None
    return applied("astype", first, node=node, dtype=node.dtype)


def loses_nothing(source: Any, target: Any) -> bool:
    """Whether each value of a dtype is one of another.

    >>> loses_nothing(mg.int8, mg.float16), loses_nothing(mg.int64, mg.float64)
    (True, False)
    """
    if source.kind == "b" or source == target:
        return True
    if target.kind == "f" and source.kind in "iu":
        return 8 * source.itemsize <= {2: 8, 4: 16, 8: 32}[target.itemsize]
    if source.kind != target.kind and (source.kind, target.kind) != ("u", "i"):
        return False
    return source.itemsize < target.itemsize and can_cast(source, target)


def _same_from(source: Any, target: Any) -> bool:
    """Whether floats that hold values of `source` become the same in `target` as the values themselves.

    Machines do not agree on what a float outside of the range of an integer becomes.
    """
    return target.kind in "fb" or (source.kind in "biu" and (loses_nothing(source, target)))
