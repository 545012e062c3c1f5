"""Every composed function, by its samples: values, dtypes, gradients to second order, devices."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.primitive import P
from tests.composed import COMPOSED, ELSEWHERE
from tests.composed_nn import plain  # noqa: F401 - adds its samples
from tests.numerical import check_gradients
from tests.test_registry import RTOL, laid_out

every_function = pytest.mark.parametrize("name", sorted(COMPOSED))


def public_functions():
    """The functions of `minigrad.ops` that are also `mg.name`."""
    for name, function in vars(mg).items():
        module = getattr(function, "__module__", None) or ""
        documented = f"mg.{name}(" in (getattr(function, "__doc__", None) or "")
        if inspect.isfunction(function) and module.startswith("minigrad.ops.") and documented and name[0] != "_":
            yield name, module


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def test_public_functions_have_samples_or_their_own_test():
    primitives = {op.name for op in P} | {"full", "arange", "asarray"}
    missing = [f"{name} ({module})" for name, module in public_functions()
               if name not in COMPOSED and name not in primitives and module not in ELSEWHERE]
    assert missing == [], "declare samples in tests/composed.py"
    assert COMPOSED.keys() <= {name for name, _ in public_functions()}
    assert [path for path in ELSEWHERE.values() if not (Path(__file__).parents[1] / path).exists()] == []


@every_function
@pytest.mark.parametrize("layout", ["plain", "reversed", "transposed"])
def test_values_are_those_of_numpy(name, layout):
    for number, sample in enumerate(COMPOSED[name]):
        results = as_list(sample.call(mg, *[laid_out(x, layout) for x in sample.arrays]))
        with np.errstate(all="ignore"):
            expected = as_list(sample.like(*sample.arrays))
        assert len(results) == len(expected)
        for ours, theirs in zip(results, expected):
            array, theirs = ours.numpy_copy(), np.asarray(theirs)
            assert array.shape == theirs.shape, f"{name}, sample {number}"
            if array.dtype.kind == "f":
                rtol = RTOL[array.dtype.name]
                np.testing.assert_allclose(array, theirs, rtol=rtol, atol=rtol, err_msg=f"{name}, sample {number}")
            else:
                assert array.dtype.kind == theirs.dtype.kind, f"{name}, sample {number}"
                np.testing.assert_array_equal(array, theirs, err_msg=f"{name}, sample {number}")


@every_function
def test_gradients_are_central_differences_to_second_order(name):
    for number, sample in enumerate(COMPOSED[name]):
        if sample.smooth and any(x.dtype == np.float64 for x in sample.arrays):
            try:
                check_gradients(lambda *tensors, call=sample.call: call(mg, *tensors), *sample.arrays)
            except AssertionError as error:
                raise AssertionError(f"{name}, sample {number}\n{error}") from None


@every_function
def test_float32_stays_float32_and_half_stays_half(name):
    for sample in COMPOSED[name]:
        if not any(x.dtype == np.float64 for x in sample.arrays):
            continue
        wide = as_list(sample.call(mg, *map(mg.asarray, sample.arrays)))
        for narrow in (np.float32, np.float16):
            arrays = [x.astype(narrow) if x.dtype == np.float64 else x for x in sample.arrays]
            for a, b in zip(wide, as_list(sample.call(mg, *map(mg.asarray, arrays)))):
                assert b.dtype == (narrow if a.dtype == np.float64 else a.dtype), name


@every_function
def test_a_second_cpu_device_gives_the_same(name):
    for sample in COMPOSED[name]:
        here = as_list(sample.call(mg, *map(mg.asarray, sample.arrays)))
        with mg.device("cpu:1"):
            there = as_list(sample.call(mg, *map(mg.asarray, sample.arrays)))
        for a, b in zip(here, there):
            assert str(b.device) == "cpu:1", name
            np.testing.assert_array_equal(a.numpy_copy(), b.numpy_copy(), err_msg=name)


@every_function
def test_results_stay_on_the_device_of_the_inputs(name):
    for sample in COMPOSED[name]:
        if sample.arrays:
            tensors = [mg.asarray(x, device="cpu:1") for x in sample.arrays]
            assert all(str(t.device) == "cpu:1" for t in as_list(sample.call(mg, *tensors))), name


def test_methods_are_the_same_functions():
    for name, method in vars(mg.Tensor).items():
        if inspect.isfunction(method) and method.__module__.startswith("minigrad.ops.") and not name.startswith("_"):
            assert getattr(mg, name, method) is method or name == "where"  # x.where(condition, y), as in PyTorch
