"""Python numbers in a graph: their values in a dtype, when two are the same, and tensors filled with one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import NUMBERS
from ..nodes.graph import node_like


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
    """A tensor filled with one number, in the place of a node."""
    attrs = {"shape": node.shape, "value": value, "dtype": node.dtype, "device": node.device}
    return node_like(P.full, (), attrs, like=node)
