"""Rows that are read and added at positions, against NumPy's indexing, with and without machine code."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen import native
from minigrad.devices import rows
from minigrad.devices.rows import (
    MANY,
    PART,
    WORTH_FLATTENING,
    WORTH_SHARING,
    gather,
    row_numbers,
    scatter_add,
    scatter_max,
)

rng = np.random.default_rng(0)

# Reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "bool"])
@pytest.mark.parametrize("shape, index_shapes", [
    ((6,), [(5,)]),
    ((6,), [()]),
    ((6, 4), [(3, 2)]),
    ((6, 4), []),
    ((6, 4, 3), [(2, 1), (5,)]),
    ((6, 0), [(5,)]),
    ((6,), [(MANY,)]),
    ((6, 4), [(MANY,)]),
    ((6, 4, 3), [(MANY // 100, 1), (100,)]),
    ((6, 16), [(WORTH_SHARING // 8,)]),
])
def test_gather_equals_an_index(shape, index_shapes, dtype):
    x = rng.integers(0, 100, shape).astype(dtype)
    indices = tuple([rng.integers(-size, size, s) for size, s in zip(shape, index_shapes)])
    for given in (x, np.asfortranarray(x)):
        found = gather(given, indices, np.empty)
        np.testing.assert_array_equal(found, x[indices])
        assert found.dtype == x.dtype and (not indices or not np.shares_memory(found, x))


@pytest.mark.parametrize("count", [3, MANY])
def test_an_index_out_of_range_is_refused_when_it_is_read(count):
    for bad in (6, -7, 2**40):
        index = np.zeros(count, np.int64)
        index[-1] = bad
        with pytest.raises(mg.IndexingError, match=f"index {bad} is out of range for a dimension of size 6"):
            mg.ones((6, 4))[mg.asarray(index)]


# Adding ---------------------------------------------------------------------------------------------------------------

DTYPES = ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
CASES = [
    ((6,), (5,), [(5,)]),
    ((6, 4), (5, 4), [(5,)]),
    ((6, 4), (3, 2, 4), [(3, 2)]),
    ((6, 4), (4,), [(5,)]),
    ((6, 4), (), [()]),
    ((6, 4), (5,), [(5,), (5,)]),
    ((6, 4, 3), (2, 5, 3), [(2, 1), (5,)]),
    ((6, 4, 3), (4, 3), []),
    ((6, 0), (5, 0), [(5,)]),
    ((6, 4), (0, 4), [(0,)]),
    ((0, 4), (0, 4), [(0,)]),
]
LARGE_CASES = [  # large enough for flat arrays, or for machine code
    ((6,), (9000,), [(9000,)]),
    ((6, 4), (3000, 4), [(3000,)]),
    ((6, 4), (3000, 2, 4), [(3000, 2)]),
    ((6, 4), (6000,), [(6000,), (6000,)]),
    ((6, 4, 3), (50, 20, 3), [(50, 1), (20,)]),
    ((700, 4), (700, 4), []),
    ((6, 2 * PART), (3, 2 * PART), [(3,)]),
    ((6,), (40_000,), [(40_000,)]),
    ((60, 40), (1000, 40), [(1000,)]),
]


def one_by_one(base, value, *indices, combine=np.add):
    out = base.copy()
    combine.at(out, indices, value)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, value_shape, index_shapes", CASES + LARGE_CASES)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("scatter, combine", [(scatter_add, np.add), (scatter_max, np.maximum)])
def test_scatters_combine_one_after_the_other(
    scatter, combine, shape, value_shape, index_shapes, dtype, compiled, monkeypatch
):
    if not compiled:
        monkeypatch.setattr(rows, "native", lambda: None)
    base = rng.integers(0, 3, shape).astype(dtype)
    value = rng.integers(0, 3, value_shape).astype(dtype)
    indices = [rng.integers(-size, max(size, 1), s) for size, s in zip(shape, index_shapes)]
    before = base.copy()
    out = scatter(base, value, *indices)
    assert out.dtype == base.dtype and out.shape == base.shape
    np.testing.assert_array_equal(out, one_by_one(base, value, *indices, combine=combine))
    np.testing.assert_array_equal(base, before)
    assert not np.shares_memory(out, base)


def test_the_gradient_of_a_large_embedding():
    table, words = rng.standard_normal((50, 64)), rng.integers(0, 50, (40, 30))
    g = rng.standard_normal((40, 30, 64))
    x = mg.asarray(table, requires_grad=True)
    assert g.size > WORTH_FLATTENING
    x[mg.asarray(words)].backward(mg.asarray(g))
    expected = np.eye(50)[words.reshape(-1)].T @ g.reshape(-1, 64)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_scatter_add_of_memory_in_any_order_and_of_small_index_types():
    base, value = rng.standard_normal((64, 40)), rng.standard_normal((80, 500))
    places = rng.integers(-40, 40, 500).astype(np.int8)
    out = scatter_add(base.T, value.T[:, ::-1][:, 16:], places)
    np.testing.assert_array_equal(out, one_by_one(base.T, value.T[:, ::-1][:, 16:], places))
    assert out.flags.c_contiguous


@pytest.mark.parametrize("count", [3, 3000])
def test_an_index_out_of_range_is_refused(count):
    for bad in (6, -7, 2**40):
        index = np.zeros(count, np.int64)
        index[-1] = bad
        with pytest.raises(IndexError, match=str(bad)):
            mg.scatter_add(mg.zeros((6, 4)), mg.asarray(index), mg.ones((count, 4)))


def test_row_numbers_are_those_of_numpy():
    indices = rng.integers(0, 3, (2, 1)), rng.integers(0, 4, 5)
    expected = np.ravel_multi_index(np.broadcast_arrays(*indices), (3, 4))
    np.testing.assert_array_equal(row_numbers((3, 4), indices), expected)


def test_wide_rows_are_added_in_parts_by_any_number_of_threads(monkeypatch):
    base, value = rng.standard_normal((3, 5000)), rng.standard_normal((300, 5000))
    places = rng.integers(0, 3, 300)
    monkeypatch.setattr(rows.THREADS, "count", 1)
    alone = scatter_add(base, value, places)
    monkeypatch.setattr(rows.THREADS, "count", 3)
    np.testing.assert_array_equal(scatter_add(base, value, places), alone)
    np.testing.assert_allclose(alone, one_by_one(base, value, places), rtol=1e-12, atol=1e-12)


def test_the_environment_can_choose_numpy(monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    assert not native.is_available()
