"""Reductions over short dimensions, which are computed part by part, equal NumPy's."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import reductions

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
