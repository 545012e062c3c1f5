"""Turns any value into an integer, or into text for a message, without an error; and checks sizes against memory."""

from __future__ import annotations

import math
import operator
import os
import re
import reprlib
from collections.abc import Sequence
from typing import Any

from .errors import ConversionError, MinigradError, ShapeError

DEEPEST = 64  # levels of nested lists: the most dimensions of a NumPy array
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
        return a_type(value)


def a_type(value: Any) -> str:
    """The type of a value, for a message: None and the name of any other type with its article.

    >>> a_type(3), a_type([]), a_type(None)
    ('an int', 'a list', 'None')
    """
    return "None" if value is None else with_article(type(value).__name__)


def with_article(words: str) -> str:
    """Words with "a" or "an", by the sound that they begin with.

    >>> [with_article(word) for word in ("int", "dict", "uint8", "ndarray", "RNN", "ReLU", "8-bit integer")]
    ['an int', 'a dict', 'a uint8', 'an ndarray', 'an RNN', 'a ReLU', 'an 8-bit integer']
    """
    if re.match(r"[A-Z]{2}|nd", words):  # letters that are spelled out
        vowel = words[0].upper() in "AEFHILMNORSX"
    else:
        vowel = words[0] in "aeioAEIO8" or bool(re.match(r"[uU](?!int|ni[^mn]|s[eu])", words))
    return f"an {words}" if vowel else f"a {words}"


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


def too_deep(name: str, value: Any, error: Any = None) -> Any:
    """The error for a container that is nested too deeply; if it is not, the error that a walk over it raised."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = {id(v): v for each in level for v in (each.values() if isinstance(each, dict) else each)
                 if isinstance(v, (list, tuple, dict))}
        if not inner:
            return error
        level = list(inner.values())
    return ConversionError(f"{name} is nested too deeply, or contains itself", expect=f"at most {DEEPEST} levels")


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
