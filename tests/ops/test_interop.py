"""Tensors and other libraries: NumPy's functions on tensors, DLPack, pickle, copies."""

import copy
import json
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops import interop

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


@pytest.fixture
def t():
    return mg.asarray(A)


@pytest.fixture
def w():
    return mg.asarray(A, requires_grad=True)


def agrees(result, expected):
    """Whether a result is a tensor with the values of the same NumPy call on an array."""
    assert isinstance(result, mg.Tensor)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.numpy_copy(), expected, rtol=2e-6)
    return True


# universal functions --------------------------------------------------------------------------------------------------

UNARY = """
    abs absolute negative positive sign exp exp2 expm1 log log1p log2 log10 sqrt square reciprocal sin cos tan sinh cosh
    tanh arctan arcsinh arccosh floor ceil rint trunc isnan isinf isfinite signbit logical_not conjugate fabs
""".split()
BINARY = """
    add subtract multiply divide true_divide floor_divide remainder mod power float_power maximum minimum fmax fmin
    arctan2 hypot copysign logaddexp less less_equal greater greater_equal equal not_equal logical_and logical_or
    logical_xor nextafter
""".split()


@pytest.mark.parametrize("name", UNARY)
def test_numpy_functions_of_one_argument(t, name):
    assert agrees(getattr(np, name)(t), getattr(np, name)(A))


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh"])
def test_numpy_functions_of_small_numbers(name):
    assert agrees(getattr(np, name)(mg.asarray(A / 8)), getattr(np, name)(A / 8))


@pytest.mark.parametrize("name", BINARY)
def test_numpy_functions_of_two_arguments(t, name):
    function = getattr(np, name)
    expected = function(A, A[0])
    assert agrees(function(t, A[0]), expected)  # a tensor and an array, in either order
    assert agrees(function(A, mg.asarray(A[0])), expected)
    assert agrees(function(t, 2.0), function(A, np.float32(2)))
    assert agrees(function(2.0, t), function(np.float32(2), A))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_numpy_functions_of_bits(name):
    x, y = np.array([6, 3, 12]), np.array([1, 2, 3])
    assert agrees(getattr(np, name)(mg.asarray(x), y), getattr(np, name)(x, y))
    assert agrees(np.invert(mg.asarray(x)), ~x)


def test_numpy_matmul(t):
    assert agrees(np.matmul(t, A.T), A @ A.T)
    assert agrees(A.T @ t, A.T @ A)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "<", "=="])
def test_array_on_the_left_of_an_operator(w, operator):
    assert agrees(eval(f"A {operator} w"), eval(f"A {operator} A"))
    assert agrees(eval(f"w {operator} A"), eval(f"A {operator} A"))


def test_gradients_flow_through_numpys_functions(w):
    y = np.sum(np.exp(w) * np.ones(3, np.float32) + np.concatenate([A, np.square(w)])[2:], axis=0)
    np.mean(y).backward()
    np.testing.assert_allclose(w.grad.numpy(), (np.exp(A) + 2 * A) / 3, rtol=1e-5)


