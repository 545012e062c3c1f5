"""Python numbers in a graph: what each is as a value of a dtype, and which are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.primitive import P
from ...core.tensor import NUMBERS


def in_dtype(number: Any, dtype: Any) -> Any:
    """A Python number as the nearest value of a dtype; None where there is none, which is an error when it is run.

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
    """An integer as integers of a dtype count, beginning again where they end.

    >>> wrapped(130, np.dtype("int8")), wrapped(-1, np.dtype("uint8"))
    (-126, 255)
    """
    limits = np.iinfo(dtype)
    return (number - int(limits.min)) % (1 << limits.bits) + int(limits.min)


def value_of(x: Any) -> Any:
    """The number that an input of a node is, or is filled with; None if it is not a constant."""
    if x.__class__ in NUMBERS:
        return x
    return in_dtype(x.attrs["value"], x.dtype) if x.op is P.full else None


def same_number(a: Any, b: Any) -> bool:
    """Whether two numbers are the same value: 0.0 and -0.0 are not, and a nan is one.

    >>> same_number(1, 1.0), same_number(0.0, -0.0), same_number(math.nan, math.nan)
    (True, False, True)
    """
    if a != a or b != b:
        return a != a and b != b
    return bool(a == b and math.copysign(1, a) == math.copysign(1, b))


def exponent(number: Any) -> int | None:
    """n, where the absolute value of a number is 2**n.

    >>> exponent(-8), exponent(0.5), exponent(3)
    (3, -1, None)
    """
    if not math.isfinite(number):
        return None
    mantissa, power = math.frexp(number)
    return power - 1 if abs(mantissa) == 0.5 else None
