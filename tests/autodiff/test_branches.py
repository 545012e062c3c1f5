"""Branches and loops that only some examples of a batch take: the gradients equal those of one example at a time."""

import numpy as np
import pytest

import minigrad as mg

X = [4.0, -1.0, 9.0, 0.0, -0.25]
W = 2.0


def of_operands(x, w):
    return mg.cond(x > 0, lambda x: mg.sqrt(x * w), lambda x: x * 0.5 * w, x)


def of_closures(x, w):
    return mg.cond(x > 0, lambda: mg.log(x) * w, lambda: x / (x - 3.0) + w)


def of_kept_inputs(x, w):
    return mg.cond(x > 0, lambda x: w / x + x**-0.5, lambda x: w * x, x)


def nested(x, w):
    def far():
        return mg.cond(x > 5, lambda: mg.sqrt(x - 5) * w, lambda: mg.log(x) * w + mg.sqrt(5 - x))

    return mg.cond(x > 0, far, lambda: mg.sqrt(0.5 - x) * w)


def loop(x, w):
    return mg.while_loop(lambda c: c > 2, lambda c: mg.sqrt(c - 1.5) * w, x, max_steps=4)


FUNCTIONS = [of_operands, of_closures, of_kept_inputs, nested, loop]
MODES = {"eager": lambda f: f, "jit": mg.jit}
TOTALS = {
    "gradients of the sum": lambda f: mg.grad(lambda x, w: mg.vmap(f, in_axes=(0, None))(x, w).sum(), (0, 1)),
    "a batch of gradients": lambda f: mg.vmap(mg.grad(f, (0, 1)), in_axes=(0, None)),
}


def one_at_a_time(f, numbers):
    pairs = [mg.grad(f, (0, 1), allow_unused=True)(mg.asarray(x), mg.asarray(W)) for x in numbers]
    return [np.array([0.0 if g is None else g.item() for g in column]) for column in zip(*pairs)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", TOTALS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_branches_not_taken_do_not_affect_gradients(f, how, mode):
    expected_x, expected_w = one_at_a_time(f, X)
    by_x, by_w = MODES[mode](TOTALS[how](f))(mg.asarray(X), mg.asarray(W))
    np.testing.assert_allclose(by_x.numpy(), expected_x, rtol=1e-5)
    np.testing.assert_allclose(by_w.numpy().sum(), expected_w.sum(), rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_branch_that_all_examples_take(mode, sign):
    numbers = [sign * x for x in (1.0, 4.0, 0.25)]
    for f in (of_operands, of_closures, nested):
        expected_x, expected_w = one_at_a_time(f, numbers)
        by_x, by_w = MODES[mode](TOTALS["gradients of the sum"](f))(mg.asarray(numbers), mg.asarray(W))
        np.testing.assert_allclose(by_x.numpy(), expected_x, rtol=1e-5)
        np.testing.assert_allclose(by_w.item(), expected_w.sum(), rtol=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_batches_of_batches(f):
    rows = mg.asarray([[4.0, -1.0], [-2.0, -3.0], [9.0, 1.0], [0.0, 6.0]])
    twice = mg.vmap(mg.vmap(mg.grad(f), in_axes=(0, None)), in_axes=(0, None))(rows, mg.asarray(W))
    expected, _ = one_at_a_time(f, rows.numpy().ravel().tolist())
    np.testing.assert_allclose(twice.numpy().ravel(), expected, rtol=1e-5)


@pytest.mark.parametrize("f", [of_operands, of_closures, of_kept_inputs, nested], ids=lambda f: f.__name__)
def test_second_derivatives_and_forward_mode(f):
    x, w = mg.asarray(X), mg.asarray(W)
    second = mg.vmap(mg.grad(mg.grad(lambda x: f(x, w))))(x)
    expected = [mg.grad(mg.grad(lambda x: f(x, w)), allow_unused=True)(x[i]) for i in range(len(X))]
    np.testing.assert_allclose(second.numpy(), [0.0 if e is None else e.item() for e in expected], rtol=1e-4)
    _, moved = mg.jvp(lambda x: mg.vmap(lambda x: f(x, w))(x), (x,), (mg.ones(len(X)),))
    np.testing.assert_allclose(moved.numpy(), one_at_a_time(f, X)[0], rtol=1e-5)


def test_values_come_from_the_branch_that_is_taken():
    for f in FUNCTIONS:
        expected = [f(mg.asarray(x), mg.asarray(W)).item() for x in X]
        for mode in MODES.values():
            ours = mode(mg.vmap(f, in_axes=(0, None)))(mg.asarray(X), mg.asarray(W))
            np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)
