"""Picking an element of each row: logged, can be left out by name, and checked when the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise

ROWS, TARGETS = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 10, np.array([2, 0, -1, 1])


def picked(x, t):
    return mg.exp(x)[mg.arange(4), t].sum()


def test_the_log_says_what_was_picked_and_placed():
    log = mg.jit(mg.grad(picked)).passes(mg.asarray(ROWS), mg.asarray(TARGETS))
    assert log["pick_rows"][-1].counts() == {"placed by comparing": 1} and len(log["pick_rows"]) == 1
    log = mg.jit(picked).passes(mg.asarray(ROWS), mg.asarray(TARGETS))
    assert "pick_rows: picked by comparing: gather_1 -> where_" in str(log)
    assert log.last.checks[0].size == 3 and not log.first.checks


def test_the_checks_stay_with_the_graph():
    graph = mg.trace(picked, mg.asarray(ROWS), mg.asarray(TARGETS))
    once, _ = optimise(graph)
    (check,) = once.checks
    assert check.node is graph.inputs[1] and check in optimise(once)[0].checks
    assert "gather" in [node.name for node in optimise(graph, without="pick_rows")[0].nodes]
    assert not optimise(graph, without="pick_rows")[0].checks


def test_a_position_that_is_not_in_the_row_is_an_error(numpy_kernels):
    f = mg.jit(picked)
    x = mg.asarray(ROWS)
    np.testing.assert_allclose(f(x, mg.asarray(TARGETS)).item(), picked(x, mg.asarray(TARGETS)).item(), rtol=1e-6)
    with pytest.raises(mg.IndexingError, match="3"):
        f(x, mg.asarray([0, 1, 3, 2]))


@pytest.mark.parametrize("fill", [0, 1])
def test_labels_that_a_program_fills_itself_are_checked_too(fill):
    """They are a number in the kernels, and have memory for the check alone."""
    def loss(x):
        return mg.nll_loss(mg.log_softmax(x), mg.full(4, fill).astype(mg.int64))

    x = mg.asarray(ROWS)
    np.testing.assert_allclose(mg.jit(mg.grad(loss))(x).numpy(), mg.grad(loss)(x).numpy(), rtol=1e-6)
    with pytest.raises(mg.IndexingError, match="3"):
        mg.jit(mg.grad(lambda x: mg.nll_loss(x, mg.full(4, 3).astype(mg.int64))))(x)