def test_the_result_is_on_the_tensors_device():
    t = mg.asarray(A, device="cpu:1")
    assert str((A + t).device) == "cpu:1"
    assert str(np.concatenate([A, t]).device) == "cpu:1"
    assert str(np.where(A > 2, t, A).device) == "cpu:1"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: np.add.reduce(t), r"np.add.reduce has no counterpart .*\n.*mg.sum"),
        (lambda t: np.maximum.reduce(t), r"np.maximum.reduce has no counterpart .*\n.*mg.max"),
        (lambda t: np.add.accumulate(t), "np.add.accumulate has no counterpart"),
        (lambda t: np.multiply.outer(t, t), "np.multiply.outer has no counterpart"),
        (lambda t: np.add(t, 1, out=np.zeros((2, 3))), "np.add with out= has no counterpart"),
        (lambda t: np.add(A, 1, out=t), "np.add with out= has no counterpart"),
        (lambda t: np.add(t, 1, where=A > 2), "np.add with where= has no counterpart"),
        (lambda t: np.gcd(t, 1), "np.gcd has no counterpart"),
        (lambda t: np.cov(t), "np.cov has no counterpart"),
        (lambda t: np.fft.fft(t), "np.fft.fft has no counterpart"),
        (lambda t: np.linalg.eigvals(t), "np.linalg.eigvals has no counterpart"),
        (lambda t: np.sum(t, out=np.zeros(())), "np.sum with out= has no counterpart"),
        (lambda t: np.sum(t, initial=3.0), "np.sum with initial= has no counterpart"),
        (lambda t: np.mean(t, dtype=np.float64), "np.mean with dtype= has no counterpart"),
        (lambda t: np.mean(t, 0, np.float64), "np.mean with dtype= has no counterpart"),
        (lambda t: np.pad(t, 1, "edge", reflect_type="odd"), "np.pad with reflect_type= has no counterpart"),
        (lambda t: np.quantile(t, 0.5, method="lower"), "np.quantile with method= has no counterpart"),
        (lambda t: np.reshape(t, (3, 2), order="F"), "np.reshape with order= has no counterpart"),
        (lambda t: np.where(t), "np.where with 1 argument has no counterpart"),
        (lambda t: np.take(t, [0], 0, None, "clip"), "np.take with mode= has no counterpart"),
    ],
)
def test_numpy_functions_without_a_counterpart_are_refused(t, call, message):
    with pytest.raises(TypeError, match=message):
        call(t)


def test_arrays_are_not_changed_silently(w):
    a = A.copy()
    with pytest.raises(TypeError, match=r"a = a \+ t gives a tensor"):
        a += w
    assert np.array_equal(a, A)


# other functions ------------------------------------------------------------------------------------------------------

