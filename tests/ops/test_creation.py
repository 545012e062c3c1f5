"""Making tensors: from all kinds of data, filled tensors, ranges; dtypes, devices, copies."""

import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.support.errors import ConversionError, DtypeError, ShapeError


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), ([1, 2], "int64", (2,)),
        ([1, 2.5], "float32", (2,)), ([[True], [False]], "bool", (2, 1)), ((1.0,), "float32", (1,)),
        ([], "float32", (0,)), ([[], []], "float32", (2, 0)),
        (np.float64(2.0), "float64", ()), (np.int8(2), "int8", ()), (np.ones(2), "float64", (2,)),
        (np.ones(2, np.float32), "float32", (2,)), ([np.float64(1.0)], "float32", (1,)), (range(3), "int64", (3,)),
        (array.array("d", [1.0, 2.0]), "float32", (2,)),
    ],
)
def test_asarray_of_data(data, dtype, shape):
    x = mg.asarray(data)
    assert (x.dtype, x.shape) == (dtype, shape)
    assert type(x.data) is np.ndarray
    np.testing.assert_array_equal(x.numpy(), np.asarray(data))


def test_asarray_of_lists_of_tensors():
    w = mg.asarray(2.0)
    assert mg.asarray([w, w + 1]).tolist() == [2, 3]
    assert mg.asarray([[w, 1.0], [0.0, w]]).tolist() == [[2, 1], [0, 2]]


def test_asarray_copies_arrays_that_it_does_not_own():
    theirs = np.ones(3)
    x = mg.asarray(theirs)
    theirs[0] = 9
    assert x.tolist() == [1, 1, 1]
    shared = mg.asarray(theirs, copy=False)
    theirs[1] = 7
    assert shared.tolist() == [9, 7, 1]
    shared[2] = 5.0
    assert theirs.tolist() == [9, 7, 5]
    assert mg.asarray(x) is x and mg.asarray(x, copy=True) is not x
    with pytest.raises(ConversionError, match="copy=False"):
        mg.asarray(theirs, dtype="float32", copy=False)
    with pytest.raises(ConversionError, match="copy=False"):
        mg.asarray([1.0], copy=False)


def test_read_only_and_strided_arrays_become_tensors_that_can_be_written():
    base = np.arange(6.0).reshape(2, 3)
    frozen = base.copy()
    frozen.flags.writeable = False
    for theirs in (frozen, base[:, ::-1], base.T, np.broadcast_to(np.ones(1), (3, 2))):
        x = mg.asarray(theirs)
        np.testing.assert_array_equal(x.numpy(), theirs)
        x[0] = -1.0
        assert theirs.min() >= 0


def test_a_dtype_or_a_device_is_what_was_asked_for():
    assert mg.asarray([1.9, -1.9], dtype=int).tolist() == [1, -1]
    assert mg.asarray([0, 2], dtype=bool).tolist() == [False, True]
    x = mg.asarray(mg.ones(2), device="cpu:1")
    assert str(x.device) == "cpu:1"
    with mg.device("cpu:1"):
        assert {str(t.device) for t in (mg.asarray([1.0]), mg.zeros(2), mg.arange(3), mg.eye(2))} == {"cpu:1"}
        assert str(mg.zeros(2, device="cpu").device) == "cpu"
    assert str(mg.zeros_like(x).device) == "cpu:1"


def test_a_tensor_with_a_history_keeps_it():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    y = mg.asarray(w, dtype="float64")
    assert y.requires_grad and mg.asarray(w) is w
    assert mg.zeros(2, requires_grad=True).is_leaf and mg.full(2, 3.0, requires_grad=True).requires_grad


@pytest.mark.parametrize("data", [[[1], [1, 2]], [[1, 2], 3]])
def test_ragged_lists(data):
    with pytest.raises(ShapeError, match="one shape"):
        mg.asarray(data)


@pytest.mark.parametrize("data", ["text", ["a"], object(), None, {1: 2}, 1j, np.ones(1, complex)])
def test_asarray_refuses_other_objects(data):
    with pytest.raises((DtypeError, ConversionError)):
        mg.asarray(data)


def test_filled_tensors():
    assert mg.zeros(()).shape == () and mg.ones(2).dtype == "float32" and mg.empty(3).tolist() == [0, 0, 0]
    assert mg.full(2, True).dtype == "bool" and mg.full((), 2.5).dtype == "float32" and mg.full(1, 7).dtype == "int64"
    assert mg.full((1, 2), mg.asarray(3.0)).tolist() == [[3, 3]]
    assert mg.full_like(mg.ones(2, dtype="int8"), 3).dtype == "int8"
    x = mg.zeros(2)
    x[0] = 1.0
    assert mg.zeros(2).tolist() == [0, 0], "nothing is shared"


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-7, 7).filter(bool))
def test_arange_equals_pythons_range(start, stop, step):
    assert mg.arange(start, stop, step).tolist() == list(range(start, stop, step))
    ours, theirs = mg.arange(start / 4, stop / 4, step / 4), np.arange(start / 4, stop / 4, step / 4)
    assert ours.dtype == "float32"
    np.testing.assert_array_equal(ours.numpy(), theirs.astype(np.float32))


