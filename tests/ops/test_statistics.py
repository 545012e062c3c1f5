"""Errors and special cases of median, quantile, interp, diag, and padding by continuation."""

import numpy as np
import pytest

import minigrad as mg


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda: mg.quantile(mg.ones(3), 1.5), "quantile: q is from 0 to 1, not 1.5"),
        (lambda: mg.quantile(mg.ones(3), [0.5, float("nan")]), "quantile: q is from 0 to 1"),
        (lambda: mg.median(mg.ones((0, 2)), axis=0), r"of no elements do not exist: shape \(0, 2\), axis \(0,\)"),
        (lambda: mg.interp(mg.ones(2), mg.ones((2, 2)), mg.ones(2)), "interp: xp and fp are lists of one length"),
        (lambda: mg.interp(mg.ones(2), mg.ones(0), mg.ones(0)), "interp: xp and fp are lists of one length"),
        (lambda: mg.diag(mg.ones((2, 2, 2))), r"diag: x is a vector or a matrix, not of shape \(2, 2, 2\)"),
        (lambda: mg.diag(mg.ones(2), 0.5), "diag: k is an integer, not 0.5"),
        (lambda: mg.pad(mg.ones(2), 1, mode="replicate"), "pad: there is no mode 'replicate'(.|\n)*edge, reflect"),
        (lambda: mg.pad(mg.ones((0, 2)), 1, mode="edge"), r"pad: dimension 0 of shape \(0, 2\) has no elements"),
        (lambda: mg.broadcast_arrays([1, 2], [1, 2, 3]), r"broadcast_arrays: shapes \(2,\) and \(3,\)"),
    ],
)
def test_wrong_arguments_are_refused(fault, message):
    with pytest.raises(mg.MinigradError, match=message):
        fault()


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64"])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_diag_is_that_of_numpy(dtype, k):
    vector, matrix = np.array([1, 2, 0], dtype), np.arange(12).reshape(3, 4).astype(dtype)
    for given in (vector, matrix):
        np.testing.assert_array_equal(mg.diag(mg.asarray(given), k).numpy(), np.diag(given, k))
    copy = mg.diag(x := mg.asarray(matrix))
    copy[0] = 5
    assert x.tolist() == matrix.tolist()


def test_numbers_and_lists_are_close_in_the_precision_of_the_tensor():
    x = mg.asarray(np.array([0.1, 0.2]), device="cpu:1")
    assert mg.isclose(x, 0.1, rtol=1e-14, atol=0).tolist() == mg.isclose(0.1, x, 1e-14, 0).tolist() == [True, False]
    assert mg.allclose(x, [0.1, 0.2]).item() and not mg.allclose(x, [True, False]).item()
    assert mg.isclose(1, 1.0).item() and mg.fmax(x, 0.15).tolist() == [0.15, 0.2]
    assert mg.fmin(float("nan"), x).tolist() == [0.1, 0.2]


def test_quantiles_at_tensors_under_vmap_and_jit():
    x = np.random.default_rng(0).standard_normal((4, 7))
    by_row = mg.jit(mg.vmap(lambda row, q: mg.quantile(row, q)))
    shares = np.linspace(0, 1, 4)
    ours = by_row(mg.asarray(x), mg.asarray(shares)).numpy()
    np.testing.assert_allclose(ours, [np.quantile(row, q) for row, q in zip(x, shares)])


@pytest.mark.parametrize(("values", "expected"), [
    ((-np.inf, 1.0), -np.inf), ((1.0, np.inf), np.inf), ((-np.inf, np.inf), np.nan), ((np.inf, np.inf), np.inf),
    ((-np.inf, -np.inf), -np.inf), ((np.nan, 1.0), np.nan),
])
def test_medians_of_infinities(values, expected):
    np.testing.assert_array_equal(mg.median(mg.asarray(values)).numpy(), expected)


@pytest.mark.parametrize(("values", "q", "expected"), [
    ([1.0, 1.0], 0.5, [0.5, 0.5]),
    ([2.0, 1.0, 1.0, 0.0], 0.5, [0.0, 0.5, 0.5, 0.0]),
    ([3.0, 3.0, 3.0], 0.25, [0.5, 0.5, 0.0]),
    ([np.inf, 1.0, np.inf], 0.75, [1.0, 0.0, 0.0]),
])
def test_equal_neighbours_share_the_gradient_of_a_quantile(values, q, expected):
    assert mg.grad(lambda x: mg.quantile(x, q))(mg.asarray(values)).tolist() == expected


def test_lists_are_broadcast_on_the_device_of_the_tensors():
    column, row = mg.broadcast_arrays([[1], [2]], mg.ones(3, device="cpu:1"))
    assert str(column.device) == str(row.device) == "cpu:1" and column.tolist() == [[1] * 3, [2] * 3]