CALLS = [
    lambda x: np.sum(x), lambda x: np.sum(x, 0), lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    lambda x: np.sum(x, dtype=np.float64), lambda x: np.prod(x, axis=1),
    lambda x: np.sum(x, axis=0, keepdims=np._NoValue, initial=np._NoValue),
    lambda x: np.cumsum(x, axis=1), lambda x: np.cumprod(x, 0), lambda x: np.cumulative_sum(x, axis=0),
    lambda x: np.mean(x), lambda x: np.mean(x, 1, None, None, True), lambda x: np.var(x, axis=0, ddof=1),
    lambda x: np.std(x, axis=1, correction=1), lambda x: np.max(x, axis=0), lambda x: np.min(x),
    lambda x: np.amax(x, 1), lambda x: np.argmax(x, axis=1), lambda x: np.argmin(x),
    lambda x: np.all(x > 1, axis=0), lambda x: np.any(x > 5), lambda x: np.count_nonzero(x > 2, axis=1),
    lambda x: np.clip(x, 2, 5), lambda x: np.clip(x, a_min=2.0, a_max=None), lambda x: np.round(x),
    lambda x: np.around(x, 0),
    lambda x: np.reshape(x, (3, 2)), lambda x: np.reshape(x, -1, order="C"), lambda x: np.ravel(x),
    lambda x: np.transpose(x), lambda x: np.transpose(x, (1, 0)), lambda x: np.permute_dims(x, axes=(1, 0)),
    lambda x: np.matrix_transpose(x), lambda x: np.swapaxes(x, 0, 1), lambda x: np.moveaxis(x, 0, -1),
    lambda x: np.expand_dims(x, 1), lambda x: np.squeeze(np.expand_dims(x, axis=0), axis=0),
    lambda x: np.broadcast_to(x, (4, 2, 3)), lambda x: np.broadcast_arrays(x, np.ones((2, 2, 1)))[0],
    lambda x: np.flip(x, axis=1), lambda x: np.roll(x, 1, axis=0), lambda x: np.tile(x, (2, 1)),
    lambda x: np.repeat(x, 2, axis=0), lambda x: np.take(x, np.array([2, 0]), axis=1),
    lambda x: np.take_along_axis(x, np.array([[1], [0]]), axis=1),
    lambda x: np.sort(-x, axis=1), lambda x: np.argsort(-x, axis=0, kind="stable"),
    lambda x: np.searchsorted(x[0], np.array([0.0, 2.0, 9.0])), lambda x: np.searchsorted(x[0], x[1], side="right"),
    lambda x: np.nonzero(x > 2)[1], lambda x: np.diff(x, axis=0), lambda x: np.diff(x, n=2),
    lambda x: np.tril(x), lambda x: np.triu(x, k=1), lambda x: np.split(x, 3, axis=1)[2], lambda x: np.unstack(x)[1],
    lambda x: np.concatenate([x, A], axis=1), lambda x: np.concatenate((A, x)), lambda x: np.concat([x, x]),
    lambda x: np.stack([x, A], axis=-1), lambda x: np.where(A > 2, x, 0.0), lambda x: np.where(x > 2, x, A),
    lambda x: np.copy(x), lambda x: np.astype(x, np.int64), lambda x: np.zeros_like(x),
    lambda x: np.ones_like(x, dtype=np.int8), lambda x: np.full_like(x, 7),
    lambda x: np.dot(x, A.T), lambda x: np.outer(x[0], A[1]),
    lambda x: np.tensordot(x, A.T, axes=1), lambda x: np.einsum("ij,kj->ik", x, A),
    lambda x: np.meshgrid(x[0], A[:, 0])[1],
    lambda x: np.round(x / 7, 1), lambda x: np.median(x, axis=1), lambda x: np.quantile(x, 0.3, axis=0),
    lambda x: np.interp(x, np.array([2.0, 3.0]), x[0, :2]), lambda x: np.diag(x), lambda x: np.diag(x[0], k=1),
    lambda x: np.pad(x, 1), lambda x: np.pad(x, ((0, 1), (2, 0)), "edge"), lambda x: np.pad(x, 1, constant_values=2),
    lambda x: np.atleast_1d(x[0, 0]), lambda x: np.atleast_1d(x), lambda x: np.atleast_1d(x, 3.0)[1],
    lambda x: np.atleast_2d(x[0]), lambda x: np.atleast_2d(x),
    lambda x: np.vstack([x, x[0]]), lambda x: np.hstack([x, A]), lambda x: np.hstack((x[0], 2.0)),
    lambda x: np.kron(x, A), lambda x: np.nansum(x, axis=0), lambda x: np.nanmean(x, 1, keepdims=True),
    lambda x: np.column_stack([x, A[:, 0]]), lambda x: np.broadcast_arrays(x, [1, 2, 3])[1],
    lambda x: np.trace(x), lambda x: np.trace(np.stack([x, x, x]), offset=1), lambda x: np.diagonal(x, 1),
    lambda x: np.diagonal(np.stack([x, x]), axis1=1, axis2=2), lambda x: np.unique(x % 3),
    lambda x: np.unique(x % 3, return_index=True, return_counts=True)[2],
]


NEW_IN_NUMPY_2_1 = {"cumulative_sum", "cumulative_prod", "unstack"}
MISSING = {name for name in NEW_IN_NUMPY_2_1 if not hasattr(np, name)}


@pytest.mark.parametrize("call", [call for call in CALLS if MISSING.isdisjoint(call.__code__.co_names)])
def test_numpy_functions_of_the_table(t, call):
    assert agrees(call(t), call(A))


def test_table_of_numpy_functions_is_tested_completely():
    """Each entry of the table is a NumPy function with a counterpart in minigrad."""
    for name, counterpart in interop.COUNTERPARTS.items():
        if name in MISSING:
            continue
        theirs = np
        for part in name.split("."):
            theirs = getattr(theirs, part)
        assert callable(theirs)
        assert callable(interop.find_ours(counterpart.ours, name))
    called = "\n".join(name for call in CALLS for name in call.__code__.co_names)
    untried = (set(interop.COUNTERPARTS) | set(interop.COMPOSED)) - set(called.split())
    assert all(callable(getattr(np, name)) for name in interop.COMPOSED)
    assert untried == {"amin", "cumulative_prod", "empty_like", "isfinite"} | {n for n in untried if "linalg." in n}


