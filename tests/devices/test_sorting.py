"""Sorting on NumPy: values, stable positions, and the first positions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.devices.sorting import (
    WORTH_BOUNDING,
    WORTH_PACKING,
    can_pack,
    packed_argsort,
    positions_in_order,
    sorted_values,
)

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool"]


def stable(x, axis, descending):
    """The positions by Python's stable sort, with nans as the largest numbers."""

    def of_row(row):
        keys = [(x != x, x) for x in row.tolist()]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=descending))

    return np.apply_along_axis(of_row, axis, x)


def numbers(dtype, shape, seed=0, different=1000):
    rng = np.random.default_rng(seed)
    x = rng.integers(-different, different, shape)
    if np.dtype(dtype).kind != "f":
        return x.astype(dtype)
    x = (np.clip(x, -60_000, 60_000) / 8).astype(dtype)
    flat = x.reshape(-1)
    flat[rng.integers(0, flat.size, flat.size // 20)] = np.nan
    flat[rng.integers(0, flat.size, flat.size // 20)] = -0.0
    flat[rng.integers(0, flat.size, 4)] = [np.inf, -np.inf, np.inf, 0.0]
    return x


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("different", [4, 1 << 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_stable(dtype, different, descending):
    for shape, axis in (((1000,), 0), ((3, 700), 1), ((700, 3), 0), ((2, 2100), 1), ((40, 105), 1)):
        x = numbers(dtype, shape, different=different)
        expected = stable(x, axis, descending)
        np.testing.assert_array_equal(positions_in_order(x, axis, descending), expected)
        for count in (0, 1, 7, 80):
            first = positions_in_order(x, axis, descending, count)
            np.testing.assert_array_equal(first, np.take(expected, range(count), axis))


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf]), min_size=1, max_size=8),
       st.booleans(), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_first_positions_keep_the_order_of_equals(pattern, descending, count):
    x = np.resize(np.array(pattern), WORTH_BOUNDING + 8)
    np.testing.assert_array_equal(positions_in_order(x, 0, descending, count), stable(x, 0, descending)[:count])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorted_values_are_the_values_at_their_positions(dtype, descending):
    for shape, axis in (((1000,), 0), ((3, 400), 1), ((400, 3), 0), ((0, 2), 0)):
        x = numbers(dtype, shape) if np.prod(shape) else np.zeros(shape, dtype)
        found = sorted_values(x, axis, descending)
        expected = np.take_along_axis(x, stable(x, axis, descending), axis) if x.size else x
        np.testing.assert_array_equal(found, expected)
        if x.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


def test_sort_of_a_plain_tensor_is_that_of_a_tracked_and_of_a_traced_one():
    x = mg.asarray(numbers("float64", (5, 300)))
    tracked = mg.asarray(x.numpy_copy(), requires_grad=True)
    for descending in (False, True):
        plain = mg.sort(x, descending=descending).numpy()
        np.testing.assert_array_equal(plain, mg.sort(tracked, descending=descending).detach().numpy())
        np.testing.assert_array_equal(plain, mg.jit(lambda x, d=descending: mg.sort(x, descending=d))(x).numpy())
    mg.sort(tracked).sum().backward()
    np.testing.assert_array_equal(tracked.grad.numpy(), np.ones((5, 300)))


def test_topk_is_the_head_of_the_order_in_eager_mode_and_in_programs():
    x = mg.asarray(numbers("float32", (4, 500)))
    for largest in (False, True):
        order = mg.argsort(x, axis=1, descending=largest).numpy()[:, :5]
        for topk in (mg.topk, mg.jit(mg.topk)):
            values, places = topk(x, k=5, axis=1, largest=largest)
            np.testing.assert_array_equal(places.numpy(), order)
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x.numpy(), order, 1))


@given(
    dtype=st.sampled_from(["float16", "float32", "int8", "uint8", "int16", "int32", "bool"]),
    shape=st.sampled_from([(0,), (1,), (40,), (3, 20), (20, 3), (2, 3, 4)]), descending=st.booleans(), data=st.data(),
)
def test_packed_sorting_is_stable_and_that_of_numpy(dtype, shape, descending, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-3, 4, shape)
    x = (np.abs(values) if dtype == "uint8" else values).astype(dtype)
    if x.dtype.kind == "f":
        x = np.choose(np.abs(values), [x, -x, np.full(shape, np.nan, dtype), np.full(shape, -np.inf, dtype)])
        x = x.astype(dtype)
    found = packed_argsort(x, axis, descending)
    if descending:
        wanted = shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        wanted = np.argsort(x, axis, kind="stable")
    assert found.dtype == np.int64 and np.array_equal(found, wanted)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype, ends", [
    ("int64", (-(1 << 63), (1 << 63) - 1)), ("int64", (-(1 << 63), -(1 << 63) + 9)),
    ("int64", (1 << 62, (1 << 63) - 1)), ("uint64", (0, (1 << 64) - 1)), ("uint64", ((1 << 64) - 9, (1 << 64) - 1)),
], ids=str)
def test_positions_of_extreme_integers(dtype, ends, descending):
    low, high = ends
    given = [low, high, *[low + i % 8 for i in range(WORTH_PACKING)], high, low]
    x = np.array(given, dtype)
    assert can_pack(x, x.size) == (high - low < 10)
    np.testing.assert_array_equal(positions_in_order(x, 0, descending), stable(x, 0, descending))
