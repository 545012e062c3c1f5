"""Casts from floats to integers saturate: the nearest integer in range, 0 for nan, in every mode and on every device.

The same rule holds for assignments, sums, ranges and arrays of NumPy.
"""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.program import Program
from minigrad.devices import special
from minigrad.support.errors import DtypeError
from tests.compile.partitions import fed, graph_of, recorded

inf, nan = math.inf, math.nan
AWKWARD = [nan, inf, -inf, 1e30, -1e30, 9.3e18, 3e9, -3e9, 65504.0, 300.0, -300.0, 255.5, 127.9, -128.9, 1.9, -0.9]
INTEGERS = [mg.int8, mg.uint8, mg.int16, mg.int32, mg.int64]
FLOATS = [mg.float16, mg.float32, mg.float64]
every_pair = pytest.mark.parametrize(
    ("source", "target"), [(s, t) for s in FLOATS for t in INTEGERS], ids=lambda d: d.name
)


def given(source):
    with np.errstate(over="ignore"):
        return np.array(AWKWARD, source)


def nearest(x, target):
    """The expected integers, computed in exact arithmetic."""
    low, high = int(np.iinfo(target).min), int(np.iinfo(target).max)
    whole = [0 if v != v else low if v == -inf else high if v == inf else int(v) for v in x.tolist()]
    return [min(max(v, low), high) for v in whole]


@every_pair
def test_casts_in_eager_mode_and_in_a_program(source, target):
    x = given(source)
    expected = nearest(x, target)
    assert mg.asarray(x).astype(target).tolist() == expected
    assert mg.jit(lambda x: x.astype(target))(mg.asarray(x)).tolist() == expected
    assert [mg.asarray(v).astype(target).item() for v in x] == expected, "without dimensions"


@every_pair
def test_casts_by_the_numpy_backend(source, target):
    x = given(source)
    with recorded() as _:
        y = mg.asarray(x).astype(target) + mg.zeros(1, dtype=target)
    graph = graph_of(y)
    assert Program(graph, backend="numpy")(fed(graph))[0].tolist() == nearest(x, target)


@pytest.mark.parametrize("size", [1, 100_000])
def test_casts_of_small_and_large_arrays(size):
    x = np.linspace(-3e9, 3e9, size, dtype=np.float32)
    assert mg.asarray(x).astype(mg.int32).tolist() == nearest(x, mg.int32)
    fits = x / 2
    np.testing.assert_array_equal(mg.asarray(fits).astype(mg.int32).numpy(), fits.astype(np.int32))


@pytest.fixture(params=["reported", "not reported"])
def reporting(request, monkeypatch):
    """Whether NumPy reports a float that does not fit, or is silent as in WebAssembly."""
    if request.param == "not reported":
        monkeypatch.setattr(special, "_reports_misfits", lambda source, target: False)


@every_pair
def test_cast_finds_one_misfit_anywhere(source, target, reporting):
    for misfit in (nan, -inf, float(np.iinfo(target).max) + 1.0):
        for size in (1, 2, 7, 8, 33, 70):
            x = np.ones((size, size), source)
            with np.errstate(over="ignore"):
                np.fill_diagonal(x, misfit)
            expected = np.ones((size, size), target)
            np.fill_diagonal(expected, nearest(x.diagonal()[:1], target)[0])
            for array, wanted in ((x, expected), (x[::-1, ::2], expected[::-1, ::2])):
                assert special.cast(np, array, target).tolist() == wanted.tolist()
                out = np.zeros(array.shape, target)
                assert special.cast(np, array, target, out) is out and out.tolist() == wanted.tolist()


def test_a_cast_into_the_memory_of_its_input(reporting):
    memory = np.array([1.5, nan, -1e30, 1e30], np.float32)
    out = memory.view(np.int32)
    special.cast(np, memory, out.dtype, out)
    assert out.tolist() == [1, 0, -(2**31), 2**31 - 1]


@pytest.mark.parametrize("source", FLOATS, ids=lambda d: d.name)
def test_errstate_of_numpy_does_not_change_casts(source):
    with np.errstate(all="raise"):
        assert mg.asarray(given(source)).astype(mg.int32).tolist() == nearest(given(source), mg.int32)


def assigned(x):
    y = mg.zeros(x.shape, dtype=mg.int16)
    y[...] = x
    return y


def assigned_by_index(x):
    y = mg.zeros(x.shape, dtype=mg.int16)
    y[mg.arange(x.shape[0])] = x
    return y


def of_constants(x):
    return mg.stack([mg.full((), v).astype(mg.int16) for v in AWKWARD])


ELSEWHERE = {
    "assigned": assigned,
    "assigned by index": assigned_by_index,
    "constants": of_constants,
    "asarray": lambda x: mg.asarray(x, dtype=mg.int16),
    "an array of NumPy's": lambda x: mg.asarray(given(mg.float32), dtype=mg.int16),
    "a sum": lambda x: mg.sum(x[:, None], axis=1, dtype=mg.int16),
    "a product": lambda x: mg.prod(x[:, None], axis=1, dtype=mg.int16),
    "a running sum": lambda x: mg.cumulative_sum(x[:, None], axis=1, dtype=mg.int16)[:, 0],
}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_operations_that_turn_floats_into_integers_saturate(mode, name):
    function = ELSEWHERE[name] if mode == "eager" else mg.jit(ELSEWHERE[name])
    assert function(mg.asarray(given(mg.float32))).tolist() == nearest(given(mg.float32), mg.int16)


def test_ranges_saturate():
    for mode in (lambda f: f, mg.jit):
        assert mode(lambda x: x + mg.arange(0, 4e9, 1e9, dtype=mg.int32))(mg.zeros(1, dtype=mg.int32)).tolist() == [
            0, 10**9, 2 * 10**9, 2**31 - 1]
        assert mode(lambda x: x + mg.linspace(0, 1e12, 2, dtype=mg.int32))(mg.zeros(1, dtype=mg.int32)).tolist() == [
            0, 2**31 - 1]


def set_to(number, index):
    def change(y):
        y = y.copy()
        y[index] = number
        return y

    return change


@pytest.mark.parametrize("number", [300.0, 300, 1e30, nan, -inf])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: lambda x: mg.full(2, n, dtype=mg.int8),
        lambda n: lambda x: mg.full_like(x, n),
        lambda n: set_to(n, 0),
        lambda n: set_to(n, [0, 1]),
    ],
    ids=["full", "full_like", "assignment", "assignment by index"],
)
def test_a_number_that_does_not_fit_is_refused(number, make):
    for mode in (lambda f: f, mg.jit):
        with pytest.raises(DtypeError, match=r"does not fit into int8\n  Expected: -128 to 127|out of bounds for int8"):
            mode(make(number))(mg.zeros(2, dtype=mg.int8))


def test_numbers_that_fit_lose_their_fraction():
    assert mg.full(1, 3.7, dtype=mg.int8).tolist() == [3]
    assert set_to(-3.7, 0)(mg.zeros(1, dtype=mg.int8)).tolist() == [-3]
