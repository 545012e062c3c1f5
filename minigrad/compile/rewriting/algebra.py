"""The pass `simplify`: algebra as a table of equations, exact for every value of every dtype.

Exact means that the result has the same bits as in eager mode, also for nan, inf and -0.0.  The exceptions are two
things that no operation promises: the sign and payload of a nan, and which of 0.0 and -0.0 is the larger.  So x + 0.0
stays, because -0.0 + 0.0 is 0.0.  x * 0.0 stays, because inf * 0.0 is nan.  (x + 1.0) + 1.0 stays: it rounds twice.
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import finfo, iinfo
from ...core.node import Node
from ..nodes.graph import Graph
from . import constants, reductions
from .numbers import exponent
from .rules import Note, Rules, apply_rules


def simplify(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Folds constants, and applies algebra that is exact for nan, inf and -0.0."""
    return apply_rules(graph, rule, note, without)


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

rule = Rules(constants.rule, reductions.rule)

# Zero and one
rule("x + 0 -> x", on="biu")
rule("x + -0.0 -> x", on="f")
rule("x - 0 -> x")
rule("x - x -> 0", on="iu")
rule("x * 1 -> x", "x / 1 -> x")
rule("x * -1 -> -x", on="if")
rule("x * 0 -> 0", on="biu")
rule("x ** 2 -> x * x")

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
