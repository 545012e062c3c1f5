"""Products of integers by way of floats: exact, and wrapping around like NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.devices.whole import whole_product

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def anything(dtype, shape, seed=0):
    """Integers of the whole range of a dtype, with its ends."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    flat = x.reshape(-1)
    flat[:4] = [limits.min, limits.max, limits.max, limits.min][: flat[:4].size]
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [
    ((3, 5), (5, 4)), ((1, 1300), (1300, 2)), ((2, 3, 40), (2, 40, 2)), ((4, 2, 7), (7, 3)), ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
])
def test_products_wrap_around_like_those_of_numpy(dtype, shapes):
    x, y = anything(dtype, shapes[0]), anything(dtype, shapes[1], 1)
    result = whole_product(np.matmul, x, y)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.matmul(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_extremes_of_a_dtype_are_exact(dtype):
    limits = np.iinfo(dtype)
    for number in (limits.min, limits.max):
        x = np.full((2, 700), number, dtype)
        np.testing.assert_array_equal(whole_product(np.matmul, x, x.T), np.matmul(x, x.T))


@pytest.mark.slow
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_integers_are_exact(numbers):
    x = np.array(numbers).reshape(2, 2)
    np.testing.assert_array_equal(whole_product(np.matmul, x, x), np.matmul(x, x))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_small_numbers_are_multiplied_as_floats_and_the_others_as_integers(dtype):
    kinds = []

    def product(x, y):
        kinds.append(x.dtype)
        return np.matmul(x, y)

    for most in (1 << 6, 1 << 20, 1 << 30):
        x = np.full((1, 2), min(most, np.iinfo(dtype).max), dtype)
        np.testing.assert_array_equal(whole_product(product, x, x.T), np.matmul(x, x.T))
    assert kinds == (["float32"] * 3 if dtype == "int8" else ["float32", "float64"])


@pytest.mark.parametrize("dtype", DTYPES[:5])
def test_large_products_of_tensors_are_exact(dtype):
    x, y = anything(dtype, (40, 50)), anything(dtype, (50, 60), 1)
    expected = np.matmul(x, y)
    for multiply in (mg.matmul, mg.jit(mg.matmul)):
        np.testing.assert_array_equal(multiply(mg.asarray(x), mg.asarray(y)).numpy(), expected)