def test_arange_with_a_dtype():
    assert mg.arange(3, dtype="float64").dtype == "float64" and mg.arange(2.5).tolist() == [0, 1, 2]
    assert mg.arange(3, dtype="int8").dtype == "int8"
    with pytest.raises(ConversionError, match="step must not be 0"):
        mg.arange(0, 3, 0)


def test_meshgrid_and_tril_check_their_arguments():
    with pytest.raises(ConversionError, match="indexing is 'xy' or 'ij'"):
        mg.meshgrid(mg.arange(2), indexing="yx")
    with pytest.raises(ShapeError, match="matrices"):
        mg.tril(mg.arange(3))
    [only] = mg.meshgrid(mg.arange(3))
    assert only.tolist() == [0, 1, 2]


@pytest.mark.parametrize("shape", ["a", 2.5, (2, None), (1.5,)])
def test_a_shape_is_integers(shape):
    with pytest.raises(ShapeError, match="a shape is an integer or a sequence of integers"):
        mg.zeros(shape)


@pytest.mark.parametrize(("data", "dtype"), [([300], "uint8"), (-1, "uint8"), ([[1, 128]], "int8"), (np.nan, "int32")])
def test_numbers_that_do_not_fit_are_refused(data, dtype):
    with pytest.raises(DtypeError, match=f"do not fit into {dtype}"):
        mg.asarray(data, dtype=dtype)
    assert mg.asarray([255, 0.5], dtype="uint8").tolist() == [255, 0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2], [3]], r"x\[1\] has shape \(1,\) and x\[0\] has shape \(2,\)"),
        ([[1, 2], 3], r"x\[1\] has shape \(\) and x\[0\] has shape \(2,\)"),
        ([[[1], [2]], [[3], [4, 5]]], r"x\[1\]\[1\] has shape \(2,\) and x\[1\]\[0\] has shape \(1,\)"),
        ([np.ones(2), np.ones(3)], r"x\[1\] has shape \(3,\) and x\[0\] has shape \(2,\)"),
        ([[], [1]], r"x\[1\] has shape \(1,\) and x\[0\] has shape \(0,\)"),
    ],
)
def test_ragged_lists_are_refused_by_their_first_ragged_entry(data, message):
    with pytest.raises(mg.ShapeError, match=f"^asarray: nested lists of one shape are needed: {message}\n") as error:
        mg.asarray(data)
    assert "inhomogeneous" not in str(error.value)


def test_lists_nested_too_deep_are_refused():
    deep = 1
    for _ in range(70):
        deep = [deep]
    with pytest.raises(mg.ShapeError, match="asarray: the lists are nested more than 64 deep"):
        mg.asarray(deep)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_as_integers(value):
    x = mg.asarray([1, 2])
    with pytest.raises(mg.DtypeError, match=f"assignment: {value} does not fit into int64"):
        x[0] = value
    with pytest.raises(mg.DtypeError, match=f"full: {value} does not fit into int32"):
        mg.full((2,), value, dtype=mg.int32)
    with pytest.raises(mg.DtypeError, match=f"full: {value} does not fit into int32"):
        mg.jit(lambda: mg.full((2,), value, dtype=mg.int32))()
    with pytest.raises(mg.DtypeError, match=f"assignment: {value} does not fit into int64"):
        mg.jit(lambda x: x.__setitem__(0, value))(x)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("change", ["in place", "assignment", "of a view", "in a program"])
def test_writes_to_a_shared_memmap_reach_its_file(tmp_path, change):
    path = tmp_path / "numbers"
    np.zeros(4, np.float32).tofile(path)
    mapped = np.memmap(path, np.float32, "r+")
    x = mg.asarray(mapped, copy=False)
    if change == "in place":
        x += 1
    elif change == "assignment":
        x[...] = 1.0
    elif change == "of a view":
        part = x[:]
        part += 1
    else:
        mg.jit(lambda x: x.__iadd__(1))(x)
    mapped.flush()
    assert np.fromfile(path, np.float32).tolist() == [1.0] * 4


def test_writes_to_a_copy_of_a_memmap_stay_in_memory(tmp_path):
    path = tmp_path / "numbers"
    np.zeros(4, np.float32).tofile(path)
    x = mg.asarray(np.memmap(path, np.float32, "r+"))
    x += 1
    assert np.fromfile(path, np.float32).tolist() == [0.0] * 4
