"""Compares an answer with the right one, and describes the first difference in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .feedback import written

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # an answer may be computed in float32, and in another order


class Difference(NamedTuple):
    """How an answer differs from the right one."""

    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.what}\n  Expected: {self.expected}\n  Got: {self.got}"


def difference(
    yours: Any, right: Any, called: str | Sequence[str] = "the result", by: str = ""
) -> Difference | None:
    """Where and how an answer differs from the right one; None where they are equal.

    `called` names the answer, or each part of a tuple.  `by` says how the right answer was found.

    >>> print(difference([[1.0, 2.0]], [[1.0, 3.0]], "gradient of input 0", "by finite differences"))
    gradient of input 0 is wrong at (0, 1)
      Expected: 3.0, by finite differences
      Got: 2.0 (1 of 2 entries differ)
    >>> difference(mg.asarray(2.0), 2) is None
    True
    """
    if isinstance(right, tuple):
        return _parts(yours, right, called, by)
    assert isinstance(called, str)
    wrong, expected = f"{called} is wrong", f"{written(right)}, {by}" if by else written(right)
    if isinstance(right, dict):
        return _entries(yours, right, called, by)
    if isinstance(right, str | bool) or right is None:
        return None if _plain(yours) == right else Difference(wrong, expected, written(_plain(yours)))
    if isinstance(right, list) and all(isinstance(each, str) for each in right):
        return None if yours == right else Difference(wrong, expected, written(yours))
    if yours is None:
        return Difference(wrong, expected, "None")
    try:
        ours, given = np.asarray(plain(right)), np.asarray(plain(yours))
        given = given.astype(np.float64) if given.dtype.kind in "biuf" else given
    except (TypeError, ValueError):
        given = np.asarray(None, dtype=object)
    if given.dtype.kind not in "f":
        return Difference(wrong, expected, f"{written(yours)}, of type {type(yours).__name__}")
    if given.shape != ours.shape:
        return Difference(f"{called} has the wrong shape", str(ours.shape), str(given.shape))
    return _numbers(given, ours.astype(np.float64), wrong, by)


def same(yours: Any, right: Any) -> bool:
    """Whether two answers are equal, within rounding."""
    return difference(yours, right) is None


def factor(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """How many times the right numbers the wrong ones are, where all are so many times, or such a part; else None.

    >>> factor([((1.0, [-4.0, 6.0]), (1.0, [4.0, -6.0]))]), factor([(1.0, 2.0), (3.0, 6.0)]), factor([(1.0, 2.5)])
    (-1, 0.5, None)
    """
    parts = [zip(*pair) if isinstance(pair[1], tuple) else [pair] for pair in pairs]
    wrong = zip(*[part for each in parts for part in each if not same(*part)])
    one, other = (np.concatenate([np.ravel(plain(each)).astype(float) for each in side]) for side in wrong)
    times = float(np.sum(one * other) / np.sum(other * other))
    whole = round(times) or 1 / (round(1 / times))
    return whole if one.size > 1 and same(times, whole) and np.allclose(one, whole * other, rtol=RELATIVE) else None


def _numbers(given: Any, ours: Any, wrong: str, by: str) -> Difference | None:
    differ = ~np.isclose(given, ours, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    if not differ.any():
        return None
    at = tuple(int(i) for i in np.argwhere(differ)[0])
    where = "" if not at else f" at {at}" if len(at) > 1 else f" at [{at[0]}]"
    many = f" ({differ.sum()} of {differ.size} entries differ)" if at else ""
    expected = ", ".join(filter(None, [written(float(ours[at])), by]))
    return Difference(f"{wrong}{where}", expected, f"{written(float(given[at]))}{many}")


def _parts(yours: Any, right: tuple[Any, ...], called: str | Sequence[str], by: str) -> Difference | None:
    whole = called if isinstance(called, str) else "the result"
    names = [f"{called}[{i}]" for i in range(len(right))] if isinstance(called, str) else called
    wrong, values = f"{whole} is wrong", f"{len(right)} values"
    if yours is None:
        return Difference(wrong, values, "None: is there a `return`?")
    if not isinstance(yours, tuple | list):
        return Difference(wrong, f"{values}, with a comma between them", f"one value, {written(yours)}")
    if len(yours) != len(right):
        return Difference(wrong, values, "1 value" if len(yours) == 1 else f"{len(yours)} values")
    found = [difference(one, other, name, by) for one, other, name in zip(yours, right, names)]
    first = next(filter(None, found), None)
    good = ", ".join([name for name, each in zip(names, found) if each is None])
    return first if first is None or not good else first._replace(what=f"{first.what}; right: {good}")


def _entries(yours: Any, right: dict[Any, Any], called: str, by: str) -> Difference | None:
    wrong, keys = f"{called} is wrong", ", ".join(map(str, right))
    if not isinstance(yours, dict):
        return Difference(wrong, "a dictionary", written(yours))
    if set(yours) != set(right):
        return Difference(wrong, f"entries for {keys}", f"entries for {', '.join(map(str, yours)) or 'nothing'}")
    found = [difference(yours[key], right[key], f"{called} for {key}", by) for key in right]
    return next(filter(None, found), None)


def plain(value: Any) -> Any:
    """The numbers of a tensor; any other value unchanged."""
    return value.detach().numpy() if hasattr(value, "detach") else value


def _plain(value: Any) -> Any:
    value = plain(value)
    return value.tolist() if hasattr(value, "tolist") else value


def numerical(function: Callable[..., Any], inputs: Sequence[Any], g: Any, width: float = 1e-6) -> tuple[Any, ...]:
    """Gradients of `(function(*inputs) * g).sum()` by finite differences, in float64.

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