@pytest.mark.parametrize("name", ["inv", "det", "cholesky"])
def test_numpy_linear_algebra(name):
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    assert agrees(getattr(np.linalg, name)(mg.asarray(matrix)), getattr(np.linalg, name)(matrix))
    assert agrees(np.linalg.solve(mg.asarray(matrix), matrix[0]), np.linalg.solve(matrix, matrix[0]))
    assert agrees(np.linalg.norm(mg.asarray(matrix[0])), np.linalg.norm(matrix[0]))


FACTORS = [
    lambda x: np.linalg.eigh(x)[0], lambda x: np.linalg.eigvalsh(x), lambda x: np.linalg.svd(x).S,
    lambda x: np.linalg.svd(x, full_matrices=False)[0], lambda x: np.linalg.qr(x).R, lambda x: np.linalg.pinv(x),
    lambda x: np.linalg.matrix_rank(x), lambda x: np.linalg.matrix_power(x, 3), lambda x: np.linalg.cross(x, x[0]),
    lambda x: np.linalg.lstsq(x, x[0], rcond=None)[0],
]


@pytest.mark.parametrize("call", FACTORS)
def test_numpy_factors_of_matrices(call):
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
    ours, theirs = call(mg.asarray(matrix)), call(matrix)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-10, atol=1e-12)


def test_gradients_flow_through_functions_composed_for_numpy(w):
    out = np.vstack([np.atleast_1d(w[0]), w]) * np.hstack([A[:, :1], A[:, :2]]).sum()
    assert mg.gradients(out.sum() + np.trace(w) + np.broadcast_arrays(w[0], A)[0].sum(), w).shape == (2, 3)


@pytest.mark.slow
def test_matplotlib_takes_tensors(t):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    x, height = t[0], t[1]
    figure, axes = pyplot.subplots()
    bars = axes.bar(x, height)
    assert [bar.get_height() for bar in bars] == [4.0, 5.0, 6.0]
    assert axes.barh(x, height, height=0.5)[2].get_width() == 6.0
    assert axes.quiver(x, height, height, x).U.tolist() == [4.0, 5.0, 6.0]
    figure.canvas.draw()
    with pytest.raises(mg.ConversionError, match=r"x\.detach"):
        axes.bar(x, mg.ones(3, requires_grad=True))
    pyplot.close(figure)


def test_json_takes_tensors_by_their_lists(t):
    assert json.loads(json.dumps({"losses": t}, default=mg.Tensor.tolist)) == {"losses": A.tolist()}


def test_numpy_predicates_read_the_values(w):
    assert np.allclose(w, A) and not np.allclose(w + 1, A)
    assert np.array_equal(A, w)
    assert np.shape(w) == (2, 3) and np.ndim(w) == 2 and np.size(w) == 6
    np.testing.assert_allclose(w.detach(), A)


# arrays ---------------------------------------------------------------------------------------------------------------


def test_asarray_copies(t):
    a = np.asarray(t)
    a[0, 0] = 9
    assert t[0, 0].item() == 1
    assert np.asarray(t, dtype=np.int64).dtype == np.int64
    assert np.array([t, t]).shape == (2, 2, 3)


def test_asarray_without_a_copy_is_read_only(t):
    a = np.asarray(t, copy=False)
    t[0, 0] = 9
    assert a[0, 0] == 9 and not a.flags.writeable
    with pytest.raises(ValueError, match="takes a copy"):
        np.asarray(t, dtype=np.int64, copy=False)


def test_asarray_of_a_tracked_tensor_raises(w):
    with pytest.raises(TypeError, match=r"x.detach\(\).numpy\(\)"):
        np.asarray(w)
    with pytest.raises(TypeError, match=r"np.stack\(\[x, y\]\) in place of np.array\(\[x, y\]\)"):
        np.array([w[0], w[1]])
    with pytest.raises(TypeError, match="would silently lose the history"):
        np.array(w * 2)


# DLPack ---------------------------------------------------------------------------------------------------------------


