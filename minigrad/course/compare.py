"""Comparing an answer with the right one, so that the difference can be said in a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .feedback import written

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # an answer may be computed in float32, and in another order


def difference(
    yours: Any, right: Any, called: str | Sequence[str] = "the result", by: str = "expected"
) -> str | None:
    """Where and how an answer differs from the right one; None where it does not.

    A tuple is `called` by one name, or by one for each of its parts.

    >>> difference([[1.0, 2.0]], [[1.0, 3.0]], "gradient of input 0", "numerical")
    'gradient of input 0 is wrong at (0, 1): yours 2.0, numerical 3.0 (1 of 2 entries differ)'
    >>> difference(mg.asarray(2.0), 2) is None
    True
    """
    if isinstance(right, tuple):
        return _parts(yours, right, called, by)
    assert isinstance(called, str)
    if isinstance(right, dict):
        return _entries(yours, right, called, by)
    if isinstance(right, str | bool) or right is None:
        return None if _plain(yours) == right else f"{called} is {written(_plain(yours))}, {by} {written(right)}"
    if isinstance(right, list) and all(isinstance(each, str) for each in right):
        return None if yours == right else f"{called} is {written(yours)}, {by} {written(right)}"
    if yours is None:
        return f"{called} is None, {by} {written(right)}"
    try:
        ours, given = np.asarray(plain(right)), np.asarray(plain(yours))
        given = given.astype(np.float64) if given.dtype.kind in "biuf" else given
    except (TypeError, ValueError):
        given = np.asarray(None, dtype=object)
    if given.dtype.kind not in "f":
        return f"{called} is {written(yours)}, of type {type(yours).__name__}, {by} {written(right)}"
    if given.shape != ours.shape:
        return f"{called} has shape {given.shape}, {by} {ours.shape}"
    return _numbers(given, ours.astype(np.float64), called, by)


def same(yours: Any, right: Any) -> bool:
    """Whether two answers are equal as far as numbers go."""
    return difference(yours, right) is None


def _numbers(given: Any, ours: Any, called: str, by: str) -> str | None:
    wrong = ~np.isclose(given, ours, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    if not wrong.any():
        return None
    if not ours.shape:
        return f"{called} is wrong: yours {written(float(given))}, {by} {written(float(ours))}"
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"at {at}" if len(at) > 1 else f"at [{at[0]}]"
    many = f"{wrong.sum()} of {wrong.size} entries differ"
    return f"{called} is wrong {where}: yours {written(float(given[at]))}, {by} {written(float(ours[at]))} ({many})"


def _parts(yours: Any, right: tuple[Any, ...], called: str | Sequence[str], by: str) -> str | None:
    whole = called if isinstance(called, str) else "the result"
    names = [f"{called}[{i}]" for i in range(len(right))] if isinstance(called, str) else called
    if yours is None:
        return f"{whole} is None, expected {len(right)} values: is there a `return`?"
    if not isinstance(yours, tuple | list):
        return f"{whole} is one value, {written(yours)}, expected {len(right)}, with a comma between"
    if len(yours) != len(right):
        parts = "1 part" if len(yours) == 1 else f"{len(yours)} parts"
        return f"{whole} has {parts}, expected {len(right)}"
    for one, other, name in zip(yours, right, names):
        found = difference(one, other, name, by)
        if found is not None:
            return found
    return None


def _entries(yours: Any, right: dict[Any, Any], called: str, by: str) -> str | None:
    if not isinstance(yours, dict):
        return f"{called} is {written(yours)}, {by} a dictionary"
    for key in [key for key in right if key not in yours]:
        return f"{called} has nothing for {key}"
    for key in [key for key in yours if key not in right]:
        return f"{called} has an entry for {key}, which is one too many"
    for key in right:
        found = difference(yours[key], right[key], f"{called} of {key}", by)
        if found is not None:
            return found
    return None


def plain(value: Any) -> Any:
    """A tensor's numbers; anything else as it is."""
    return value.detach().numpy() if hasattr(value, "detach") else value


def _plain(value: Any) -> Any:
    value = plain(value)
    return value.tolist() if hasattr(value, "tolist") else value


def numerical(function: Callable[..., Any], inputs: Sequence[Any], g: Any, width: float = 1e-6) -> tuple[Any, ...]:
    """Gradients of `(function(*inputs) * g).sum()` by differences, in float64: no rule is asked.

    >>> numerical(lambda a, b: a * b, (3.0, -2.0), 5.0)
    (np.float64(-10.0), np.float64(15.0))
    """
    here = [np.asarray(plain(x), dtype=np.float64) for x in inputs]
    weight = np.asarray(plain(g), dtype=np.float64)
    found = []
    for i, x in enumerate(here):
        gradient = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            sides = []
            for sign in (1, -1):
                moved = [array.copy() for array in here]
                moved[i][at] += sign * width
                sides.append(np.sum(np.asarray(plain(function(*moved)), dtype=np.float64) * weight))
            gradient[at] = (sides[0] - sides[1]) / (2 * width)
        found.append(np.round(gradient, 7))
    return tuple(found)
