"""Gradient rules written by users."""

import numpy as np
import pytest

import minigrad as mg


@mg.custom_vjp
def log1pexp(x):
    return mg.log(1 + mg.exp(x))


@log1pexp.defines
def _(x):
    return log1pexp.function(x), x


@log1pexp.gradient
def _(x, g):
    return g * (1 - 1 / (1 + mg.exp(x)))


def test_custom_rule_is_used_and_can_be_differentiated():
    x = mg.asarray([0.5, -1.0, 2.0])
    assert mg.gradcheck(log1pexp, [x], order=2)
    assert mg.gradcheck(lambda x: log1pexp(x * x) * x, [x], order=2)


def test_custom_rule_replaces_the_derivative_of_the_function():
    @mg.custom_vjp
    def reversed_gradient(x):
        return x * 1.0

    @reversed_gradient.gradient
    def _(kept, g):
        return -g

    w = mg.asarray([1.0, 2.0], requires_grad=True)
    (reversed_gradient(w) * 3).sum().backward()
    assert w.grad.tolist() == [-3.0, -3.0]


@mg.custom_vjp
def polar(r, angle):
    return r * mg.cos(angle), r * mg.sin(angle)


@polar.gradient
def _(kept, g):
    (r, angle), (gx, gy) = kept, g
    return gx * mg.cos(angle) + gy * mg.sin(angle), r * (gy * mg.cos(angle) - gx * mg.sin(angle))


def test_functions_of_several_results_of_which_some_are_unused():
    r, angle = mg.asarray([1.5, 2.0]), mg.asarray([0.3, -0.7])
    assert mg.gradcheck(polar, [r, angle], order=2)
    assert mg.gradcheck(lambda r, a: polar(r, a)[1], [r, angle], order=2)


def test_backward_runs_once_for_all_inputs():
    calls = []

    @mg.custom_vjp
    def times(x, y):
        return x * y

    @times.gradient
    def _(kept, g):
        calls.append(1)
        return g * kept[1], g * kept[0]

    x, y = mg.asarray([1.0], requires_grad=True), mg.asarray([2.0], requires_grad=True)
    times(x, y).sum().backward()
    assert (x.grad.item(), y.grad.item(), len(calls)) == (2.0, 1.0, 1)


def test_custom_rules_under_vmap_with_shared_arguments():
    rng = np.random.default_rng(0)
    r, angle = mg.asarray(rng.random(4)), mg.asarray(0.5, dtype=mg.float64)

    def loss(r, angle):
        return polar(r, angle)[0] ** 2

    g = mg.vmap(mg.grad(loss, argnums=(0, 1)), in_axes=(0, None))(r, angle)
    for k in range(4):
        single = mg.grad(loss, argnums=(0, 1))(r[k], angle)
        np.testing.assert_allclose([g[0][k].item(), g[1][k].item()], [single[0].item(), single[1].item()])


def test_custom_rule_errors():
    @mg.custom_vjp
    def unfinished(x):
        return x

    with pytest.raises(mg.GradError, match="unfinished has no gradient yet"):
        unfinished(mg.ones(1))

    @unfinished.gradient
    def _(kept, g):
        return g, g

    with pytest.raises(mg.GradError, match="returned 2 gradients for 1 arguments"):
        mg.grad(lambda x: unfinished(x).sum())(mg.ones(1))
