"""Division and powers: in every mode the result of eager mode, whatever ran before."""

import numpy as np
import pytest

import minigrad as mg

NUMBERS = (3.0, 49.0, 0.1, 1e-40, 1e-310, -1.5, 1e30, 3)
X = np.random.default_rng(0).normal(size=(40, 50)) * 10
ONE_BY_ONE = {
    "x / n": lambda x, n: x / n, "n / x": lambda x, n: n / x, "x // n": lambda x, n: x // n,
    "x % n": lambda x, n: x % n, "x * n": lambda x, n: x * n, "x - n": lambda x, n: x - n,
    "largest": lambda x, n: mg.max(x) * n / 49.0,
}
PER_ROW = {
    "column": lambda x, column: x / column, "largest": lambda x, column: x / mg.max(x, axis=-1, keepdims=True),
    "all": lambda x, column: x / mg.max(x), "number": lambda x, column: x / column[0, 0],
    "twice": lambda x, column: mg.floor(x / column) + x / column, "steps": lambda x, column: x[:, ::2] / column,
    "channels": lambda x, column: mg.reshape(x, (2, 5, 10, 20)) / mg.reshape(column[:5], (5, 1, 1)),
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def eager(function, *args):
    with mg.eager_programs(False):
        return function(*args).numpy_copy()


def in_graph(function, *args):
    with mg.graph():
        result = function(*args)
    return result.numpy_copy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PER_ROW)
def test_a_row_is_divided_by_its_number(name, dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    column = np.abs(X[:, :1]) + 0.1
    for scale in (1.0, 7.0, float(smallest) * 5, float(np.finfo(dtype).max) / 100):
        given = [mg.asarray((a * scale).astype(dtype)) for a in (X, column)]
        expected = eager(PER_ROW[name], *given)
        np.testing.assert_array_equal(mg.jit(PER_ROW[name])(*given).numpy(), expected)
        np.testing.assert_array_equal(in_graph(PER_ROW[name], *given), expected)


def test_the_largest_element_of_a_row_divided_by_itself_is_one():
    x = mg.asarray([[49.0, 7.0, 1.0] * 20, [1e-40, 2e-40, 0.0] * 20, [3e38, 1.0, 2.0] * 20])
    f = lambda x: mg.floor(x / mg.max(x, axis=-1, keepdims=True))  # noqa: E731
    assert mg.jit(f)(x).sum(axis=-1).tolist() == f(x).sum(axis=-1).tolist() == [20, 20, 20]


@pytest.mark.parametrize("name", ONE_BY_ONE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_graph_mode_gives_the_same_for_a_number_that_changed(name, dtype):
    x, function = mg.asarray(X.astype(dtype)), ONE_BY_ONE[name]
    for number in NUMBERS:
        expected = eager(function, x, number)
        np.testing.assert_array_equal(in_graph(function, x, number), expected, err_msg=f"{number}")
        np.testing.assert_array_equal(mg.jit(lambda x, n=number: function(x, n))(x).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [-3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 0.1])
def test_graph_mode_gives_the_same_for_an_exponent_that_changed(exponent, dtype):
    x = mg.asarray(np.abs(X).astype(dtype))
    function = lambda x, y: x**y  # noqa: E731
    in_graph(function, x, 0.7)
    in_graph(function, x, 0.6)
    compiled = mg.jit(lambda x: function(x, exponent))(x).numpy()
    np.testing.assert_array_equal(in_graph(function, x, exponent), compiled)
    if exponent in (-1, 0, 0.5, 1, 2):
        np.testing.assert_array_equal(compiled, eager(function, x, exponent))
