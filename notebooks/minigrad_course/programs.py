"""The programs that functions over nodes are tried on, and right orders of their nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from minigrad.core.node import Node, topological_order
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import tanh

from .walking import made_from


def leaf(*numbers: float) -> Tensor:
    """A tensor that requires a gradient."""
    return asarray(numbers[0] if len(numbers) == 1 else list(numbers), requires_grad=True)


def chain() -> Tensor:
    h = leaf(0.5)
    for _ in range(4):
        h = tanh(h * 1.5)
    return h


def diamond() -> Tensor:
    x = leaf(1.0)
    s = 2 * x
    return s * s + 3 * s


def short_path_first() -> Tensor:
    x = leaf(1.0)
    a = 2 * x
    return a + a * a


def twice() -> Tensor:
    a = leaf(3.0)
    return a + a


def shared() -> Tensor:
    p, q = 2 * leaf(1.0), 3 * leaf(1.0)
    return (p + q) + p * 5


def vectors() -> Tensor:
    w, b = leaf(0.5, -1.0, 2.0), leaf(0.1)
    h = tanh(w + b)
    return (h * w).sum() * h.sum()


def doubled(times: int = 40) -> Tensor:
    a = leaf(1.0)
    for _ in range(times):
        a = 0.5 * (a + a)
    return a


def deep(length: int = 10_000) -> Tensor:
    h = leaf(1.0)
    for _ in range(length):
        h = h + 0.001
    return h


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "a + a": twice,
    "a chain of four tanh": chain,
    "the diamond s * s + 3 * s": diamond,
    "a + a * a": short_path_first,
    "(p + q) + p * 5": shared,
    "a program of vectors": vectors,
}
LARGE: dict[str, Callable[[], Tensor]] = {  # tried when all others are right
    "a = 0.5 * (a + a), 40 times": doubled,
    "a chain of 10,000 additions": deep,
}
VALUES = {  # names for messages, in the order in which the values are made
    "a + a": "a, a + a",
    "the diamond s * s + 3 * s": "x, s, s * s, 3 * s, the result",
    "a + a * a": "x, a, a * a, the result",
    "(p + q) + p * 5": "u, p, v, q, p + q, p * 5, the result",
}
QUESTIONS = 50_000  # the most visits to nodes of one program


def by_number(result: Node) -> list[Node]:
    """The latest first."""
    return topological_order([result])[::-1]


def depth_first(result: Node, last_input_first: bool = False) -> list[Node]:
    """Each node after all of its inputs, then turned round."""
    found: list[Node] = []
    seen: set[Node] = set()
    stack = [(result, False)]
    while stack:
        node, done = stack.pop()
        if done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            sources = made_from(node)
            stack += [(source, False) for source in (sources if last_input_first else sources[::-1])]
    return found[::-1]


ORDERS = (by_number, depth_first, partial(depth_first, last_input_first=True))  # each ends differently
