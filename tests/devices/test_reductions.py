"""Reductions over short dimensions and of large arrays, by machine code and without it, equal NumPy's."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen.workers import WORKERS
from minigrad.devices import num_threads, reductions, set_num_threads
from minigrad.eager import reduction_loops as machine

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


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum])
@pytest.mark.parametrize("values", [
    [[3, -1], [7, 2]], [[3.0, np.nan], [7, 2]], [[np.inf, -np.inf], [0, 2]], [[True, False]], 5.0,
])
def test_reductions_of_everything_equal_numpys(ufunc, values):
    x = np.asarray(values)
    for each in (x, x.T, x[..., ::-1] if x.ndim else x):
        for keepdims in (False, True):
            with np.errstate(invalid="ignore"):
                expected = ufunc.reduce(each, None, x.dtype, None, keepdims)
                found = reductions.reduce(ufunc, each, tuple(range(x.ndim)), x.dtype, keepdims)
            np.testing.assert_array_equal(found, expected)
            assert np.shape(found) == np.shape(expected) and found.dtype == expected.dtype


def test_result_has_its_own_memory(monkeypatch):
    monkeypatch.setattr(reductions, "MANY", 1)
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = x.sum(0)
    y += 1
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [5, 7]


SHAPES = [(300,), (40, 33), (7, 30, 5), (6, 20, 3, 4)]


@pytest.fixture(params=["machine code", "NumPy"])
def backend(request, monkeypatch):
    """Machine code for all arrays; or NumPy, as where LLVM is missing."""
    monkeypatch.setattr(reductions, "LARGE", 64)
    monkeypatch.setattr(machine, "FEW_ELEMENTS", 0)
    if request.param == "NumPy":
        monkeypatch.setattr(reductions, "native", lambda: None)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16])
def test_reductions_of_large_arrays_equal_numpys(backend, ufunc, dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = rng.choice([-1, 1, 1, 1], shape).astype(dtype) if ufunc is np.multiply else rng.integers(-9, 9, shape)
        x = np.repeat(x.astype(dtype), 2, -1)
        for part in (x, x[..., ::2], x[1:-1], x.T, np.moveaxis(x, -1, 0)):
            axes = [*range(part.ndim)]
            for axis in itertools.chain.from_iterable(itertools.combinations(axes, n) for n in range(part.ndim + 1)):
                for keepdims in (False, True):
                    expected = ufunc.reduce(part, axis, None, None, keepdims)
                    found = reductions.reduce(ufunc, part, axis, part.dtype, keepdims)
                    assert (found.shape, found.dtype) == (expected.shape, part.dtype)
                    np.testing.assert_array_equal(found, expected.astype(part.dtype))


LONG = [
    ((3, 9001), 1), ((200_003,), 0), ((40_001, 5), 0), ((3, 70, 1000), 1), ((90, 5000), 0), ((2, 3, 4, 5000), (0, 2)),
]


@pytest.mark.parametrize("shape, axis", LONG, ids=str)
def test_long_sums_are_exact_to_single_precision_with_any_number_of_threads(monkeypatch, shape, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    x = np.random.default_rng(0).random(shape, np.float32)
    before, found = num_threads(), []
    for count in (1, 2, 3):
        set_num_threads(count)
        found.append(reductions.reduce(np.add, x, axes, None, False))
        extreme = [reductions.reduce(ufunc, x, axes, None, False) for ufunc in (np.maximum, np.minimum)]
        np.testing.assert_array_equal(extreme, [x.max(axes), x.min(axes)])
    set_num_threads(before)
    np.testing.assert_allclose(found[0], x.astype(np.float64).sum(axes), rtol=2e-6)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_nans_and_infinities(backend):
    x = np.ones((8, 31, 4))
    x[3, 17, 2], x[5, 30, 1] = np.nan, np.inf
    for ufunc in (np.add, np.maximum, np.minimum):
        for axis in ((1,), (2,), (0, 2)):
            np.testing.assert_array_equal(reductions.reduce(ufunc, x, axis, None, False), ufunc.reduce(x, axis))


@pytest.mark.parametrize("shape, axis", [((200,), (0,)), ((3, 70), (1,)), ((70, 3), (0,))], ids=str)
def test_a_nan_is_found_at_any_place(backend, shape, axis):
    for ufunc in (np.maximum, np.minimum):
        for place in range(200):
            x = np.linspace(-1, 1, 210, dtype=np.float32)[: np.prod(shape)].reshape(shape)
            x.flat[place] = np.nan
            np.testing.assert_array_equal(reductions.reduce(ufunc, x, axis, None, False), ufunc.reduce(x, axis))


def test_threads_that_wait_in_machine_code_share_a_large_reduction():
    before = num_threads()
    set_num_threads(3)
    reductions.reduce(np.add, np.ones(machine.WORTH_SHARING_ELEMENTS, np.float32), (0,), None, False)
    assert WORKERS.count == 2
    set_num_threads(before)
