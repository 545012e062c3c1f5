"""Turns any value into an integer, or into text for a message, without an error; and checks sizes against memory."""

from __future__ import annotations

import math
import operator
import os
import reprlib
from collections.abc import Sequence
from typing import Any

from .errors import MinigradError, ShapeError

LEAST, MOST = -(2**63), 2**63 - 1  # the range of NumPy's integers
try:
    MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # bytes of this machine
except (AttributeError, ValueError, OSError):  # not on Windows
    MEMORY = 1 << 40
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxtuple, _REPR.maxlist, _REPR.maxlong, _REPR.maxstring, _REPR.maxother = 3, 8, 8, 60, 60, 80


def shown(value: Any) -> str:
    """A short text for any value, even one that is long, deeply nested or contains itself.

    >>> shown([1, [2, [3, [4]]]]), shown("abc")
    ('[1, [2, [...]]]', "'abc'")
    """
    try:
        return _REPR.repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def whole(value: Any, least: int = LEAST, most: int = MOST) -> int | None:
    """The value as an integer; None if it is not an integer from `least` to `most`.

    >>> whole(3), whole(3.0), whole(2**70), whole(-1, least=0)
    (3, None, None, None)
    """
    try:
        number = operator.index(value)
    except (TypeError, MinigradError):
        return None
    return number if least <= number <= most else None


def check_memory(name: str, shape: Sequence[int]) -> None:
    """Raise an error for a shape with more elements than the machine has bytes of memory.

    >>> check_memory("zeros", (2, 3))
    """
    count = math.prod(shape)
    if count > MEMORY:
        raise ShapeError(
            f"{name}: shape {shown(tuple(shape))} has {float(count):.3g} elements, and this machine has "
            f"{MEMORY / 1e9:.3g} GB of memory",
            expect=f"at most {MEMORY} elements",
        )
