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
    if yours is None:
        return Difference(wrong, expected, "None")
    try:
        ours, given = np.asarray(plain(right)), np.asarray(plain(yours))
        given = given.astype(np.float64) if given.dtype.kind in "biuf" else given
    except (TypeError, ValueError):
        given = ours = np.asarray(None, dtype=object)
    if ours.dtype.kind == "U":  # words, alone or among numbers
        equal = isinstance(yours, list) and given.dtype.kind == "U" and np.array_equal(given, ours)
        return None if equal else Difference(wrong, expected, written(yours))
    if given.dtype.kind not in "f":
        return Difference(wrong, expected, f"{written(yours)}, of type {type(yours).__name__}")
    if given.shape != ours.shape:
        return Difference(f"{called} has the wrong shape", str(ours.shape), str(given.shape))
    return _numbers(given, ours.astype(np.float64), wrong, by)


def same(yours: Any, right: Any) -> bool:
    """Whether two answers are equal, within rounding."""
    return difference(yours, right) is None


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


def copied(value: Any) -> Any:
    """An argument that a student's program may write into: arrays are copies, in lists, tuples and dictionaries too.

    >>> given = {"a": [1.0]}
    >>> copied(given)["a"].append(2.0), given
    (None, {'a': [1.0]})
    """
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(each) for key, each in value.items()}
    kept = getattr(value, "requires_grad", False)  # what is done to a copy would not reach it
    return value.copy() if isinstance(value, np.ndarray) or (hasattr(value, "detach") and not kept) else value


def factor(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """How many times the right numbers the wrong ones are; None where they differ in other ways, too.

    >>> factor([([2.0, 4.0], [1.0, 2.0]), (-6.0, -3.0)]), factor([([1.0, 3.0], [1.0, 2.0])])
    (2, None)
    >>> factor([((1.0, [-4.0, 6.0]), (1.0, [4.0, -6.0]))])  # of several results, the second is wrong
    -1
    """
    parts = [zip(*pair) if isinstance(pair[0], tuple) and isinstance(pair[1], tuple) else [pair] for pair in pairs]
    wrong = [part for each in parts for part in each if not same(*part)]
    try:
        yours, right = (np.concatenate([np.ravel(np.asarray(plain(pair[i]), float)) for pair in wrong]) for i in (0, 1))
    except (TypeError, ValueError):
        return None
    if yours.shape != right.shape or not right.any() or not yours.any() or not np.isfinite([yours, right]).all():
        return None
    found = float(yours @ right / (right @ right))
    near = [round(found), 1 / round(1 / found)] if 0.001 < abs(found) < 1000 and round(1 / found) else [round(found)]
    return next((each for each in near if each and np.allclose(yours, each * right, RELATIVE, ABSOLUTE)), None)


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
