"""The pass `simplify`: algebra as a table of equations, exact for every value of every dtype.

Exact means that the result has the same bits as in eager mode, also for nan, inf and -0.0.  The exceptions are two
things that no operation promises: the sign and payload of a nan, and which of 0.0 and -0.0 is the larger.  So x + 0.0
stays, because -0.0 + 0.0 is 0.0.  x * 0.0 stays, because inf * 0.0 is nan.  (x + 1.0) + 1.0 stays: it rounds twice.
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import can_cast, finfo, iinfo
from ...core.node import Node
from ..nodes.graph import Graph
from . import constants, reductions
from .numbers import exponent, in_dtype
from .rules import Note, Rules, apply_rules


def simplify(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
    """Folds constants, and applies algebra that is exact for nan, inf and -0.0."""
    return apply_rules(graph, rule, note, without)


# When equations hold ------------------------------------------------------------------------------------------------


def reciprocal_is_exact(node: Node, n: Any) -> bool:
    """where 1 / n is exact: n is a power of two, and neither n nor 1 / n is denormal"""
    power, smallest = exponent(n), finfo(node.dtype).smallest_normal
    return power is not None and bool(smallest <= 2.0**power <= 1 / smallest)


def product_is_exact(node: Node, n: Any, m: Any) -> bool:
    """where two products round like one: for integers, or where n and m are powers of two above 1, which are exact"""
    if node.dtype.kind != "f":
        return True
    above_one = all((exponent(number) or 0) > 0 for number in (n, m))
    return above_one and bool(abs(n * m) <= finfo(node.dtype).max)  # so that both overflow together


def power_of_two(node: Node, n: Any) -> bool:
    """where n is a power of two"""
    return 0 < n <= iinfo(node.dtype).max and exponent(n) is not None


def different(node: Node, n: Any, m: Any) -> bool:
    """where n and m are different numbers of the dtype"""
    n, m = in_dtype(n, node.dtype), in_dtype(m, node.dtype)
    return bool(n < m or m < n)


def is_true(n: Any) -> bool:
    """where n is true"""
    return bool(n)


def is_false(n: Any) -> bool:
    """where n is false"""
    return not n


def same_dtype(node: Node, x: Node) -> bool:
    """where the dtype is the same: values in a graph are never overwritten, so no copy is needed"""
    return bool(x.dtype == node.dtype)


def loses_nothing(x: Node, a: Any, b: Any) -> bool:
    """where the dtype a holds every value of x, and casting it from a to b gives the same as casting x"""
    return holds(a, x.dtype) and (a.kind != "f" or _same_from(x.dtype, b))


def holds(target: Any, source: Any) -> bool:
    """Whether the dtype `target` holds every value of the dtype `source`.

    >>> holds(mg.float16, mg.int8), holds(mg.float64, mg.int64)
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
    """Whether values of `source` become the same in `target` when they are floats first.

    Machines disagree on what a float beyond the range of an integer becomes.
    """
    return target.kind in "fb" or (source.kind in "biu" and holds(target, source))


# The table ----------------------------------------------------------------------------------------------------------

rule = Rules(constants.rule, reductions.rule)

# Zero and one
rule("x + 0 -> x", on="biu")
rule("x + -0.0 -> x", on="f")
rule("x - 0 -> x")
rule("0 - x -> -x", on="iu")
rule("-0.0 - x -> -x", on="f")
rule("x - x -> 0", on="iu")
rule("x * 1 -> x", "x / 1 -> x", "x ** 1 -> x")
rule("x * -1 -> -x", on="if")
rule("x * 0 -> 0", on="biu")
rule("x ** 0 -> 1", "x ** 2 -> x * x")
rule("x // 1 -> x", "x % 1 -> 0", on="iu")

# Signs
rule("-(-x) -> x", "x + -y -> x - y", "x - -y -> x + y")
rule("-(x - y) -> y - x", on="iu")
rule("-x * -y -> x * y", "-x / -y -> x / y")
rule("-x * n -> x * -n", "-x / n -> x / -n", "n / -x -> -n / x")
rule("-(x * n) -> x * -n", "-(x / n) -> x / -n", "-(n / x) -> -n / x", alone=True)
rule("abs(abs(x)) -> abs(x)", "abs(-x) -> abs(x)", on="if")
rule("abs(x) -> x", on="u")

# Two numbers make one
rule("(x + n) + m -> x + (n + m)", "(x - n) - m -> x - (n + m)", on="iu")
rule("(x * n) * m -> x * (n * m)", on="iuf", when=product_is_exact)
rule("x / n -> x * (1 / n)", on="f", when=reciprocal_is_exact)
rule("x // n -> x >> log2(n)", "x % n -> x & (n - 1)", on="iu", when=power_of_two)

# Bits
rule("x & 0 -> 0", "x ^ x -> 0", on="biu")
rule("x | 0 -> x", "x ^ 0 -> x", "x << 0 -> x", "x >> 0 -> x")
rule("x & ALL -> x", "x | ALL -> ALL", "x ^ ALL -> ~x")
rule("x & x -> x", "x | x -> x", "~~x -> x")
rule("(x & n) & m -> x & (n & m)", "(x | n) | m -> x | (n | m)", on="iu")
rule("(x ^ n) ^ m -> x ^ (n ^ m)", on="iu")

# Bounds and whole numbers
rule("maximum(x, x) -> x", "minimum(x, x) -> x")
rule("maximum(x, LOW) -> x", "minimum(x, HIGH) -> x", on="iuf")
rule("maximum(maximum(x, n), m) -> maximum(x, max(n, m))", when=different)
rule("minimum(minimum(x, n), m) -> minimum(x, min(n, m))", when=different)
rule("max(n) -> n", "min(n) -> n")
rule("floor(x) -> x", "round(x) -> x", on="iu")
rule("floor(floor(x)) -> floor(x)", "floor(round(x)) -> round(x)")
rule("round(floor(x)) -> floor(x)", "round(round(x)) -> round(x)")
rule("floor(astype(x)) -> astype(x)", "round(astype(x)) -> astype(x)", on="biu")

# Comparisons and choices
rule("x < x -> False")
rule("x == x -> True", "x <= x -> True", on="biu")
rule("x == True -> x", "x == False -> ~x", on="b")
rule("~(x < y) -> y <= x", "~(x <= y) -> y < x", on="biu")
rule("where(n, x, y) -> x", when=is_true)
rule("where(n, x, y) -> y", when=is_false)
rule("where(c, x, x) -> x")
rule("where(~c, x, y) -> where(c, y, x)", on="b")
rule("where(c, where(c, x, y), z) -> where(c, x, z)")
rule("where(c, x, where(c, y, z)) -> where(c, x, z)")

# Dtypes
rule("astype(x) -> x", "bitcast(x) -> x", when=same_dtype)
rule("astype(astype(x, dtype=a), dtype=b) -> astype(x, dtype=b)", when=loses_nothing)
