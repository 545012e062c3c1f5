"""Element types: names, promotion, casts and limits."""

import itertools
import pickle
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.core import dtypes
from minigrad.support import errors
from minigrad.support.errors import DtypeError, WideningWarning
from tests.test_registry import DTYPES, PROMOTION

PAIRS = list(itertools.product(DTYPES, DTYPES))


def test_a_dtype_is_numpys_and_has_a_name_at_the_top():
    for name in DTYPES:
        assert getattr(mg, name) == np.dtype(name)
        assert mg.zeros(1, dtype=name).dtype is getattr(mg, name)


@pytest.mark.parametrize(
    ("meant", "name"),
    [
        ("float32", "float32"), (np.float16, "float16"), (np.dtype(">f4"), "float32"), (float, "float32"),
        (int, "int64"), (bool, "bool"), (np.bool_, "bool"), (mg.uint8, "uint8"), ("i4", "int32"),
    ],
)
def test_as_dtype_takes_names_types_and_dtypes(meant, name):
    assert dtypes.as_dtype(meant) is dtypes.ALL[name]


@pytest.mark.parametrize("unknown", ["complex64", np.uint16, "nonsense", None, object, str])
def test_as_dtype_refuses_other_values(unknown):
    with pytest.raises(DtypeError, match="is not a dtype that minigrad has"):
        dtypes.as_dtype(unknown)


def test_array_with_an_equal_dtype_gets_minigrads():
    swapped = np.arange(3, dtype=">f4")
    unpickled = pickle.loads(pickle.dumps(np.ones(3, np.float32)))
    for array in (swapped, unpickled):
        x = mg.asarray(array)
        assert x.dtype is mg.float32 and x.tolist() == array.tolist()
        assert (x * 2).dtype is mg.float32
    shared = mg.asarray(unpickled, copy=False)
    shared[0] = 5.0
    assert shared.dtype is mg.float32 and unpickled[0] == 5


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_dtypes_are_promoted_as_in_the_table(a, b):
    wanted = PROMOTION[a, b]
    assert mg.result_type(a, b) == wanted
    assert mg.result_type(mg.zeros(2, dtype=a), mg.zeros((), dtype=b)) == wanted, "dimensions do not matter"
    assert dtypes.promote_types(dtypes.ALL[a], dtypes.ALL[b]) is dtypes.ALL[wanted]


def test_promotion_is_commutative_and_associative_within_a_kind():
    for a, b in PAIRS:
        assert PROMOTION[a, b] == PROMOTION[b, a]
    for a, b, c in itertools.product(DTYPES, repeat=3):
        assert PROMOTION[PROMOTION[a, b], c] == PROMOTION[a, PROMOTION[b, c]], (a, b, c)


@pytest.mark.parametrize(
    ("items", "name"),
    [
        (("int8", 1), "int8"), (("int8", 1.5), "float32"), (("float16", 1), "float16"), (("float16", 2.5), "float16"),
        (("bool", True), "bool"), (("bool", 1), "int64"), (("bool", 1.0), "float32"), ((1, 2), "int64"),
        ((1, 2.5), "float32"), ((True, False), "bool"), (("float64", 1.5, "int8"), "float64"),
        ((True, "uint8"), "uint8"),
    ],
)
def test_python_numbers_are_weak(items, name):
    assert mg.result_type(*items) == name


def test_result_type_of_nothing():
    with pytest.raises(DtypeError, match="at least one"):
        mg.result_type()


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_casting_is_possible_where_no_kind_and_no_range_is_lost(a, b):
    order = {"b": 0, "u": 1, "i": 1, "f": 2}
    kinds = order[np.dtype(a).kind], order[np.dtype(b).kind]
    expected = kinds[0] < kinds[1] if kinds[0] != kinds[1] else bool(np.can_cast(a, b))
    assert mg.can_cast(a, b) == expected
    assert mg.can_cast(mg.zeros(1, dtype=a), b) == expected


def test_isdtype_of_kinds():
    assert mg.isdtype(mg.int8, "signed integer") and mg.isdtype("uint8", "unsigned integer")
    assert mg.isdtype(mg.bool, "bool") and not mg.isdtype(mg.bool, "numeric")
    assert mg.isdtype(mg.float16, ("bool", "real floating")) and not mg.isdtype(mg.int8, "real floating")
    assert mg.isdtype(mg.int8, mg.int8) and not mg.isdtype(mg.float64, "complex floating")
    with pytest.raises(DtypeError, match="not a kind of dtype"):
        mg.isdtype(mg.int8, "integers")


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_limits_of_floats(name):
    ours, theirs = mg.finfo(name), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, field) == getattr(theirs, field)
        assert type(getattr(ours, field)) in (int, float)
    assert ours.dtype == name and mg.finfo(mg.zeros(1, dtype=name)).bits == ours.bits
    with pytest.raises(DtypeError, match="finfo is for floats"):
        mg.finfo("int8")


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8"])
def test_limits_of_integers(name):
    ours, theirs = mg.iinfo(name), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    with pytest.raises(DtypeError, match="iinfo is for integers"):
        mg.iinfo("float32")


@pytest.mark.parametrize("wrapped", [lambda f: f, mg.jit])
def test_a_number_of_numpy_that_widens_a_tensor_gets_a_warning_once(wrapped, monkeypatch):
    monkeypatch.setattr(errors, "_WARNED", set())

    def scaled(x):
        return [x * np.sqrt(2.0) for _ in range(3)]

    with pytest.warns(WideningWarning, match=r"multiply: a NumPy number of float64 .* Hint: float\(number\)") as caught:
        assert {str(result.dtype) for result in wrapped(scaled)(mg.ones(3))} == {"float64"}
    assert len(caught) == 1 and caught[0].filename == __file__


def test_wide_and_weak_numbers_get_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (mg.ones(3) * float(np.sqrt(2.0))).dtype == (mg.ones(3) * np.float32(2)).dtype == mg.float32
        assert (mg.ones(3, dtype=mg.float64) * np.sqrt(2.0)).dtype == (mg.arange(3) * np.sqrt(2.0)).dtype == mg.float64
        assert (mg.ones(3) * mg.ones(3, dtype=mg.float64)).dtype == mg.float64
