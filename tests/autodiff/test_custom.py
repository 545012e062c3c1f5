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

    with pytest.raises(mg.GradError, match="returned 2 gradients for 1 argument"):
        mg.grad(lambda x: unfinished(x).sum())(mg.ones(1))


# forward mode, and rules that run again ------------------------------------------------------------------------------


def _cube(kept=None, rule=None):
    """x ** 3 with a gradient rule of the user's, which reads what `kept` returns."""
    @mg.custom_vjp
    def cube(x):
        return x**3

    if kept is not None:
        cube.defines(lambda x: (x**3, kept(x)))
    cube.gradient(rule or (lambda kept, g: g * 3 * kept[0] ** 2))
    return cube


INNER = _cube()
KEPT = {
    "the argument": _cube(),
    "several values": _cube(
        lambda x: {"squares": [x * x, (x, 2.0)], "n": 3, "none": None, "array": np.ones(()), "whole": mg.arange(2)},
        lambda kept, g: g * kept["n"] * kept["squares"][0] * mg.asarray(kept["array"], dtype=mg.float32),
    ),
    "the result": _cube(lambda x: (x, x**3), lambda kept, g: g * 3 * kept[1] / kept[0]),
    "a custom gradient": _cube(lambda x: (x, INNER(x)), lambda kept, g: g * 3 * kept[1] / kept[0]),
    "nothing but a copy": _cube(lambda x: x.copy(), lambda kept, g: g * 3 * kept**2),
    "a custom gradient in the rule": _cube(None, lambda kept, g: g * 3 * INNER(kept[0]) / kept[0]),
}
AROUND = {
    "plain": lambda f: lambda x: f(x).sum(),
    "jit": lambda f: mg.jit(lambda x: f(x).sum()),
    "checkpoint": lambda f: mg.checkpoint(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: mg.vmap(f)(x).sum(),
    "cond": lambda f: lambda x: mg.cond(mg.asarray(True), lambda: f(x), lambda: x).sum(),
    "scan": lambda f: lambda x: mg.scan(lambda total, row: (total + f(row), None), mg.zeros(()), x)[0],
}
SECOND = {
    "hessian": lambda f, x: mg.hessian(f)(x),
    "compiled": lambda f, x: mg.jit(mg.hessian(f))(x),
    "of each example": lambda f, x: mg.vmap(mg.hessian(f))(mg.stack([x, x]))[1],
    "forward": lambda f, x: mg.jacobian(mg.grad(f), mode="forward")(x),
    "reverse": lambda f, x: mg.jacobian(mg.grad(f))(x),
    "hvp": lambda f, x: mg.vmap(lambda v: mg.hvp(f, (x,), (v,)))(mg.eye(2)),
    "jvp": lambda f, x: mg.vmap(lambda v: mg.jvp(mg.grad(f), (x,), (v,))[1])(mg.eye(2)),
    "twice forward": lambda f, x: mg.vmap(lambda u: mg.vmap(
        lambda v: mg.jvp(lambda x: mg.jvp(f, (x,), (u,))[1], (x,), (v,))[1])(mg.eye(2)))(mg.eye(2)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kept", KEPT)
def test_second_derivatives_go_through_the_kept_values(kept, around):
    x, f = mg.asarray([1.0, 2.0]), AROUND[around](KEPT[kept])
    for name, second in SECOND.items():
        np.testing.assert_allclose(second(f, x).numpy_copy(), [[6, 0], [0, 12]], rtol=1e-4, err_msg=name)


def test_forward_mode_of_several_results():
    r, angle = mg.asarray([1.5, 2.0]), mg.asarray([0.3, -0.7])
    for around in (lambda f: f, mg.jit):
        f = around(polar)
        value, change = mg.jvp(f, (r, angle), (mg.ones(2), mg.zeros(2)))
        np.testing.assert_allclose(change[0].numpy_copy(), np.cos(angle.numpy_copy()), rtol=1e-6)
        np.testing.assert_allclose(change[1].numpy_copy(), np.sin(angle.numpy_copy()), rtol=1e-6)
        assert value[0].tolist() == polar(r, angle)[0].tolist()
        second = mg.hessian(lambda x, f=f: (f(x, x)[0] * x).sum())(angle)
        expected = mg.hessian(lambda x: (x * mg.cos(x) * x).sum())(angle)
        np.testing.assert_allclose(second.numpy_copy(), expected.numpy_copy(), rtol=1e-5)


def test_forward_mode_of_integers_among_the_results():
    @mg.custom_vjp
    def numbered(x):
        return x * x, mg.arange(2)

    numbered.gradient(lambda kept, g: g[0] * 2 * kept[0])
    (square, number), (change, still) = mg.jvp(numbered, (mg.asarray([1.0, 3.0]),), (mg.ones(2),))
    assert (square.tolist(), number.tolist()) == ([1, 9], [0, 1])
    assert (change.tolist(), still.tolist()) == ([2, 6], [0, 0])


def test_forward_mode_of_a_rule_that_gives_no_gradient():
    x = mg.asarray([1.0, 3.0])
    for rule, expected in (
        (lambda kept, g: (g * kept[1], None), [1, 3]), (lambda kept, g: (None, None), [0, 0]),
        (lambda kept, g: (mg.zeros(2), mg.zeros(2)), [0, 0]),
    ):
        times = mg.custom_vjp(lambda x, y: x * y)
        times.gradient(rule)
        assert mg.jvp(times, (x, x), (mg.ones(2), mg.ones(2)))[1].tolist() == expected


def test_third_derivatives_through_forward_mode():
    x, v = mg.asarray([1.0, 2.0]), mg.ones(2)
    for f in (lambda x: INNER(x).sum(), mg.jit(lambda x: INNER(x).sum())):
        assert mg.grad(lambda x, f=f: mg.hvp(f, (x,), (v,)).sum())(x).tolist() == [6.0, 6.0]
        assert mg.hvp(lambda x, f=f: mg.grad(f)(x).sum(), (x,), (v,)).tolist() == [6.0, 6.0]


def test_a_gradient_is_recorded_also_if_the_same_was_computed_before_without_a_history():
    w, g = mg.asarray([1.0, 2.0], requires_grad=True), mg.ones(2)
    y = INNER(w)
    assert mg.gradients(y, w, g, retain_graph=True).tolist() == [3.0, 12.0]
    assert mg.gradients(mg.gradients(y, w, g, create_graph=True).sum(), w).tolist() == [6.0, 12.0]


@mg.custom_vjp
def dropped(x):
    """Half of the elements, drawn at random."""


@dropped.defines
def _(x):
    mask = (mg.random.uniform(x.shape) > 0.5).astype(x.dtype)
    return x * mask, mask


@dropped.gradient
def _(mask, g):
    return g * mask


def _loss(x):
    return (dropped(x) ** 2).sum()


RUNS = {
    "plain": _loss,
    "jit": mg.jit(_loss),
    "checkpoint": mg.checkpoint(_loss),
    "scan": lambda x: mg.scan(lambda total, row: (total + _loss(row), None), mg.zeros(()), mg.stack([x]))[0],
    "cond": lambda x: mg.cond(x.sum() > 0, lambda: _loss(x), lambda: mg.random.uniform(x.shape).sum()),
}
DERIVATIVES = {
    "grad": lambda f, x: mg.grad(f)(x),
    "compiled": lambda f, x: mg.jit(mg.grad(f))(x),
    "of an example": lambda f, x: mg.vmap(mg.grad(f))(mg.stack([x]))[0],
    "second": lambda f, x: mg.grad(lambda x: mg.grad(f)(x).sum())(x),
    "hvp": lambda f, x: mg.hvp(f, (x,), (x,)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("run", RUNS)
def test_random_numbers_are_the_same_when_the_forward_function_runs_again(run, derivative):
    x = mg.ones(64)
    mg.random.seed(0)
    twice = 2 * dropped(x)
    mg.random.seed(0)
    assert DERIVATIVES[derivative](RUNS[run], x).tolist() == twice.tolist()
    assert mg.random.get_state()["block"] == 8, "each number is drawn once"


def test_random_numbers_of_forward_mode():
    mg.random.seed(0)
    value, change = mg.jvp(dropped, (mg.ones(64),), (mg.ones(64),))
    assert value.tolist() == change.tolist()
    assert dropped(mg.ones(64)).tolist() != value.tolist()
