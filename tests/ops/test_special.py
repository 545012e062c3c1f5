"""Special functions: values, gradients of two orders, edges, and the modes."""

import math

import numpy as np
import pytest

import minigrad as mg
from tests.numerical import check_gradients

# x, and the values with 16 digits by arbitrary-precision arithmetic
DIGAMMA = {
    0.25: -4.2274535333762654, 0.5: -1.9635100260214235, 1.0: -0.57721566490153286, 3.7: 1.1671535393615114,
    8.0: 2.01564147795561, 100.0: 4.6001618527380874, -0.3: 2.1133097796353989, -2.6: 0.1148975066969342,
}
ERFINV = {
    1e-10: 8.8622692545275805e-11, 0.05: 0.044340387910005496, 0.1: 0.088855990494257692, 0.5: 0.47693627620446987,
    0.9: 1.1630871536766742, 0.999: 2.3267537655135245, -0.7: -0.73286907795921678,
}
DIFFERENTIABLE = {"lgamma": [0.3, 0.8, 2.5, 9.0, -1.3], "digamma": [0.3, 2.5, 9.0, -1.3], "erfinv": [-0.9, 0.05, 0.3]}


def test_lgamma_is_that_of_python():
    x = np.concatenate([np.linspace(-6.3, 20, 301), 10.0 ** np.arange(-8, 300, 20)])
    expected = np.array([math.lgamma(each) for each in x])
    np.testing.assert_allclose(mg.lgamma(mg.asarray(x)).numpy_copy(), expected, rtol=1e-13, atol=1e-13)
    single = x[(abs(x) < 1e6)].astype(np.float32)
    expected = np.array([math.lgamma(each) for each in single.astype(float)])
    np.testing.assert_allclose(mg.lgamma(mg.asarray(single)).numpy_copy(), expected, rtol=3e-6, atol=2e-5)


@pytest.mark.parametrize(("name", "table"), [("digamma", DIGAMMA), ("erfinv", ERFINV)])
def test_values_are_those_of_arbitrary_precision(name, table):
    x = mg.asarray([*table], dtype=mg.float64)
    for f in (getattr(mg, name), mg.jit(getattr(mg, name))):
        np.testing.assert_allclose(f(x).numpy_copy(), [*table.values()], rtol=1e-12)


def test_digamma_is_the_derivative_of_lgamma():
    x = mg.asarray(np.linspace(-2.7, 11.4, 60))
    slope = mg.grad(lambda x: mg.lgamma(x).sum())(x)
    np.testing.assert_allclose(slope.numpy_copy(), mg.digamma(x).numpy_copy(), rtol=1e-12, atol=1e-12)


def test_erfinv_undoes_erf():
    y = np.linspace(-3, 3, 61)
    np.testing.assert_allclose(mg.erfinv(mg.erf(mg.asarray(y))).numpy_copy(), y, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_two_orders_are_right(name):
    check_gradients(getattr(mg, name), np.array(DIFFERENTIABLE[name]))


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("lgamma", [0.0, -1.0, -7.0, math.inf, -math.inf, math.nan], [math.inf] * 5 + [math.nan]),
        ("digamma", [math.inf, math.nan], [math.inf, math.nan]),
        ("erfinv", [1.0, -1.0, 1.5, math.nan, 0.0], [math.inf, -math.inf, math.nan, math.nan, 0.0]),
    ],
)
def test_edges(name, x, expected):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(getattr(mg, name)(mg.asarray(x, dtype=mg.float64)).numpy_copy(), expected)


def test_an_edge_beside_it_leaves_a_gradient_alone():
    x = mg.asarray([1.0, 0.5, 0.0], requires_grad=True)
    mg.erfinv(x)[1:].sum().backward()
    assert np.isfinite(x.grad.numpy_copy()[1:]).all()
