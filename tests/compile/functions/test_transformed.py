"""Derivatives and batches of jitted functions, in every order and nested, are the same as without jit."""

import numpy as np
import pytest

import minigrad as mg

X = mg.asarray([0.5, -1.0, 2.0])
EYE = mg.eye(3)
SCALE = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)


def vector(x):
    return mg.tanh(x * SCALE) * x.sum() + x**3


def number(x):
    return (vector(x) ** 2).sum()


def pair(x):
    return vector(x), (x * x).sum()


def pulled_back(function, cotangents):
    """The rows of a Jacobian, by one pullback that was made outside `vmap`."""
    back = mg.vjp(function, X)[1]
    return mg.vmap(lambda g: back(g)[0])(cotangents)


TRANSFORMED = {
    "jacobian": lambda jit: mg.jacobian(jit(vector))(X),
    "jacobian, forward": lambda jit: mg.jacobian(jit(vector), mode="forward")(X),
    "jitted jacobian": lambda jit: jit(mg.jacobian(jit(vector)))(X),
    "jacobian of a jacobian": lambda jit: mg.jacobian(mg.jacobian(jit(vector)))(X),
    "jacobian of a jitted jacobian": lambda jit: mg.jacobian(jit(mg.jacobian(jit(vector))))(X),
    "jacobian of a gradient": lambda jit: mg.jacobian(mg.grad(jit(number)))(X),
    "jacobian of a jitted gradient": lambda jit: mg.jacobian(jit(mg.grad(jit(number))))(X),
    "hessian": lambda jit: mg.hessian(jit(number))(X),
    "jitted hessian": lambda jit: jit(mg.hessian(jit(number)))(X),
    "hvp": lambda jit: mg.hvp(jit(number), (X,), (X,)),
    "jvp": lambda jit: mg.jvp(jit(vector), (X,), (X,))[1],
    "jvp of a gradient": lambda jit: mg.jvp(mg.grad(jit(number)), (X,), (X,))[1],
    "vmap": lambda jit: mg.vmap(jit(number))(EYE),
    "vmap of a gradient": lambda jit: mg.vmap(mg.grad(jit(number)))(EYE),
    "jitted vmap of a gradient": lambda jit: jit(mg.vmap(mg.grad(jit(number))))(EYE),
    "vmap of a pullback": lambda jit: pulled_back(jit(vector), EYE),
    "vmap of a nested pullback": lambda jit: pulled_back(jit(lambda x: jit(vector)(x) * 2), EYE),
    "jvp of a pullback": lambda jit: mg.jvp(mg.vjp(jit(vector), X)[1], (EYE[0],), (X,))[1][0],
    "several results": lambda jit: mg.vmap(lambda g: mg.vjp(jit(pair), X)[1]((g, g.sum()))[0])(EYE),
    "vmap of a pullback of several": lambda jit: (
        lambda back: mg.vmap(lambda g: back((g, g.sum()))[0])(EYE))(mg.vjp(jit(pair), X)[1]),
    "captured": lambda jit: mg.jacobian(lambda x: mg.gradients(jit(vector)(x).sum(), SCALE, create_graph=True))(X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_jit_gives_the_results_of_eager_mode_in_transformations(name):
    ours, expected = TRANSFORMED[name](mg.jit), TRANSFORMED[name](lambda f: f)
    np.testing.assert_allclose(ours.numpy_copy(), expected.numpy_copy(), rtol=2e-5, atol=1e-5)


def test_random_numbers_are_those_that_were_drawn_forwards():
    value, back = mg.vjp(mg.jit(lambda x: mg.dropout(x, 0.5) * 3), mg.ones(8))
    rows = mg.vmap(lambda g: back(g)[0])(mg.eye(8))
    np.testing.assert_array_equal(rows.numpy(), np.diag(value.numpy()))


def test_effects_of_the_forward_pass_are_not_repeated(capsys):
    def loud(x):
        mg.print("forwards")
        return x * x

    back = mg.vjp(mg.jit(loud), X)[1]
    mg.vmap(lambda g: back(g)[0])(EYE)
    assert capsys.readouterr().out.count("forwards") == 1
