"""Unit 11: graphs to try passes on, some of them random, and their values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....compile.nodes.graph import Graph
from ....compile.running.program import PlainProgram
from ....ops.elementwise import sin

SIZE = 4
GIVEN = np.linspace(-1.5, 2.0, SIZE * SIZE, dtype="f").reshape(SIZE, SIZE)


def random_program(draw: random.Random) -> Callable[[Any], Any]:
    """A function of many small operations, some of which are the same by chance."""
    steps = [(draw.randrange(7), draw.randrange(1 << 16), draw.randrange(1 << 16)) for _ in range(24)]

    def program(x: Any) -> Any:
        values = [x, x + 1.0]
        for which, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append((_sum, _difference, _sine, _half, _turned, _total, _minus)[which](a, b))
        return sum(values[-4:], start=values[-5])

    return program


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _difference(a: Any, b: Any) -> Any:
    return a - b


def _sine(a: Any, b: Any) -> Any:
    return sin(a)


def _half(a: Any, b: Any) -> Any:
    return a * 0.5


def _turned(a: Any, b: Any) -> Any:
    return a.T


def _total(a: Any, b: Any) -> Any:
    return a.sum(0) + b


def _minus(a: Any, b: Any) -> Any:
    return -a * b


def values_of(graph: Graph, given: Any = GIVEN) -> list[Any]:
    """The outputs of a graph of one input, computed node by node by the kernels of eager mode."""
    fixed = [node for node in graph.nodes if node.op is None]
    whole = Graph((*graph.inputs, *fixed), graph.outputs)
    with np.errstate(all="ignore"):
        return PlainProgram(whole)([given, *[node.array() for node in fixed]])  # type: ignore[attr-defined]


def same_bits(one: Any, other: Any) -> Any:
    """For each number of two arrays, whether it has the same bits; any nan equals any other."""
    equal = (one == other) & (np.signbit(one) == np.signbit(other)) if np.asarray(one).dtype.kind == "f" else one == other
    return equal | ((one != one) & (other != other))


def same_values(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two lists of arrays have the same dtypes, shapes and bits."""
    return all(
        a.dtype == b.dtype and a.shape == b.shape and bool(np.all(same_bits(a, b))) for a, b in zip(one, other, strict=True)
    )