marking = pytest.mark.skipif(not interop.NUMPY_TAKES_WISHES, reason="NumPy 2.0 cannot mark memory as read-only")


@marking
def test_dlpack_export_shares_memory(t):
    a = np.from_dlpack(t)
    t[0, 0] = 9
    assert a[0, 0] == 9 and t.__dlpack_device__() == (1, 0)


@marking
def test_dlpack_exports_are_read_only_so_that_no_write_goes_unnoticed(w):
    exported = np.from_dlpack(w.detach())
    with pytest.raises(ValueError, match="read-only"):
        exported[0] = 9.0
    shared = mg.from_dlpack(w.detach(), copy=False)
    with pytest.raises(mg.MutationError, match="read-only"):
        shared[0] = 9.0
    assert np.from_dlpack(w.detach(), copy=True).flags.writeable


class Older:
    """A reader of the old DLPack version, in which memory cannot be marked as read-only."""

    def __init__(self, tensor, **wishes):
        self.tensor, self.wishes = tensor, wishes

    def __dlpack__(self, **wishes):
        return self.tensor.__dlpack__(**self.wishes)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_gives_a_copy_to_readers_that_cannot_take_read_only_memory(t):
    a = np.from_dlpack(Older(t))
    t[0, 0] = 9
    assert a[0, 0] == 1
    shared = np.from_dlpack(Older(t, copy=False))
    t[0, 0] = 8
    assert shared[0, 0] == 8


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_dlpack_round_trip(dtype, shape):
    t = mg.ones(shape, dtype=dtype)
    back = mg.from_dlpack(t)
    assert back.dtype == t.dtype and back.shape == shape and back.tolist() == t.tolist()
    assert mg.asarray(np.from_dlpack(t)).tolist() == t.tolist()


def test_dlpack_of_views(t):
    assert np.array_equal(np.from_dlpack(t[:, ::-2]), A[:, ::-2])
    assert np.array_equal(np.from_dlpack(t.T), A.T)
    spread = np.from_dlpack(mg.broadcast_to(t[0], (4, 3)))
    assert np.array_equal(spread, np.broadcast_to(A[0], (4, 3)))


def test_dlpack_export_arguments(t):
    capsule = t.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert "dltensor" in repr(capsule)
    with pytest.raises(BufferError, match=r"DLPack: .* of a tensor on cpu"):
        t.__dlpack__(dl_device=(2, 0))


def test_numpy_2_0_exports_copies_though_it_does_not_take_that_wish(t, monkeypatch):
    class Taking:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **wishes):
            return self.capsule

        def __dlpack_device__(self):
            return 1, 0

    monkeypatch.setattr(interop, "NUMPY_TAKES_WISHES", False)
    copies = [np.from_dlpack(Taking(t.__dlpack__(max_version=(1, 0), copy=copy))) for copy in (True, None)]
    t[0, 0] = 9
    assert [copied[0, 0] for copied in copies] == [1, 1]  # it cannot mark memory as read-only
    with pytest.raises(BufferError, match=r"NumPy .* exports to the CPU only, of a tensor on cpu"):
        t.__dlpack__(dl_device=(2, 0))


def test_dlpack_import_copies_unless_asked_not_to(t):
    a = A.copy()
    copied, shared = mg.from_dlpack(a), mg.from_dlpack(a, copy=False)
    a[0, 0] = 9
    assert copied[0, 0].item() == 1 and shared[0, 0].item() == 9
    if interop.NUMPY_TAKES_WISHES:
        shared[0, 1] = 7
        assert a[0, 1] == 7
    else:
        with pytest.raises(mg.MutationError, match="memory that is read-only"):
            shared[0, 1] = 7
    moved = mg.from_dlpack(a, device="cpu:1")
    assert str(moved.device) == "cpu:1"
    assert str(mg.from_dlpack(mg.ones(2, device="cpu:1")).device) == "cpu:1"


