"""Index arithmetic: the operations on indices, the fold over an index, and functions that build simple indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..nodes.view import Dims
from .ir import Accumulate, For, Index, Let, Running, Statement, Store, Walk, statements

Value = TypeVar("Value")


class IndexOperation(NamedTuple):
    """An operation on indices: a function of numbers or arrays, the instructions of LLVM and of WebAssembly, and the
    precedence in C.
    """

    compute: Callable[[Any, Any], Any]
    llvm: str
    wasm: str
    rank: int


ATOM = 3  # binds more tightly than any operation
INDEXING = {
    "+": IndexOperation(operator.add, "add nsw", "add", 1),
    "*": IndexOperation(operator.mul, "mul nsw", "mul", 2),
    "//": IndexOperation(operator.floordiv, "udiv", "div_u", 2),
    "%": IndexOperation(operator.mod, "urem", "rem_u", 2),
    "min": IndexOperation(np.minimum, "llvm.smin", "", ATOM),  # a function in C
}


def fold(index: Index, leaf: Callable[[Any], Value], join: Callable[[str, Value, Value], Value]) -> Value:
    """Fold an index: `leaf` maps numbers and names to values, `join(operation, left, right)` combines values.

    >>> fold(("+", ("*", "p", 10), "i"), str, lambda operation, a, b: f"({a} {operation} {b})")
    '((p * 10) + i)'
    """
    if index.__class__ is not tuple:
        return leaf(index)
    operation, left, right = index
    return join(operation, fold(left, leaf, join), fold(right, leaf, join))


def leaves(index: Index) -> list[Any]:
    """The numbers and names in an index.

    >>> leaves(("+", ("*", "p", 10), "i"))
    ['p', 10, 'i']
    """
    found, left = [], [index]
    while left:
        part = left.pop()
        if part.__class__ is tuple:
            _, first, second = part
            left += second, first
        else:
            found.append(part)
    return found


def reads(statement: Statement) -> list[Any]:
    """The operands that a statement reads, names and numbers, also those in indices."""
    found: list[Any] = []
    for s in statements([statement]):
        if isinstance(s, For):
            found += [a.value for a in s.accumulators]
        elif isinstance(s, Let):
            for operand in s.args:
                found += leaves(operand) if operand.__class__ is tuple else (operand,)
        elif isinstance(s, Running):
            found.append(s.value)
        else:  # a Store or an Accumulate
            found += s.value, *leaves(s.index)
    return found


def computed(operation: str, left: Any, right: Any) -> Any:
    """The value of an index operation on numbers or arrays.

    >>> fold(("min", ("*", "i", 2), 9), lambda leaf: np.arange(6) if leaf == "i" else leaf, computed)
    array([0, 2, 4, 6, 8, 9])
    """
    return INDEXING[operation].compute(left, right)


def depends(index: Index, variable: str) -> bool:
    """Whether an index changes with a variable.

    >>> depends(("+", "p", 1), "p"), depends(("+", "p", 1), "i")
    (True, False)
    """
    return variable in leaves(index)


def replaced(index: Index, variable: str, other: Index) -> Index:
    """An index with another index in place of a variable.

    >>> replaced(("+", "p", 1), "p", ("*", "i", 2))
    ('+', ('*', 'i', 2), 1)
    """
    return fold(index, lambda leaf: other if leaf == variable else leaf, lambda *parts: parts)


def step_of(index: Index, variable: str) -> int | None:
    """By how much a position grows with a variable; None if that is not always the same.

    >>> step_of(("+", ("*", "i", 4), "p"), "i"), step_of(("//", "i", 2), "i"), step_of(("//", "p", 2), "i")
    (4, None, 0)
    """
    if not isinstance(index, tuple) or not depends(index, variable):
        return int(index == variable)
    operation, left, right = index
    first, second = step_of(left, variable), step_of(right, variable)
    if first is None or second is None:
        return None
    if operation == "+":
        return first + second
    return first * right if operation == "*" and isinstance(right, int) else None


def keeps_apart(index: Index, variable: str) -> bool:
    """Whether different values of a variable always give different positions."""
    return step_of(index, variable) not in (None, 0)


class Copied(Walk):
    """Copies statements with an index in place of a variable; the suffix distinguishes the names of their values."""

    def __init__(self, variable: str, index: Index, suffix: str = "") -> None:
        self.variable, self.index, self.suffix = variable, index, suffix
        self.names: dict[Any, str] = {}

    def place(self, index: Any) -> Any:
        """An index or an operand, with the other names."""
        named = fold(index, lambda leaf: self.names.get(leaf, leaf), lambda *parts: parts)
        return replaced(named, self.variable, self.index)

    def let(self, let: Let) -> list[Let]:
        args = tuple([self.place(arg) for arg in let.args])
        name = self.names[let.name] = let.name + self.suffix
        return [replace(let, name=name, args=args)]

    def store(self, statement: Store | Accumulate) -> list[Store | Accumulate]:
        return [replace(statement, index=self.place(statement.index), value=self.place(statement.value))]

    accumulate = store

    def loop(self, loop: For) -> list[For]:
        return [replace(loop, body=self.block(loop.body))]


def terms(index: Index) -> list[Index]:
    """The terms of a sum, also of a sum times a number.

    >>> terms(("+", ("*", ("+", "p", 1), 8), "i"))
    [('*', 'p', 8), 8, 'i']
    """
    if isinstance(index, tuple) and index[0] == "+":
        return [*terms(index[1]), *terms(index[2])]
    if isinstance(index, tuple) and index[0] == "*" and isinstance(index[2], int):
        return [_scaled(term, index[2]) for term in terms(index[1])]
    return [index]


def _scaled(term: Any, factor: int) -> Index:
    if isinstance(term, tuple) and term[0] == "*" and isinstance(term[2], int):
        return times(term[1], term[2] * factor)
    return times(term, factor)


# Simple indices -------------------------------------------------------------------------------------------------------


def plus(a: Any, b: Any) -> Index:
    """a + b.

    >>> plus("i", 0), plus(2, 3), plus("i", 1)
    ('i', 5, ('+', 'i', 1))
    """
    if a == 0 or b == 0:
        return b if a == 0 else a  # type: ignore[no-any-return]
    return a + b if isinstance(a, int) and isinstance(b, int) else ("+", a, b)


def times(a: Any, factor: int) -> Index:
    """a · factor.

    >>> times("i", 1), times("i", 4)
    ('i', ('*', 'i', 4))
    """
    if factor == 0 or factor == 1:
        return a if factor else 0
    return a * factor if isinstance(a, int) else ("*", a, factor)


def divided(a: Any, by: int) -> Index:
    """a // by, for indices that are never negative.

    >>> divided("i", 3), divided(round_of("i", 2, 1), 2), divided(round_of("i", 2, 1), 6)
    (('//', 'i', 3), 'i', ('//', 'i', 3))
    """
    if by == 1 or isinstance(a, int):
        return a if by == 1 else a // by  # type: ignore[no-any-return]
    variable, steps, _ = _round(a)
    if steps > 1 and by % steps == 0:
        return divided(variable, by // steps)
    return ("//", a, by)


def remainder(a: Any, by: int) -> Index:
    """a % by, for indices that are never negative.

    >>> remainder("i", 3), remainder(round_of("i", 2, 1), 2), remainder(round_of("i", 2, 1), 6)
    (('%', 'i', 3), 1, ('+', ('*', ('%', 'i', 3), 2), 1))
    """
    if by == 1 or isinstance(a, int):
        return 0 if by == 1 else a % by
    variable, steps, step = _round(a)
    if steps > 1 and by % steps == 0:
        return round_of(remainder(variable, by // steps), steps, step)
    return ("%", a, by)


def round_of(variable: Any, steps: int, step: int) -> Index:
    """The number of the element that is computed in one step of a round, in a loop with several `steps` per round.

    >>> round_of("i", 2, 1)
    ('+', ('*', 'i', 2), 1)
    """
    return plus(times(variable, steps), step)


def _round(index: Any) -> tuple[Any, int, int]:
    """The arguments of `round_of` that give this index; (index, 1, 0) if there are none."""
    scaled, step = index[1:] if index[0] == "+" and isinstance(index[2], int) else (index, 0)
    if scaled[0] == "*" and isinstance(scaled[2], int) and step < scaled[2]:
        return scaled[1], scaled[2], step
    return index, 1, 0


def position(dims: Dims, count: Index, offset: int = 0) -> Index:
    """The position of element number `count` in these dimensions.

    >>> position([(2, 1), (3, 2)], "i")
    ('+', ('*', ('%', 'i', 3), 2), ('//', 'i', 3))
    """
    place: Index = offset
    for axis in reversed(range(len(dims))):
        size, stride = dims[axis]
        if stride:
            place = plus(place, times(remainder(count, size) if axis else count, stride))
        if axis:
            count = divided(count, size)
    return place
