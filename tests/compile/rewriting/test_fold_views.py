"""Views of views become one view with the same values."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.rewriting.fold_views import rule
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.compile.rewriting.recording import Recorded, assert_same_bits

# Rule, function of a tensor of shape (2, 3, 4), names of the remaining nodes.
CASES = [
    ("reshape(x) -> x", lambda x: mg.reshape(x, (2, 3, 4)) * 2, "multiply"),
    ("broadcast_to(x) -> x", lambda x: emit(P.broadcast_to, x, shape=(2, 3, 4)) * 2, "multiply"),
    ("reshape(reshape(x), shape=s) -> reshape(x, shape=s)", lambda x: x.reshape((6, 4)).reshape((4, 6)), "reshape"),
    ("reshape(reshape(x), shape=s) -> reshape(x, shape=s)", lambda x: x.reshape((6, 4)).reshape((2, 3, 4)), ""),
    ("broadcast_to(broadcast_to(x), shape=s) -> broadcast_to(x, shape=s)",
     lambda x: repeated(repeated(x[:1], 4, 3, 4), 5, 4, 3, 4), "broadcast_to slice"),
    ("transfer there and back", lambda x: x.to("cpu:1").reshape(-1).to("cpu"), "reshape"),
    ("transfer there and back", lambda x: (x.to("cpu:1") + mg.ones(4, device="cpu:1")).to("cpu"), "add"),
    ("permutation of nothing", lambda x: mg.permute_dims(x, (0, 1, 2)) * 2, "multiply"),
    ("permutation of nothing", lambda x: mg.permute_dims(x[:, None], (1, 0, 2, 3)), "reshape"),
    ("permutation twice", lambda x: mg.permute_dims(mg.permute_dims(x, (2, 0, 1)), (2, 0, 1)), "permute_dims"),
    ("permutation twice", lambda x: mg.permute_dims(mg.permute_dims(x, (2, 0, 1)), (1, 2, 0)), ""),
    ("slice of everything", lambda x: x[:, 0:3, ...], ""),
    ("slice of everything", lambda x: x[None, :, :, None], "reshape"),
    ("broadcast later", lambda x: mg.exp(mg.broadcast_to(x[0], (5, 3, 4))), "slice exp broadcast_to"),
    ("broadcast later", lambda x: x + mg.broadcast_to(x[0], (2, 3, 4)), "slice add"),
    ("broadcast later", lambda x: mg.where(x < 1, x, mg.broadcast_to(x[:1], (2, 3, 4))), "slice less where"),
]


def repeated(x, *shape):
    return mg.broadcast_to(x, shape)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_a_rule_fires_and_shows_the_same(number):
    name, function, left = CASES[number]
    recorded = Recorded(function, np.random.default_rng(0).standard_normal((2, 3, 4), dtype=np.float32))
    graph, log = optimise(recorded.graph)
    assert log.counts()[name] >= 1, recorded.graph
    assert sorted(node.name for node in graph.nodes) == sorted(left.split()), graph
    assert_same_bits(recorded.values(graph), [r.data for r in recorded.results], str(graph))


def test_rules_all_have_a_case():
    assert {each.name for each in rule} == {case[0] for case in CASES}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mg.permute_dims(x, (1, 0, 2)),
        lambda x: mg.reshape(mg.permute_dims(x, (1, 0, 2)), (6, 4)),
        lambda x: x[::-1],
        lambda x: x[:, :2],
        lambda x: mg.broadcast_to(x.reshape((2, 3, 1, 4)), (2, 3, 5, 4)),
        lambda x: emit(P.place, x, shape=(4, 3, 4), index=(slice(1, 3), ...))[0:2, ...],
    ],
)
def test_views_that_change_the_elements_stay(function):
    recorded = Recorded(function, np.arange(24.0).reshape((2, 3, 4)))
    assert optimise(recorded.graph)[0] is recorded.graph
