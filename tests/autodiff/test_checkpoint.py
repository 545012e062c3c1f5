"""Checkpoints: the same gradients, fewer bytes alive, the same random numbers on replay."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.node import topological_order


def block(x):
    for _ in range(6):
        x = mg.tanh(x * 1.5 + 0.1)
    return x


def saved_bytes(tensor):
    arrays = {
        id(v): v.nbytes
        for node in topological_order([tensor.node]) if isinstance(node.saved, tuple)
        for v in node.saved if hasattr(v, "nbytes")
    }
    return sum(arrays.values())


def leaf(n=1000):
    return mg.asarray(np.random.default_rng(0).standard_normal(n), requires_grad=True)


def test_gradients_are_the_same_bit_for_bit():
    a, b = leaf(), leaf()
    block(block(a)).sum().backward()
    mg.checkpoint(block)(mg.checkpoint(block)(b)).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())


def test_checkpoint_saves_nothing_before_the_backward_pass():
    plain, light = block(leaf()), mg.checkpoint(block)(leaf())
    assert saved_bytes(plain) >= 6 * 8000
    assert saved_bytes(light) == 0


def test_live_bytes_fall_at_their_peak():
    import tracemalloc

    def peak(function):
        w = leaf(20_000)
        tracemalloc.start()
        x = w
        for _ in range(8):
            x = function(x)
        x.sum().backward()
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(mg.checkpoint(block)) < 0.5 * peak(block)


def test_dropout_is_identical_on_replay():
    def noisy(x):
        return mg.dropout(mg.tanh(x), 0.5, training=True)

    w = leaf()
    y = mg.checkpoint(noisy)(w)
    y.sum().backward()
    kept = y.detach().numpy() != 0
    assert 400 < kept.sum() < 600
    np.testing.assert_array_equal(w.grad.numpy() != 0, kept)


def test_captured_parameters_get_gradients():
    w, x = leaf(3), mg.asarray([1.0, 2.0, 3.0], dtype=mg.float64)
    mg.checkpoint(lambda a: (a * w).exp())(x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.exp(x.numpy() * w.detach().numpy()) * x.numpy())


def test_checkpoints_support_higher_orders_and_containers():
    def cube(d):
        return (d["x"] ** 3).sum()

    x = mg.asarray([2.0, 3.0])
    second = mg.hessian(lambda x: mg.checkpoint(cube)({"x": x}))(x)
    assert second.tolist() == [[12.0, 0.0], [0.0, 18.0]]
    w = mg.asarray([2.0], requires_grad=True)
    first = mg.gradients(mg.checkpoint(cube)({"x": w}), w, create_graph=True)
    assert mg.gradients(first.sum(), w).tolist() == [12.0]


def test_checkpoints_nested_and_under_no_grad():
    w = leaf(5)
    twice = mg.checkpoint(lambda x: mg.checkpoint(block)(block(x)))
    twice(w).sum().backward()
    other = leaf(5)
    block(block(other)).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), other.grad.numpy())
    with mg.no_grad():
        assert not twice(w).requires_grad


def test_a_second_backward_and_retain():
    w = leaf(3)
    y = mg.checkpoint(block)(w).sum()
    y.backward(retain_graph=True)
    first = w.grad.numpy_copy()
    y.backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * first)
    with pytest.raises(mg.GradError, match="a second time"):
        y.backward()


def test_checkpoint_refuses_a_changed_input():
    w = leaf(3)
    c = mg.ones(3, dtype=mg.float64)
    y = mg.checkpoint(lambda x: mg.tanh(x * c))(w).sum()
    c[0] = 5.0
    with pytest.raises(mg.MutationError, match=r"checkpoint: constant \(3,\)(.|\n)*c\[0\] = 5.0"):
        y.backward()


def test_assignment_inside_a_checkpoint():
    def step(x):
        y = x * 2
        y[0] = y[1] * y[2]
        return y.exp()

    a, b = leaf(3), leaf(3)
    step(a).sum().backward()
    mg.checkpoint(step)(b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())
