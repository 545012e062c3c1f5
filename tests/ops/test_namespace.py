"""`minigrad` as a namespace of the array API standard: its names, and the required results for special values."""

import inspect
import math

import numpy as np
import pytest

import minigrad as mg

# The names in version 2024.12 of the standard.
STANDARD = {
    "constants": "e inf nan newaxis pi",
    "dtypes": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128",
    "creation": """arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril
        triu zeros zeros_like""",
    "data types": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
        bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor
        floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10
        logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal
        positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc""",
    "indexing": "take take_along_axis",
    "inspection": "__array_namespace_info__ __array_api_version__",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": """broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
        squeeze stack tile unstack""",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
    "methods": """__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__
        __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__
        __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__
        __xor__ to_device T device dtype mT ndim shape size""",
    "reflected and in-place methods": " ".join(
        f"__{prefix}{name}__"
        for prefix in "ri"
        for name in "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    ),
    "linalg": """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
        matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm""",
    "fft": "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift",
}
LEFT_OUT = {
    "complex64 complex128": "no complex numbers yet: gradients of theirs need a convention of their own",
    "uint16 uint32 uint64": "nothing in machine learning counts in them, and each dtype is a kernel of every operation",
    "fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft "
    "fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift":
        "transforms work on complex numbers, and frequencies are of no use without transforms",
}


def listed():
    for group, names in STANDARD.items():
        for name in names.split():
            yield f"{group}.{name}" if group in ("linalg", "fft") else name


def is_there(name):
    if name.startswith(("linalg.", "fft.")):
        room, name = name.split(".")
        return hasattr(getattr(mg, room, None), name)
    return hasattr(mg, name) or hasattr(mg.Tensor, name)


def test_names_of_the_standard_are_there_or_left_out_with_a_reason():
    left_out = {name for names in LEFT_OUT for name in names.split()}
    missing = {name for name in listed() if not is_there(name)}
    assert missing == left_out


@pytest.mark.parametrize("name", [n for n in listed() if "." not in n and inspect.isfunction(getattr(mg, n, None))])
def test_functions_all_have_an_example(name):
    assert f"{name}(" in inspect.getdoc(getattr(mg, name))


def test_private_names_are_not_exported():
    """A `*` import might also export helpers and imported modules."""
    for name, value in vars(mg).items():
        if inspect.ismodule(value) and not name.startswith("__"):
            assert value.__name__ == f"minigrad.{name}"
        elif inspect.isroutine(value) or inspect.isclass(value):
            assert value.__module__.startswith("minigrad")
    assert not {"P", "emit", "unbroadcast", "as_tensor", "wrap", "NUMBERS", "BASIC", "ALL"} & set(vars(mg))


def test_constants():
    assert (mg.e, mg.pi, mg.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(mg.nan) and mg.newaxis is None
    assert mg.ones(3)[mg.newaxis].shape == (1, 3)
    assert mg.__array_api_version__ == "2024.12"


def test_the_namespace_of_a_tensor():
    x = mg.ones(2)
    assert x.__array_namespace__() is mg
    assert x.__array_namespace__(api_version="2023.12") is mg
    with pytest.raises(ValueError, match=r"version '2019\.01' of the array API is not supported"):
        x.__array_namespace__(api_version="2019.01")


def test_inspection():
    info = mg.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    with mg.device("cpu:1"):
        assert str(info.default_device()) == "cpu:1"
    assert info.default_dtypes() == {"real floating": mg.float32, "integral": mg.int64, "indexing": mg.int64}
    assert info.dtypes(kind="real floating") == {"float32": mg.float32, "float64": mg.float64}
    assert info.dtypes(kind=("bool", "unsigned integer")) == {"bool": mg.bool, "uint8": mg.uint8}
    assert info.dtypes(kind="complex floating") == {}
    with pytest.raises(TypeError, match="'real' is not a kind of dtype"):
        info.dtypes(kind="real")


# special values -------------------------------------------------------------------------------------------------------

EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-30, -1e-30, 85.0, -89.0, 1e30, -1e30, 3e38, -3e38,
                  np.inf, -np.inf, np.nan])
SAME_AT_EDGES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "ceil": "ceil", "cosh": "cosh", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log2": "log2",
    "log10": "log10", "positive": "positive", "reciprocal": "reciprocal", "signbit": "signbit", "sinh": "sinh",
    "square": "square", "trunc": "trunc", "sign": "sign",
}


def same(ours, theirs, dtype):
    """Whether two arrays are equal to the last places, including the signs of zeros."""
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol={np.float16: 3e-3, np.float32: 1e-6, np.float64: 3e-15}[dtype])
    zeros = (theirs == 0) & (ours == 0)
    assert np.array_equal(np.signbit(ours[zeros]), np.signbit(theirs[zeros]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(SAME_AT_EDGES))
def test_functions_of_one_argument_at_special_values(name, dtype):
    with np.errstate(all="ignore"):
        x = EDGES.astype(dtype)
        expected = getattr(np, SAME_AT_EDGES[name])(x.astype(np.float64)) if dtype is not np.float64 else None
        expected = getattr(np, SAME_AT_EDGES[name])(x) if expected is None else expected
        expected = expected.astype(dtype) if expected.dtype.kind == "f" else expected
    same(getattr(mg, name)(mg.asarray(x)).numpy(), expected, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["copysign", "hypot", "logaddexp", "nextafter"])
def test_functions_of_two_arguments_at_special_values(name, dtype):
    with np.errstate(all="ignore"):
        x, y = (grid.astype(dtype) for grid in np.meshgrid(EDGES, EDGES))
        expected = getattr(np, name)(x, y)
    same(getattr(mg, name)(mg.asarray(x), mg.asarray(y)).numpy(), expected, dtype)


def test_logarithms_are_exact_at_powers():
    powers = np.arange(-120, 120)
    assert mg.log2(mg.asarray((2.0**powers).astype(np.float32))).tolist() == powers.tolist()
    assert mg.log10(mg.asarray(10.0 ** np.arange(11), dtype=mg.float32)).tolist() == list(range(11))


def test_gradients_near_the_edges():
    """The kink of |x| at 0 and inf - inf at large numbers must not spoil the gradients of composed functions."""
    x = mg.asarray([0.0, -0.0, 1e-20, 40.0, -1e15], dtype=mg.float64, requires_grad=True)
    for function, derivative in [
        (mg.asinh, lambda v: 1 / np.hypot(v, 1)),
        (mg.atan, lambda v: 1 / (1 + v * v)),
        (lambda t: mg.logaddexp(t, 0.0), lambda v: np.where(v < -700, 0, 1 / (1 + np.exp(-np.maximum(v, -700))))),
        (lambda t: mg.hypot(t, 1.0), lambda v: v / np.hypot(v, 1)),
    ]:
        slope = mg.gradients(function(x).sum(), x)
        np.testing.assert_allclose(slope.numpy(), derivative(x.numpy_copy()), rtol=1e-12)
    at_tie = mg.asarray([2.0, 2.0], dtype=mg.float64, requires_grad=True)
    slope = mg.gradients(mg.logaddexp(at_tie[0], at_tie[1]), at_tie, create_graph=True)
    assert slope.tolist() == [0.5, 0.5]
    assert mg.gradients(slope[0], at_tie).tolist() == [0.25, -0.25]


@pytest.mark.parametrize("dtype", [mg.int8, mg.uint8, mg.int64, mg.bool])
def test_integers_stay_integers(dtype):
    x = mg.asarray([0, 1, 1], dtype=dtype)
    for name in ("ceil", "floor", "trunc", "round", "square", "positive", "conj", "real", "imag"):
        if dtype is mg.bool and name not in ("positive", "conj", "real", "imag"):
            continue
        out = getattr(mg, name)(x)
        assert out.dtype == dtype
        assert out.tolist() == ([0, 0, 0] if name == "imag" else [0, 1, 1])
    assert mg.isfinite(x).tolist() == [True] * 3 and mg.isinf(x).tolist() == mg.isnan(x).tolist() == [False] * 3
    assert mg.sinh(x).dtype == mg.log2(x).dtype == mg.float32


# searching and sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(size, side):
    ordered = np.sort(np.random.default_rng(3).integers(0, 6, size)).astype(np.float32)
    values = np.array([[-1.0, 0.0, 2.5], [3.0, 5.0, 9.0]], np.float32)
    found = mg.searchsorted(mg.asarray(ordered), mg.asarray(values), side=side)
    assert np.array_equal(found.numpy(), np.searchsorted(ordered, values, side=side))
    shuffled = ordered[::-1].copy()
    sorter = mg.asarray(np.argsort(shuffled, kind="stable"))
    found = mg.searchsorted(mg.asarray(shuffled), mg.asarray(values), side=side, sorter=sorter)
    assert np.array_equal(found.numpy(), np.searchsorted(ordered, values, side=side))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("mode", [lambda f: f, mg.jit], ids=["eager", "jit"])
def test_searchsorted_puts_nan_after_all_numbers(mode, side):
    for ordered in ([], [1.0, 2.0], [1.0, math.inf, math.nan, math.nan], [math.nan], [1, 2, 3]):
        for values in ([-1.0, 1.5, math.inf, math.nan], [2, 9]):
            expected = np.searchsorted(np.array(ordered), np.array(values), side=side)
            dtype = mg.int64 if ordered == [1, 2, 3] else mg.float32
            find = mode(lambda x, values: mg.searchsorted(x, values, side=side))
            assert find(mg.asarray(ordered, dtype=dtype), mg.asarray(values)).tolist() == expected.tolist()


def test_unique_of_nothing_and_of_nans():
    found = mg.unique_all(mg.zeros((0, 3)))
    assert [part.shape for part in found] == [(0,), (0,), (0, 3), (0,)]
    assert mg.unique_counts(mg.asarray([math.nan, 1.0, math.nan])).counts.tolist() == [1, 1, 1]
    assert mg.unique_inverse(mg.asarray(5)).inverse_indices.shape == ()


def test_masks_without_dimensions():
    x, a = mg.reshape(mg.arange(6), (2, 3)), np.arange(6).reshape(2, 3)
    for index in [True, False, (1, True), (slice(None), False), (True, [0, 1], slice(2)), (..., True)]:
        assert np.array_equal(x[index].numpy(), a[index])
    x[mg.asarray(True)] = 7
    assert x.tolist() == [[7] * 3] * 2
    x[False] = 9
    assert x.tolist() == [[7] * 3] * 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda: mg.searchsorted(mg.ones((2, 2)), mg.ones(1)), "searchsorted: x has one dimension"),
        (lambda: mg.searchsorted(mg.ones(2), mg.ones(1), side="middle"), "side is 'left' or 'right', not 'middle'"),
        (lambda: mg.searchsorted(mg.ones(2), mg.ones(1), sorter=mg.asarray([0])), "sorter has shape .1,., not .2,."),
        (lambda: mg.diff(mg.ones(3), n=-1), "diff: n is not negative: -1"),
        (lambda: mg.diff(mg.ones(3), axis=1), "diff: axis 1 does not exist"),
        (lambda: mg.nonzero(mg.asarray(1.0)), "nonzero: a tensor without dimensions has no indices"),
        (lambda: mg.bitcast(mg.ones(2), mg.int64), "bitcast: the bits of float32 can't be read as int64"),
        (lambda: mg.reshape(mg.ones((2, 3)).T, (6,), copy=False), r"reshape\(copy=False\): shape \(3, 2\)"),
        (lambda: mg.asinh(mg.asarray([True])), "abs does not support bool"),
    ],
)
def test_wrong_arguments_are_refused(fault, message):
    with pytest.raises(mg.MinigradError, match=message):
        fault()


def test_copies_on_demand():
    x = mg.ones((2, 3))
    y = mg.reshape(x, (3, 2), copy=True)
    x[0, 0] = 5
    assert y[0, 0].item() == 1 and mg.reshape(x, (3, 2), copy=False)[0, 0].item() == 5
    assert str(mg.astype(x, mg.float32, copy=False, device="cpu:1").device) == "cpu:1"


@pytest.mark.parametrize("name", "acos acosh asin asinh atan atanh cosh exp sinh tan".split())
def test_an_integer_beyond_int64_is_refused_by_every_function(name):
    with pytest.raises(mg.DtypeError, match="does not fit into int64"):
        getattr(mg, name)(2**70)
    with np.errstate(divide="ignore"):
        assert getattr(mg, name)(1).item() == pytest.approx(getattr(np, name)(1.0))
