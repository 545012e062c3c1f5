"""The pass `simplify`: algebra as a table of equations, exact for every value of every dtype.

Exact means that the result has the same bits as in eager mode, also for nan, inf and -0.0.  The exceptions are two
things that no operation defines: the sign and payload of a nan, and which of 0.0 and -0.0 is the larger.  So x + 0.0
stays, because -0.0 + 0.0 is 0.0.  x * 0.0 stays, because inf * 0.0 is nan.  (x + 1.0) + 1.0 stays: it rounds twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import finfo, iinfo
from ...core.emit import EAGER
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import NUMBERS
from ..nodes.graph import Graph, Source, reapplied
from .equation import exponent, filled, shaped, value_of
from .rules import Note, Rules, apply_rules

rule = Rules(reductions=("concat", "overlap_add", "slice"))


def simplify(graph: Graph, note: Note) -> Graph:
    """Folds constants, and applies algebra that is exact for nan, inf and -0.0."""
    return apply_rules(graph, rule, note)


# Constants, which the kernels of eager mode compute beforehand: the results are those of eager mode to the last bit ---


@rule(kind="source")
def small_constant(node: Node) -> Node | None:
    """A constant with one element is a number."""
    if not isinstance(node, Source) or node.kind != "constant" or node.size != 1:
        return None
    return filled(node.device.to_numpy(node.held).item(), node)


@rule(kind="elementwise", reads="full")
def fold_constants(node: Node) -> Node | None:
    """A node whose inputs are all constant is a constant."""
    if not all(x.__class__ in NUMBERS or x.op is P.full for x in node.inputs):
        return None
    value = _computed(node, [x if x.__class__ in NUMBERS else _array_of(x) for x in node.inputs])
    return None if value is None else filled(value, node)


@rule(kind="elementwise", reads="full")
def number_operand(node: Node) -> Node | None:
    """An operand that is filled with one number becomes that number, which takes the dtype of the other operands."""
    assert node.op is not None
    named = node.op.promotes
    weak = [i for i in range(len(node.inputs)) if named is None or node.op.inputs[i] in named]
    tensors = [i for i in weak if node.inputs[i].__class__ not in NUMBERS]
    filled_ones = [i for i in tensors if node.inputs[i].op is P.full]
    if filled_ones == tensors:
        filled_ones = filled_ones[1:]  # numbers alone would have no dtype
    values = {i: value_of(node.inputs[i]) for i in filled_ones}
    if not values or None in values.values():
        return None
    inputs = tuple([values.get(i, x) for i, x in enumerate(node.inputs)])
    return shaped(reapplied(node, inputs), node)


@rule(kind="view", reads="full")
def view_of_a_constant(node: Node) -> Node | None:
    """A view of a tensor that is filled with one number is filled with the same number."""
    return filled(node.inputs[0].attrs["value"], node)


def _array_of(x: Node) -> Any:
    """The number of a filled tensor as an array."""
    return x.device.kernels["full"]((), x.attrs["value"], x.dtype, x.device)


def _computed(node: Node, values: list[Any]) -> Any:
    """The number that fills the result of eager mode; None where eager mode raises an error."""
    assert node.op is not None
    if node.name in ("floor_divide", "remainder") and node.dtype.kind in "iu" and not np.all(values[1]):
        return None  # a division by zero is an error of the run, not of the compilation
    try:
        with np.errstate(all="ignore"):
            result = EAGER.compute(node.op, values, node.attrs, node.device)
            return result.ravel()[0].item() if result.size else 0
    except Exception:  # the same error appears when the program runs, with the line of the caller
        return None


# When equations hold ------------------------------------------------------------------------------------------------


def reciprocal_is_exact(node: Node, n: Any) -> bool:
    """where 1 / n is exact: n is a power of two, and neither n nor 1 / n is denormal"""
    power, smallest = exponent(n), finfo(node.dtype).smallest_normal
    return power is not None and bool(smallest <= 2.0**power <= 1 / smallest)


def power_of_two(node: Node, n: Any) -> bool:
    """where n is a power of two"""
    return 0 < n <= iinfo(node.dtype).max and exponent(n) is not None


def same_dtype(node: Node, x: Node) -> bool:
    """where the dtype is the same: values in a graph are never overwritten, so no copy is needed"""
    return bool(x.dtype == node.dtype)


# The table ----------------------------------------------------------------------------------------------------------

# Zero and one
rule("x + 0 -> x", on="biu")
rule("x + -0.0 -> x", on="f")
rule("x - 0 -> x")
rule("x - x -> 0", on="iu")
rule("x * 1 -> x", "x / 1 -> x", "x ** 1 -> x")
rule("x * -1 -> -x", on="if")
rule("x * 0 -> 0", on="biu")
rule("x ** 0 -> 1", "x ** 2 -> x * x")

# Signs
rule("-(-x) -> x", "x + -y -> x - y", "x - -y -> x + y")
rule("-(n / x) -> -n / x", alone=True)

# Numbers, choices and dtypes
rule("(x + n) + m -> x + (n + m)", on="iu")
rule("x / n -> x * (1 / n)", on="f", when=reciprocal_is_exact)
rule("x // n -> x >> log2(n)", on="iu", when=power_of_two)
rule("x % n -> x & (n - 1)", on="iu", when=power_of_two)
rule("where(~c, x, y) -> where(c, y, x)", on="b")
rule("astype(x) -> x", when=same_dtype)
