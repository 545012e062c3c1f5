"""Calls of composed functions, their gradients, and updates of optimizers are one node each in graph mode."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.tree import flatten


def w_and_x(shape=(16, 24)):
    values = np.random.default_rng(0).standard_normal(shape, "f4")
    return mg.asarray(values, requires_grad=True), mg.asarray(values * 2)


def loss_of_targets():
    w, _ = w_and_x()
    loss = mg.cross_entropy(w * 1.5, mg.asarray(np.arange(16)))
    loss.backward()
    return loss.item(), w.grad.tolist()


def read_before_the_gradient():
    w, _ = w_and_x()
    y = mg.log_softmax(mg.relu(w * 2))
    first, loss = y.sum().item(), (y * y).mean()
    second = loss.item()
    loss.backward()
    return first, second, w.grad.tolist()


def gradient_of_a_gradient():
    w, _ = w_and_x()
    g = mg.gradients(mg.gelu(w * 1.0).sum(), w, create_graph=True)
    (g * g).sum().backward()
    return g.tolist(), w.grad.tolist()


def numbers_and_draws_behind_a_call():
    mg.random.seed(3)
    found = []
    for i in range(4):
        w, _ = w_and_x()
        y = mg.relu(w) * (0.5 * i) + i
        y = mg.cond(y.sum() > 0, lambda y: y + mg.random.uniform(24), lambda y: y - mg.random.uniform(24), y)
        y.sum().backward()
        found.append((y.tolist(), w.grad.tolist()))
    return found


def a_part_of_the_result_changes():
    w, _ = w_and_x()
    y = mg.relu(w * 1)
    part = y[2:5]
    part *= 3
    y.sum().backward()
    return y.tolist(), w.grad.tolist(), part.tolist()


def updates_of(optimizer, **options):
    def run():
        w, x = w_and_x()
        frozen, _ = w_and_x((12, 12))
        moves, found = optimizer([w, frozen], lr=0.1, **options), []
        for step in range(4):
            moves.zero_grad()
            loss = (mg.gelu(w) * x).mean() + (frozen.sum() if step == 2 else 0.0)
            loss.backward()
            moves.step()
            found.append(loss.item())
            moves.lr *= 0.5
        return found, w.tolist(), frozen.tolist(), [g is None for g in (w.grad, frozen.grad)]

    return run


CLOSED = [
    loss_of_targets, read_before_the_gradient, gradient_of_a_gradient, numbers_and_draws_behind_a_call,
    a_part_of_the_result_changes, updates_of(mg.optim.SGD), updates_of(mg.optim.SGD, momentum=0.9, nesterov=True),
    updates_of(mg.optim.AdamW),
]


@pytest.mark.parametrize("program", CLOSED)
def test_calls_that_are_one_node_compute_what_eager_mode_computes(program):
    with mg.eager_programs():
        expected = program()
        for _ in range(2):
            with mg.graph():
                found = program()
            for ours, theirs in zip(flatten(found, (float,))[0], flatten(expected, (float,))[0], strict=True):
                assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)


@pytest.mark.usefixtures("many_kinds")
def test_a_training_step_records_few_nodes_and_shows_all_operations():
    mg.random.seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(16, 16), mg.nn.Linear(16, 16))
    optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
    with mg.eager_programs(), mg.graph() as g:
        loss = mg.softmax(model(mg.ones((8, 16)))).max()
        loss.backward()
        optimizer.step()
        assert g._recorder.structure.count < 60  # 127 of all operations
        recorded = g.recorded(loss)
        loss.item()
    names = [node.name for node in recorded.nodes]
    assert names.count("matmul") == 2 and "exp" in names and "call" not in names
    (whole,) = g.programs
    everywhere = {*whole.graph.nodes, *whole.graph.inputs}
    assert "sqrt" in {node.name for node in whole.graph.nodes}
    assert {node.origin for node in whole.graph.nodes} - {None} <= everywhere, "gradients name their operations"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda w, x: mg.cross_entropy(w, mg.asarray(np.arange(16) + 10)).item(), "target 24 is out of range"),
        (lambda w, x: [y := mg.linear(x, w[:3]).sum(), x.__iadd__(1), y.backward()], "input x of linear"),
        (lambda w, x: [y := mg.gelu(w).max(), y.backward(), y.backward()], "a second time"),
    ],
)
def test_errors_of_calls_that_are_one_node_are_those_of_eager_mode(wrong, message):
    for mode in (nullcontext, mg.graph):
        with mg.eager_programs(), pytest.raises(mg.MinigradError, match=message), mode():
            wrong(*w_and_x())
