"""Reductions over any shape and axes, compared with NumPy; dtypes of integer sums, empty arrays, nan and ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.support.errors import ConversionError, DtypeError
from tests.numerical import check_gradients

DTYPES = ["bool", "int8", "int64", "uint8", "float32", "float64"]


@st.composite
def arrays_and_axes(draw, min_side=0):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=4))
    dtype = draw(st.sampled_from(DTYPES))
    elements = None if dtype == "bool" else st.integers(0 if dtype == "uint8" else -4, 4)
    x = draw(hnp.arrays(dtype, shape, elements=elements))
    count = len(shape)
    single = [st.integers(-count, count - 1)] if count else []
    several = st.lists(st.integers(0, max(0, count - 1)), unique=True, max_size=count).map(tuple)
    return x, draw(st.one_of(st.none(), several if count else st.just(()), *single)), draw(st.booleans())


@given(arrays_and_axes())
def test_sums_and_products(case):
    x, axis, keepdims = case
    for name in ("sum", "prod"):
        ours = getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims)
        theirs = getattr(np, name)(
            x.astype(np.int64 if x.dtype.kind in "biu" else np.float64), axis=axis, keepdims=keepdims
        )
        assert ours.dtype == (x.dtype if x.dtype.kind == "f" else "int64") and ours.shape == theirs.shape
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(ours.numpy(), theirs.astype(ours.dtype), rtol=1e-6)


@given(arrays_and_axes(min_side=1))
def test_max_and_min(case):
    x, axis, keepdims = case
    for name in ("max", "min"):
        ours = getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims)
        theirs = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        assert ours.dtype == x.dtype and ours.shape == theirs.shape
        np.testing.assert_array_equal(ours.numpy(), theirs)


@given(arrays_and_axes())
def test_all_and_any(case):
    x, axis, keepdims = case
    for name in ("all", "any", "count_nonzero"):
        ours = getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims)
        theirs = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
        assert ours.dtype == ("int64" if name == "count_nonzero" else "bool") and ours.shape == theirs.shape
        np.testing.assert_array_equal(ours.numpy(), theirs)


@given(arrays_and_axes(min_side=1))
def test_argmax_argmin_and_cumulative_sum(case):
    x, _, keepdims = case
    for axis in (None, *range(-x.ndim, x.ndim)):
        for name in ("argmax", "argmin"):
            ours = getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims)
            theirs = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
            assert ours.dtype == "int64" and ours.shape == theirs.shape
            np.testing.assert_array_equal(ours.numpy(), theirs)
        if axis is not None:
            total = mg.cumulative_sum(mg.asarray(x), axis=axis)
            assert total.dtype == (x.dtype if x.dtype.kind == "f" else "int64")
            np.testing.assert_allclose(total.numpy(), np.cumsum(x, axis=axis, dtype=total.dtype), rtol=1e-6)


@given(arrays_and_axes(min_side=1))
def test_mean_var_and_std(case):
    x, axis, keepdims = case
    x = x.astype(np.float64)
    for name in ("mean", "var", "std"):
        ours = getattr(mg, name)(mg.asarray(x), axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(ours.numpy(), getattr(np, name)(x, axis=axis, keepdims=keepdims), atol=1e-12)


def test_sums_of_small_integers_do_not_overflow():
    assert mg.ones(300, dtype="int8").sum().item() == 300
    assert mg.full(9, 100, dtype="uint8").sum().item() == 900
    assert mg.full(10, 10, dtype="int8").prod().item() == 10**10
    assert mg.ones(300, dtype=bool).sum().dtype == "int64"
    assert mg.ones(3).sum(dtype="float64").dtype == "float64"


def test_sums_of_float32_keep_their_precision():
    x = np.random.default_rng(0).uniform(0, 1, 1_000_000).astype(np.float32)
    assert abs(mg.asarray(x).sum().item() - x.astype(np.float64).sum()) / 5e5 < 1e-6


def test_reductions_of_no_elements():
    nothing = mg.zeros((0, 3))
    assert nothing.sum(axis=0).tolist() == [0, 0, 0] and nothing.prod(axis=0).tolist() == [1, 1, 1]
    assert nothing.all().item() is True and nothing.any().item() is False
    assert nothing.max(axis=1).shape == (0,)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ConversionError, match=r"\(0, 3\)|no elements"):
            getattr(nothing, name)(axis=0)


def test_a_nan_is_the_largest_and_the_smallest():
    x = mg.asarray([1.0, np.nan, 3.0])
    assert np.isnan(x.max().item()) and np.isnan(x.min().item()) and np.isnan(x.sum().item())
    assert x.argmax().item() == 1


def test_running_totals_with_a_first_element():
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert mg.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 1, 3], [0, 3, 7]]
    assert mg.cumulative_prod(x, axis=0, include_initial=True).tolist() == [[1, 1], [1, 2], [3, 8]]
    with pytest.raises(ConversionError, match="so axis is needed"):
        mg.cumulative_sum(x)


def test_mean_refuses_integers():
    for name in ("mean", "var", "std"):
        with pytest.raises(DtypeError, match="is for floats, and this tensor is int64"):
            getattr(mg.arange(3), name)()


def test_the_gradient_of_a_product_with_zeros_to_third_order():
    x = mg.asarray(np.array([2.0, 0.0, 5.0]), requires_grad=True)
    first = mg.gradients(x.prod(), x, create_graph=True)
    assert first.tolist() == [0, 10, 0]
    second = mg.gradients(first[0] + first[1], x, create_graph=True)
    assert second.tolist() == [5, 5, 2], "∂(x₁x₂ + x₀x₂)"
    third = mg.gradients(second.sum(), x)
    assert third.tolist() == [1, 1, 2]


def test_gradients_of_running_products_with_zeros():
    check_gradients(lambda x: mg.cumulative_prod(x, axis=0), np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.5]]))


@pytest.mark.parametrize("x", [np.full(70_000, 0.1), np.full(70_000, 10.0), np.array([0.0, 600.0, 1200.0])])
def test_statistics_of_half_precision_fit_where_sums_and_squares_do_not(x):
    half = x.astype(np.float16)
    for name in ("mean", "std"):
        ours = getattr(mg, name)(mg.asarray(half))
        assert ours.dtype == mg.float16
        np.testing.assert_allclose(ours.numpy(), getattr(np, name)(half.astype(np.float64)), rtol=1e-3, atol=1e-3)


def test_gradients_of_half_precision_means_count_beyond_its_range():
    x = mg.asarray(np.zeros(70_000, np.float16), requires_grad=True)
    (x.mean() * 1000.0).backward()
    assert x.grad.dtype == mg.float16
    np.testing.assert_allclose(x.grad.numpy(), 1000.0 / 70_000, rtol=1e-2)