class Speaker:
    """An object of another library that supports only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **wishes):
        return self.array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_asarray_accepts_dlpack():
    t = mg.asarray(Speaker(A), dtype=mg.float64)
    assert t.dtype == mg.float64 and np.array_equal(t.numpy(), A)


def test_dlpack_errors(w):
    with pytest.raises(TypeError, match=r"would silently lose the history\n.*x.detach"):
        np.from_dlpack(w)
    with pytest.raises(TypeError, match="from_dlpack: list does not support DLPack"):
        mg.from_dlpack([1, 2])
    with pytest.raises(TypeError, match="from_dlpack: complex64 is not a dtype that minigrad has"):
        mg.from_dlpack(np.ones(2, np.complex64))
    with pytest.raises(TypeError, match=r"from_dlpack: .*export"):
        mg.from_dlpack(Speaker(Refusing()))


class Refusing:
    def __dlpack__(self, **wishes):
        raise BufferError("can't export this")

    def __dlpack_device__(self):
        return 1, 0


# pickle and copies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
def test_copies_are_independent(again, requires_grad, device):
    x = mg.asarray(A, device=device, requires_grad=requires_grad)
    y = again(x)
    assert y.requires_grad is requires_grad and y.is_leaf and y.device is x.device and y.dtype == x.dtype
    with mg.no_grad():
        x[0, 0] = 100
    assert np.array_equal(y.numpy_copy(), A)


def test_copies_of_views_are_their_own(t):
    for y in (copy.copy(t[:, 1]), copy.deepcopy(t[:, 1]), pickle.loads(pickle.dumps(t[:, 1]))):
        t[:, 1] = 0
        assert y.tolist() == [2, 5]
        t[:, 1] = mg.asarray([2.0, 5.0])


def test_deepcopy_keeps_gradients_and_identity(w):
    (w * w).sum().backward()
    other = copy.deepcopy({"a": w, "b": [w]})
    assert other["a"] is other["b"][0] and other["a"] is not w
    assert other["a"].grad.tolist() == w.grad.tolist() and other["a"].grad is not w.grad
    (other["a"] * 2).sum().backward()
    assert w.grad.tolist() == (2 * A).tolist()
    assert pickle.loads(pickle.dumps(w)).grad is None


def test_an_unpickled_tensor_has_our_dtype_and_not_one_that_equals_it():
    """Casts are looked up by the identity of their dtypes, so an equal but different dtype object is not found."""
    assert pickle.loads(pickle.dumps(mg.ones(2))).dtype is mg.float32


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_results_of_operations_do_not_lose_their_history(w, again):
    with pytest.raises(TypeError, match=r"would silently lose its history\n.*x.detach\(\)"):
        again(w * 2)
    assert again((w * 2).detach()) is not None


def test_lists_of_tensors_keep_their_history():
    a, b = mg.asarray(2.0, requires_grad=True), mg.asarray([1.0, 2.0], requires_grad=True)
    (mg.asarray([a * 3, 1, a]) * mg.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert a.grad.item() == 6
    assert mg.asarray([b, [3, 4]]).requires_grad
    assert str(mg.asarray([mg.ones(1, device="cpu:1"), [2]]).device) == "cpu:1"


# Tensors of other libraries -------------------------------------------------------------------------------------------


class Other:
    """A tensor of another library that leaves the operation to minigrad, as PyTorch's does."""

    __module__ = "torch.nn"

    def __array__(self, dtype=None, copy=None):
        return np.ones(3, dtype)


@pytest.mark.parametrize("call", [
    lambda t, other: t + other, lambda t, other: other * t, lambda t, other: t @ other, lambda t, other: t == other,
    lambda t, other: mg.exp(other), lambda t, other: t.__setitem__(0, other), lambda t, other: t.__iadd__(other),
])
def test_a_tensor_of_another_library_is_refused_by_its_full_name(call):
    expected = r"^torch.Other is not a tensor of minigrad, a number or a NumPy array\n.*mg.asarray\(x\) copies"
    with pytest.raises(mg.ConversionError, match=expected):
        call(mg.ones(3), Other())
    assert mg.asarray(Other()).tolist() == [1, 1, 1]
