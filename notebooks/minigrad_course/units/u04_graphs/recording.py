"""Unit 04: a student's recorder and topological order, which run in the engine, and equal graphs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minigrad.core.node import Node
from minigrad.core.primitive import P
from minigrad.core.tensor import Tensor
from minigrad.ops.elementwise import tanh

from ...compare import Difference, difference
from ...feedback import Misused, Wrong, written
from ...interpreting import Operation
from ...limits import TimeIsUp
from ...orders import NodeOrder
from ...programs import doubled, leaf
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT

TENSORS = UNIT.words["tensors"]
SHARED = UNIT.words["shared"]
BOTH_WAYS = UNIT.words["both_ways"]
IN_ORDER = "the order of the inputs counts: b - a is not a - b"
NUMBERS = UNIT.words["numbers"]
NUMBER = UNIT.words["number"]
FURTHER = UNIT.words["further"]
EQUAL = UNIT.words["equal"]
COMPUTE = UNIT.words["compute"]


@UNIT.task
class Emit(FunctionTask):
    name = "emit"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
        for name, *inputs in (
            ("multiply", a, b), ("multiply", 2.0, a), ("multiply", a, a), ("subtract", a * b, 1.0), ("tanh", b),
            ("subtract", b, a * b), ("add", 3, a),
        ):
            yield Operation(P[name], len(inputs), {}, a.device), inputs

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        try:
            return super().check(_in_words(answer), rounds)
        except Misused as error:
            raise Wrong(self.name, error.message, error.hint) from None

    def wrong(self, known: Any) -> Any:
        return _in_words(super().wrong(known))

    def right(self, op: Any, inputs: Any) -> Any:
        return op.compute(_values(inputs)), _edges(inputs)

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        known = super()._hint(found)
        if known != self.otherwise:
            return known
        if any("the value is wrong" in words and "tensor" in words for _, _, words in found):
            return "op.compute returns the value, and the engine makes a tensor of it: return the value itself"
        if any(isinstance(yours, tuple) and isinstance(yours[0], list) for _, yours, _ in found):
            return COMPUTE
        if any("the tensor" in words for _, _, words in found):
            return TENSORS
        if all("edges are wrong" in words for _, _, words in found):
            rights = [_in_words(self.right)(*args)[1] for args, _, _ in found]
            if all(set(yours[1]) == set(right) for (_, yours, _), right in zip(found, rights)):
                return "a set has no order, and keeps one of two equal edges: make a list"
        return known

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        value, edges = _in_words(self.right)(*args)
        if not isinstance(yours, tuple) or len(yours) != 2:
            return difference(yours, (value, edges))
        if not isinstance(yours[1], list):
            return f"the second result, {written(yours[1])}, is not a list of edges"
        if yours[1] == edges and isinstance(yours[0], str | list):
            got = yours[0] if isinstance(yours[0], str) else f"a list, {', '.join(map(str, yours[0]))}"
            return Difference("the value is wrong", written(value), got)
        if yours[1] == edges:
            return difference(yours[0], value, "the value")
        return Difference("the edges are wrong", ", ".join(edges), ", ".join(map(str, yours[1])) or "no edge")

    def _call(self, args: tuple[Any, ...]) -> str:
        op, inputs = args
        called = _letters(inputs)
        names = [called[x.node] if isinstance(x, Tensor) else written(x) for x in inputs]
        return f"emit({op.name}, [{', '.join(names)}])"



def _in_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """An `emit` whose nodes, tensors and edges are words, which can be compared."""

    def words(op: Any, inputs: Any) -> Any:
        called = _letters(inputs)

        def word(found: Any) -> Any:
            if isinstance(found, list | tuple | set | dict):
                return list(map(word, found))
            if isinstance(found, Tensor):
                return f"the tensor {called[found.node]}" if found.node in called else "a new tensor"
            if isinstance(found, Node):
                return f"the node of {called.get(found, found.name)}"
            return found if isinstance(found, str) or found is None else written(found)

        found = function(op, list(inputs))
        if not isinstance(found, list | tuple) or len(found) != 2:
            return found if isinstance(found, np.ndarray) else word(found)
        return found[0] if isinstance(found[0], np.ndarray) else word(found[0]), word(found[1])

    return words


def _letters(inputs: Any) -> dict[Any, str]:
    """Names for the nodes of the tensors among some inputs."""
    return dict(zip(dict.fromkeys([x.node for x in inputs if isinstance(x, Tensor)]), "abc"))


def _values(inputs: Any) -> list[Any]:
    return [x.data if isinstance(x, Tensor) else x for x in inputs]


def _edges(inputs: Any) -> list[Any]:
    return [x.node if isinstance(x, Tensor) else x for x in inputs]


@UNIT.task
class TopologicalOrder(NodeOrder):
    name = "topological_order"


@UNIT.task
class SameGraph(FunctionTask):
    name = "same_graph"
    advice = dict.fromkeys(("attribute 'inputs'", "attribute 'name'"), NUMBER)

    def vary(self, draw: random.Random) -> None:
        self.texts: dict[Node, str] = {}  # the programs that made the nodes

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        for one, other, _ in PAIRS:
            yield self._node(one), self._node(other)
            if PROGRAMS[one] is not PROGRAMS[other]:
                yield self._node(other), self._node(one)

    def _node(self, text: str) -> Node:
        node: Any = PROGRAMS[text](leaf(3.0), leaf(2.0)).node
        self.texts[node] = text
        return node

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        one, other = doubled().node, doubled().node
        many = "a = 0.5 * (a + a), 40 times, compared with itself"
        try:
            found = answer(one, other)
        except TimeIsUp:
            hint = (
                "it compares the same pair again and again: a is used twice, so its inputs are compared twice, "
                "their inputs four times ... Skip a pair that you have written down"
            )
            raise Wrong(self.name, f"{many}: it did not come to an end", hint) from None
        if found is not True:
            raise Wrong(self.name, f"{many}: it returned {written(found)}", self.otherwise)
        return "also for a graph with 2⁴⁰ paths."

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None or not isinstance(yours, bool | np.bool_):
            return f"it returned {written(yours)}, not True or False"
        return super().judge(bool(yours), args)

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        """The hint of the mistake with the same results in all cases; else that of the first pair with a wrong one."""
        if any(yours is None for _, yours, _ in found):
            return "each way through the function ends in `return True` or `return False`"
        failed = {tuple([self.texts[node] for node in args]) for args, _, _ in found}
        for known in self.mistakes:
            wrong = self.wrong(known)
            if failed == {tuple([self.texts[node] for node in args]) for args in self._all_cases(1)
                          if wrong(*args) != self.right(*args)}:
                return known.hint
        one, other = (self.texts[node] for node in found[0][0])
        return next(hint for *pair, hint in PAIRS if set(pair) == {one, other})

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"same_graph({', '.join(f'the graph of {self.texts[node]}' for node in args)})"

    def right(self, one: Any, other: Any) -> bool:
        return _alike(one, other, {}, {})


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "h * h, with h = x * 2": lambda x, w: (lambda h: h * h)(x * 2),
    "(x * 2) * (x * 2)": lambda x, w: (x * 2) * (x * 2),
    "x * w": lambda x, w: x * w,
    "x * x": lambda x, w: x * x,
    "x + w": lambda x, w: x + w,
    "x * 3": lambda x, w: x * 3,
    "x * 2": lambda x, w: x * 2,
    "(x * 2) - x": lambda x, w: (x * 2) - x,
    "x - (x * 2)": lambda x, w: x - (x * 2),
    "tanh(x * w)": lambda x, w: tanh(x * w),
    "tanh(x + w)": lambda x, w: tanh(x + w),
    "a * b, with a = x * 2, b = w + 1": lambda x, w: (lambda a, b: a * b)(x * 2, w + 1),
    "a * b, with b = w + 1, a = x * 2": lambda x, w: (lambda b, a: a * b)(w + 1, x * 2),
    "a * b, with a = x * 2, b = x + 1": lambda x, w: (lambda a, b: a * b)(x * 2, x + 1),
}
PAIRS = (  # two programs, and the hint where they are compared wrongly
    ("h * h, with h = x * 2", "(x * 2) * (x * 2)", SHARED), ("x * w", "x * x", BOTH_WAYS), ("x * w", "x * w", EQUAL),
    ("h * h, with h = x * 2", "h * h, with h = x * 2", EQUAL), ("(x * 2) - x", "x - (x * 2)", IN_ORDER),
    ("x * 2", "x * 3", NUMBERS), ("x * w", "x + w", FURTHER), ("tanh(x * w)", "tanh(x + w)", FURTHER),
    ("a * b, with a = x * 2, b = w + 1", "a * b, with b = w + 1, a = x * 2", EQUAL),
    ("a * b, with a = x * 2, b = w + 1", "a * b, with a = x * 2, b = x + 1", BOTH_WAYS),
)


def _alike(
    one: Any, other: Any, there: dict[Any, Any] | None, back: dict[Any, Any] | None, numbers: bool = True
) -> bool:
    """Whether two graphs are the same; without a dictionary, what is shared does not count in this direction."""
    if not (isinstance(one, Node) and isinstance(other, Node)):
        return not isinstance(one, Node) and not isinstance(other, Node) and (not numbers or one == other)
    if there is not None and back is not None and one in there:
        return there[one] is other
    for pairs, first, second in ((there, one, other), (back, other, one)):
        if pairs is not None and pairs.setdefault(first, second) is not second:
            return False
    if one.name != other.name or len(one.inputs) != len(other.inputs):
        return False
    return all(_alike(*pair, there, back, numbers) for pair in zip(one.inputs, other.inputs))


def _names(node: Node) -> list[str]:
    """The operations of a graph, sorted."""
    found, stack = {node}, [node]
    while stack:
        new = {each for each in stack.pop().inputs if isinstance(each, Node)} - found
        found |= new
        stack += new
    return sorted(each.name for each in found)
