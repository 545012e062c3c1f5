"""Reductions over short dimensions, which are computed part by part, equal NumPy's."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import num_threads, reductions, set_num_threads

AXES = [(1,), (1, 3), (3,), (0,), (0, 1, 3)]


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_reductions_in_parts_equal_numpys(monkeypatch, ufunc, dtype, keepdims, axis):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((2, 2, 5, 3)) * 2).astype(dtype)
    if dtype == "float32":
        x[0, 0, 0], x[1, 1, 1, 1] = np.nan, np.inf
    wide = {"float16": np.float32, "int8": np.int64}.get(dtype, x.dtype)
    accumulated = wide if ufunc in (np.add, np.multiply) else None
    expected = ufunc.reduce(x, axis, accumulated, None, keepdims)
    for many in (1, 1 << 30):
        monkeypatch.setattr(reductions, "MANY", many)
        with np.errstate(invalid="ignore"):
            found = reductions.reduce(ufunc, x, axis, accumulated, keepdims)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_result_has_its_own_memory(monkeypatch):
    monkeypatch.setattr(reductions, "MANY", 1)
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = x.sum(0)
    y += 1
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [5, 7]


SHAPES = [(300,), (40, 33), (7, 30, 5), (6, 20, 3, 4)]


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16])
def test_reductions_in_blocks_equal_numpys(monkeypatch, ufunc, dtype):
    monkeypatch.setattr(reductions, "LARGE", 64)
    monkeypatch.setattr(reductions, "HALVED", 50)
    monkeypatch.setattr(reductions, "SHARED", 70)
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = rng.choice([-1, 1, 1, 1], shape).astype(dtype) if ufunc is np.multiply else rng.integers(-9, 9, shape)
        x = np.repeat(x.astype(dtype), 2, -1)
        for part in (x, x[..., ::2], x[1:-1], x.T):
            axes = [*range(part.ndim)]
            for axis in itertools.chain.from_iterable(itertools.combinations(axes, n) for n in range(part.ndim + 1)):
                for keepdims in (False, True):
                    expected = ufunc.reduce(part, axis, None, None, keepdims)
                    found = reductions.reduce(ufunc, part, axis, part.dtype, keepdims)
                    assert (found.shape, found.dtype) == (expected.shape, part.dtype)
                    np.testing.assert_array_equal(found, expected.astype(part.dtype))


def test_blocks_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(reductions, "LARGE", 64)
    monkeypatch.setattr(reductions, "SHARED", 70)
    x = np.random.default_rng(0).normal(size=(40, 33)).astype(np.float32)
    before, found = num_threads(), []
    for count in (1, 2, 3):
        set_num_threads(count)
        found.append([reductions.reduce(np.add, x, axis, None, False) for axis in ((0, 1), (1,), (0,))])
    set_num_threads(before)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other):
            np.testing.assert_array_equal(ours, theirs)


def test_nans_and_infinities_in_blocks(monkeypatch):
    monkeypatch.setattr(reductions, "LARGE", 64)
    monkeypatch.setattr(reductions, "HALVED", 50)
    x = np.ones((8, 31, 4))
    x[3, 17, 2], x[5, 30, 1] = np.nan, np.inf
    for ufunc in (np.add, np.maximum, np.minimum):
        np.testing.assert_array_equal(reductions.reduce(ufunc, x, (1,), None, False), ufunc.reduce(x, (1,)))
