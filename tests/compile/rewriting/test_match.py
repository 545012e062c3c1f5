"""The matcher: all matches of a node with a pattern, reasons for a mismatch, and the index of rules by their heads."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import rule
from minigrad.compile.rewriting.equation import Equation, Literal, Number, Operation, Part, ways
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.compile.rewriting.recording import Recorded

X = np.array([1.5, -2.0], np.float32)


def last(function, *arrays):
    return Recorded(function, *arrays).graph.outputs[0]


def test_matches_are_all_found():
    x, y = Part("x"), Part("y")
    product = last(lambda a, b: mg.exp(a) * mg.tanh(b), X, X)
    found = [(bound[x].name, bound[y].name) for bound in ways(Operation("multiply", [x, y]), product, {})]
    assert found == [("exp", "tanh"), ("tanh", "exp")]
    square = Operation("multiply", [x, x])
    assert not list(ways(square, product, {}))
    sums = last(lambda a, b, c: (a + b) + (a + c), X, X, X)
    parts = [Part(letter) for letter in "xyzw"]
    both = Operation("add", [Operation("add", parts[:2]), Operation("add", parts[2:])])
    assert len(list(ways(both, sums, {}))) == 8
    shared = Operation("add", [Operation("add", [x, y]), Operation("add", [x, Part("z")])])
    assert len(list(ways(shared, sums, {}))) == 2  # both parts read x, in either order of the outer sum


def test_parts_that_are_bound_already_stay_bound():
    x, y = Part("x"), Part("y")
    total = last(lambda a, b: a + b, X, X)
    first, second = total.inputs
    (bound,) = ways(Operation("add", [x, y]), total, {x: second})
    assert bound[y] is first


def test_mismatches_have_reasons():
    reasons = []
    x = Part("x")
    node = last(lambda a, b: a * b + 2.0, X, X)
    for pattern in (
        Operation("add", [Operation("multiply", [x, x]), Number("n")]),
        Operation("add", [Operation("exp", [x]), Number("n")]),
        Operation("add", [x, Literal(3)]),
    ):
        assert not list(ways(pattern, node, {}, lambda bound, why: reasons.append((len(bound), why))))
    assert (3, "two xs where the pattern has one") in reasons
    assert (1, "multiply where the pattern has exp") in reasons and (2, "not the number 3") in reasons
    assert (1, "the number 2.0 where the pattern has exp") in reasons


PROGRAMS = [
    lambda x: mg.maximum(-np.inf, mg.maximum(1.0, x)) * -1 * 1.0,
    lambda x: mg.where(mg.full((2,), True), mg.negative(-x), x / 4) + mg.full((2,), -0.0),
    lambda x: (x * 2.0) * 4.0 - -x + -(x * 3.0) * mg.full((2,), -1.0),
    lambda x: -x * -mg.exp(x) / -3.0 + emit(P.pow, x, 2) * emit(P.pow, x, mg.full((2,), 1.0)),
    lambda x: mg.where(~(x < 3), x.astype("float32"), 2.0) - 0,
    lambda x: mg.floor(mg.round(x)) + mg.negative(-x).astype("float64").astype("float32"),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_index_leaves_no_rule_out_that_fires(program):
    nodes = Recorded(program, X).graph.nodes
    fired = 0
    for node in nodes:
        firing = [each for each in rule if isinstance(each.function, Equation) and each.function(node) is not None]
        assert set(firing) <= set(rule.at(node))
        fired += len(firing)
    assert fired
