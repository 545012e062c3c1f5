"""Common subexpressions and dead code."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.rewriting.common import comparable
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.compile.rewriting.recording import Recorded, assert_same_bits

X = np.random.default_rng(0).standard_normal((2, 3))


def left(function, *arrays):
    """The names of the nodes after all passes, whose values must not change."""
    recorded = Recorded(function, *(arrays or (X,)))
    graph, _ = optimise(recorded.graph)
    assert_same_bits(recorded.values(graph), [r.data for r in recorded.results], str(graph))
    return " ".join(sorted(node.name for node in graph.nodes))


def draw(key, block, shape=(3,)):
    return emit(P.random, shape=shape, dtype=mg.float32, key=key, block=block, device=mg.as_device("cpu"))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: mg.exp(x) * mg.exp(x), "exp multiply"),
        (lambda x: (mg.exp(x), mg.exp(x)), "exp"),
        (lambda x: (x + mg.exp(x)) * (mg.exp(x) + x), "add exp multiply"),
        (lambda x: (x + 2.5) * (2.5 + x), "add multiply"),
        (lambda x: (x - mg.exp(x)) * (mg.exp(x) - x), "exp multiply subtract subtract"),
        (lambda x: x[:, 1] * x[:, 1], "multiply slice"),
        (lambda x: x[:, 1] * x[:, 2], "multiply slice slice"),
        (lambda x: (x + 0.0) / (x + -0.0), "add divide"),
        (lambda x: mg.maximum(x, 0.0) * mg.maximum(x, -0.0), "maximum maximum multiply"),
        (lambda x: (x * math.nan, x * math.nan), "multiply"),
        (lambda x: (mg.sum(x, axis=0), mg.sum(x, axis=1)), "sum sum"),
        (lambda x: (x.astype(mg.float32), x.astype(mg.float16)), "astype astype"),
        (lambda x: draw(1, 0) + draw(1, 0), "add random"),
        (lambda x: draw(1, 0) + draw(1, 1), "add random random"),
        (lambda x: draw(1, 0) + draw(2, 0), "add random random"),
        (lambda x: (mg.zeros(2), mg.full(2, -0.0), mg.zeros(2, dtype=mg.int32)), "full full full"),
    ],
)
def test_equal_nodes_are_computed_once(function, names):
    assert left(function) == names


def test_equal_recipes_keep_the_line_of_the_first():
    def twice(x):
        first = mg.exp(x)
        return first, mg.exp(x)

    recorded = Recorded(twice, X)
    graph, log = optimise(recorded.graph)
    assert graph.outputs[0] is graph.outputs[1] is recorded.graph.outputs[0]
    (fired,) = log.fired
    assert (fired.rule, fired.node, fired.replacement) == ("same recipe", *recorded.graph.outputs[::-1])


def test_keys_of_attributes():
    values = [0, 0.0, -0.0, False, 1, 1.0, True, "1", None, (1,), ((1,),), slice(1), slice(1, None), math.nan]
    assert len({comparable(v) for v in values}) == len(values)
    assert comparable({"a": [1, slice(2)]}) == comparable({"a": (1, slice(2))})
    assert comparable(-math.nan) != comparable(0.0)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: put(put(x, 1.0, 1), 2.0, 1), "put"),
        (lambda x: put(put(x, mg.exp(x[0]), 1), 2.0, 1), "put"),
        (lambda x: put(put(x, 1.0, 1), 2.0, 0), "put put"),
        (lambda x: put(put(x, 1.0, 1), mg.exp(x[0]), 1), "exp put slice"),
        (lambda x: put(mg.exp(x), x * 2.0, slice(None)), "multiply"),
        (lambda x: put(mg.exp(x), 3.0, slice(None)), "full"),
        (lambda x: put(mg.exp(x), x[0].astype(mg.float32), slice(None)), "astype astype broadcast_to slice"),
        (lambda x: put(mg.exp(x), x[:1][None], slice(None)), "broadcast_to slice"),
        (lambda x: put(mg.exp(x), 3.0, slice(None, None, -1)), "exp put"),
        (lambda x: emit(P.put, mg.exp(x), 3.0, chain=()), "full"),
        (lambda x: emit(P.put, mg.exp(x), 3.0, chain=((P.permute_dims, {"axes": (1, 0)}),)), "exp put"),
    ],
)
def test_overwritten_elements_are_not_written(function, names):
    assert left(function) == names


def put(x, value, *index):
    return emit(P.put, x, value, chain=((P.slice, {"index": (*index, ...)}),))


def test_writes_at_computed_places():
    def twice(x, i, j):
        first = emit(P.put, x, 1.0, i, chain=())
        return emit(P.put, first, 2.0, i, chain=()), emit(P.put, first, 2.0, j, chain=())

    i = np.array([1, 1, 0])
    assert left(lambda x, i, j: twice(x, i, j)[0], X, i, i) == "put"
    assert left(lambda x, i, j: twice(x, i, j)[1], X, i, i) == "put put"
    assert left(lambda x, i: emit(P.put, x, 1.0, i, chain=()), X, i) == "put"  # not proved to cover everything
