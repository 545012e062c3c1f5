"""Unit 11: programs as texts, and graphs to try passes on."""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.compile.jitted import trace
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.plain import PlainProgram
from minigrad.core.primitive import P
from minigrad.ops import elementwise
from minigrad.ops.creation import arange, asarray, ones
from minigrad.ops.ordering import sort

SIZE = 4
GIVEN = np.linspace(-1.5, 2.0, SIZE * SIZE, dtype="f").reshape(SIZE, SIZE)
NAMES = {op.name: getattr(elementwise, op.name) for op in P if hasattr(elementwise, op.name)}
NAMES |= {"__builtins__": {}, "arange": arange, "asarray": asarray, "sort": sort}


def evaluated(text: str, **values: Any) -> Any:
    """The value of an expression in which operations have their names in minigrad.

    >>> evaluated("exp(x) + 1", x=0.0).item()
    2.0
    """
    return eval(text.strip(), {**NAMES, **values})


OPERATIONS = (
    operator.add, operator.sub, lambda a, b: elementwise.sin(a), lambda a, b: a * 0.5, lambda a, b: a.T,
    lambda a, b: a.sum(0) + b, lambda a, b: -a * b,
)


def random_graph(draw: random.Random) -> Graph:
    """A graph of many small operations, some of which are the same by chance."""

    def program(x: Any) -> Any:
        values = [x, x + 1.0]
        while len(values) < 26:
            values.append(draw.choice(OPERATIONS)(draw.choice(values), draw.choice(values)))
        return sum(values[-4:], start=values[-5])

    return trace(program, ones((SIZE, SIZE)))


def values_of(graph: Graph) -> list[Any]:
    """The outputs of a graph of one input, computed node by node by the kernels of eager mode."""
    fixed = [node for node in graph.nodes if node.op is None]
    whole = Graph((*graph.inputs, *fixed), graph.outputs)
    with np.errstate(all="ignore"):
        return PlainProgram(whole)([GIVEN, *[node.array() for node in fixed]])  # type: ignore[attr-defined]


def same_bits(one: Any, other: Any) -> Any:
    """For each number of two arrays, whether it has the same bits; any nan equals any other."""
    return ((one == other) & (np.signbit(one) == np.signbit(other))) | ((one != one) & (other != other))


def same_values(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two lists of arrays have the same dtypes, shapes and bits."""
    pairs = zip(one, other, strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and bool(np.all(same_bits(a, b))) for a, b in pairs)
