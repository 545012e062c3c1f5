"""Masks: finds out whether a kernel over rows makes zeros of all columns after the diagonal.

A causal mask adds a very negative number to the scores of later keys, so that their weights are exactly 0.  This module
follows the values of a kernel at these positions: numbers, values so negative that `exp` of them is 0, or unknown ones.
If the kernel stores zeros there, and no reduction depends on them, a block of rows need not compute them at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.node import Node
from ..nodes.view import View
from ..rewriting.equation import value_of
from .compute import PER_ELEMENT, Compute
from .group import Group

LOW = -math.inf  # for any number below LOWEST, also after sums with scores
LOWEST = -1e30
NEUTRAL = {"sum": 0.0, "max": LOW}  # the values that do not change a reduction


def hides_later_columns(group: Group, computes: dict[Node, Compute], shape: tuple[int, ...]) -> bool:
    """Whether every value that a kernel stores or reduces is 0 (or -∞, for a maximum) where column > row."""
    if shape[-2] < shape[-1]:
        return False
    known: dict[Node, float | None] = {}
    for node in group.levels:
        compute = computes[node]
        if compute.reduces:
            (value,) = [_at(read, known) for read in compute.reads]
            if value is None or value != NEUTRAL.get(node.name):
                return False
        elif group.levels[node] == PER_ELEMENT:
            known[node] = _value(node, compute, known, shape)
    return all(known[node] == 0 for node in group.stores if node in known)


def _at(read: Any, known: dict[Node, float | None]) -> float | None:
    """A value that a computation reads, at positions after the diagonal."""
    if not isinstance(read, View):
        return float(read)
    number = value_of(read.base)
    return known.get(read.base) if number is None else float(number)


def _value(
    node: Node, compute: Compute, known: dict[Node, float | None], shape: tuple[int, ...]
) -> float | None:
    """The value of a node after the diagonal; None if it is unknown."""
    if node.name in ("less", "less_equal"):
        return {"row column": 1.0, "column row": 0.0}.get(" ".join([_position(read, shape) for read in compute.reads]))
    rule = RULES.get(node.name)
    value = None if rule is None else rule(*[_at(read, known) for read in compute.reads])
    return LOW if value is not None and value <= LOWEST else value


def _position(read: Any, shape: tuple[int, ...]) -> str:
    """Whether a view counts the rows or the columns of each matrix."""
    if not isinstance(read, View) or read.base.name != "arange" or read.offset or read.shape[-2:] != shape[-2:]:
        return ""
    if (read.base.attrs["start"], read.base.attrs["step"]) != (0, 1) or any(read.strides[:-2]):
        return ""
    return "row" if read.strides[-2:] == (1, 0) else "column" if read.strides[-2:] == (0, 1) else ""


def _product(x: float | None, y: float | None) -> float | None:
    if x == 0 or y == 0:
        return 0.0
    return None if x is None or y is None else x * y


def _sum(x: float | None, y: float | None) -> float | None:
    if x == LOW or y == LOW:  # scores and biases are finite
        return LOW
    return None if x is None or y is None else x + y


def _choice(condition: float | None, x: float | None, y: float | None) -> float | None:
    if condition is None:
        return x if x == y else None
    return x if condition else y


RULES: dict[str, Callable[..., float | None]] = {
    "add": _sum,
    "subtract": lambda x, y: LOW if x == LOW else _sum(x, None if y is None else -y),
    "multiply": _product,
    "divide": lambda x, y: 0.0 if x == 0 else None,
    "exp": lambda x: 0.0 if x == LOW else None,
    "where": _choice,
    "astype": lambda x: x,
    "bitwise_or": lambda x, y: 1.0 if 1.0 in (x, y) else 0.0 if x == y == 0 else None,
    "bitwise_and": lambda x, y: 0.0 if 0.0 in (x, y) else 1.0 if x == y == 1 else None,
}
