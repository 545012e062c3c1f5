"""The matcher: finds the ways in which nodes of a graph match a pattern.

A pattern consists of parts, like a graph of nodes: the left side of an equation is a pattern, and so is a traced
function.  The operands of a commutative operation are matched in both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import NUMBERS
from .numbers import same_number, value_of

COMMUTE = {"add", "multiply", "equal", "bitwise_and", "bitwise_or", "bitwise_xor"}
EITHER = COMMUTE | {"maximum", "minimum"}  # these commute except for 0.0 and -0.0: which is the larger may differ

Bound = dict["Part", Any]  # the node or the Python number that each part has matched
Goals = tuple["Part", Any, "Goals"] | None  # a linked list: a part, what it has to match, and the other goals
Miss = Callable[[Bound, str], object]  # called with the parts that matched, and why the next part did not


class Part:
    """One place in a pattern.  This class matches any node or number; every occurrence matches the same one."""

    def __init__(self, name: str, inputs: Sequence[Part] = ()) -> None:
        self.name, self.inputs = name, tuple(inputs)

    def differs(self, x: Any) -> str:
        """Why `x` does not match this part, inputs aside; "" if it does."""
        return ""

    def may_be(self, head: Any) -> bool:
        """Whether something with this head may match."""
        return True


class Operation(Part):
    """An operation on other parts."""

    def differs(self, x: Any) -> str:
        if x.__class__ in NUMBERS:
            return f"the number {x!r} where the pattern has {self.name}"
        if x.op is None or x.op.name != self.name or len(x.inputs) != len(self.inputs):
            return f"{x.name} where the pattern has {self.name}"
        return ""

    def may_be(self, head: Any) -> bool:
        return getattr(head, "name", "") == self.name

    def may_have(self, heads: Sequence[Any]) -> bool:
        """Whether a node of this operation may match when its inputs have these heads."""
        for order in (heads, heads[::-1]) if self.name in EITHER else (heads,):
            if False not in [part.may_be(head) for part, head in zip(self.inputs, order)]:
                return True
        return False


class Number(Part):
    """Any number: a Python number, or a tensor filled with one."""

    def differs(self, x: Any) -> str:
        return "" if value_of(x) is not None else f"{x.name} where the pattern has a number"

    def may_be(self, head: Any) -> bool:
        return head.__class__ in NUMBERS or head is OTHER or head is P.full


class Literal(Number):
    """One number, such as 0 or -0.0."""

    def __init__(self, number: Any) -> None:
        super().__init__(repr(number))
        self.number = number
        LITERALS[number] = number

    def differs(self, x: Any) -> str:
        value = value_of(x)
        return "" if value is not None and same_number(value, self.number) else f"not the number {self.name}"

    def may_be(self, head: Any) -> bool:
        return head == self.number or head is P.full


LITERALS: dict[Any, Any] = {}  # the numbers that occur in patterns
OTHER = "another number"


def head(x: Any) -> Any:
    """The operation of an input, or the literal that it equals: enough to rule out most patterns."""
    return LITERALS.get(x, OTHER) if x.__class__ in NUMBERS else x.op


def ways(part: Part, x: Any, bound: Bound, miss: Miss | None = None) -> Iterator[Bound]:
    """All ways in which `x` matches a part of a pattern, given what other parts have matched."""
    alternatives: list[tuple[Goals, Bound]] = [((part, x, None), {**bound})]
    while alternatives:
        goals, bound = alternatives.pop()
        while goals is not None:
            part, x, goals = goals
            if part in bound:
                why = "" if _same(bound[part], x) else f"two {part.name}s where the pattern has one"
            else:
                why = part.differs(x)
            if why:
                if miss is not None:
                    miss(bound, why)
                break
            if part not in bound:
                bound[part] = x
                if part.name in EITHER:
                    alternatives.append((_goals(part, x.inputs[::-1], goals), {**bound}))
                if part.inputs:
                    goals = _goals(part, x.inputs, goals)
        else:
            yield bound


def _goals(part: Part, inputs: Sequence[Any], rest: Goals) -> Goals:
    """The goals that the inputs of a part match these inputs, in order, and then the rest."""
    for p, x in zip(part.inputs[::-1], inputs[::-1]):
        rest = (p, x, rest)
    return rest


def _same(a: Any, b: Any) -> bool:
    return a is b or (not isinstance(a, Node) and not isinstance(b, Node) and same_number(a, b))
