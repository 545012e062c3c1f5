"""Factors of matrices: values against NumPy in float64, gradients to second order, all modes, errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.support.errors import ConversionError, GradError, MatrixError, ShapeError
from tests.numerical import check_gradients

rng = np.random.default_rng(7)
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 0), (0, 2, 3), (2, 0)]
SMOOTH = [(3, 3), (4, 2), (2, 4), (2, 3, 2)]


def normal(*shape):
    return rng.standard_normal(shape)


def symmetric(*shape):
    x = normal(*shape)
    return x + np.swapaxes(x, -1, -2)


def turned(x):
    return np.swapaxes(x, -1, -2)


def assert_same(ours, theirs, rtol=1e-10):
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(ours.numpy_copy(), theirs, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)])
def test_eigh(shape):
    a = symmetric(*shape)
    values, vectors = mg.linalg.eigh(mg.asarray(a))
    theirs = np.linalg.eigh(a)
    assert_same(values, theirs.eigenvalues)
    assert_same(vectors, theirs.eigenvectors)
    assert_same(mg.linalg.eigvalsh(mg.asarray(a)), theirs.eigenvalues)
    if a.size:
        check_gradients(lambda x: tuple(mg.linalg.eigh(x)), a, rtol=1e-5)
        check_gradients(mg.linalg.eigvalsh, a, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [True, False])
def test_svd(shape, full):
    a = normal(*shape)
    ours, theirs = mg.linalg.svd(mg.asarray(a), full_matrices=full), np.linalg.svd(a, full_matrices=full)
    assert [t.shape for t in ours] == [t.shape for t in theirs]
    u, s, vh = (t.numpy_copy() for t in ours)
    np.testing.assert_allclose(s, theirs.S, rtol=1e-10)
    count = s.shape[-1]
    np.testing.assert_allclose((u[..., :count] * s[..., None, :]) @ vh[..., :count, :], a, atol=1e-12)
    for square in (turned(u) @ u, vh @ turned(vh)):
        np.testing.assert_allclose(square, np.broadcast_to(np.eye(square.shape[-1]), square.shape), atol=1e-12)
    assert_same(mg.linalg.svdvals(mg.asarray(a)), theirs.S)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SMOOTH)
def test_gradients_of_factors(shape):
    a = normal(*shape)
    for function in (
        lambda x: tuple(mg.linalg.svd(x, full_matrices=False)),
        mg.linalg.svdvals,
        lambda x: tuple(mg.linalg.qr(x)),
        mg.linalg.pinv,
    ):
        check_gradients(function, a, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(shape, mode):
    a = normal(*shape)
    for ours, theirs in zip(mg.linalg.qr(mg.asarray(a), mode), np.linalg.qr(a, mode)):
        assert_same(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_pinv_and_rank(shape):
    a = normal(*shape)
    assert_same(mg.linalg.pinv(mg.asarray(a)), np.linalg.pinv(a))
    # The oldest NumPy that we support refuses an empty matrix. Its rank is 0.
    rank = np.linalg.matrix_rank(a) if a.size else np.zeros(shape[:-2], int)
    assert mg.linalg.matrix_rank(mg.asarray(a)).tolist() == rank.tolist()


def test_pinv_and_rank_of_singular_matrices():
    a = normal(4, 2) @ normal(2, 3)
    x = mg.asarray(a)
    assert_same(mg.linalg.pinv(x), np.linalg.pinv(a, rcond=1e-12))
    assert mg.linalg.matrix_rank(x).item() == 2 and mg.linalg.matrix_rank(x * 0).item() == 0
    stack = mg.stack([mg.diag(mg.asarray([1.0, 0.1])), mg.diag(mg.asarray([1.0, 0.1]))])
    shares = mg.asarray([0.5, 0.01])
    assert mg.linalg.matrix_rank(stack, rtol=shares).tolist() == [1, 2]
    np.testing.assert_allclose(mg.diagonal(mg.linalg.pinv(stack, rtol=shares)).numpy(), [[1, 0], [1, 10]], rtol=1e-6)
    # Along matrices of rank 2, the derivative is that of the function.
    left, right = normal(4, 2), normal(2, 3)
    check_gradients(lambda p, q: mg.linalg.pinv(p @ q, rtol=1e-9), left, right, rtol=1e-5)


def test_gradients_where_singular_values_are_equal():
    """The inverse of the identity has a derivative, although the vectors of the factors have none."""
    direction = normal(3, 3)
    found = mg.jvp(mg.linalg.pinv, (mg.eye(3, dtype=mg.float64),), (mg.asarray(direction),))[1]
    np.testing.assert_allclose(found.numpy(), -direction, atol=1e-12)
    for function in (mg.linalg.svdvals, mg.linalg.eigvalsh):
        slope = mg.grad(lambda x, f=function: f(x).sum())(mg.eye(3, dtype=mg.float64))
        np.testing.assert_allclose(slope.numpy(), np.eye(3), atol=1e-12)


@pytest.mark.parametrize("left, right", [((4, 2), (4,)), ((4, 2), (4, 3)), ((2, 4), (2,)), ((3, 3), (3, 1))])
def test_lstsq(left, right):
    a, b = normal(*left), normal(*right)
    ours, theirs = mg.linalg.lstsq(mg.asarray(a), mg.asarray(b)), np.linalg.lstsq(a, b, rcond=None)
    assert_same(ours.solution, theirs[0])
    residuals = ((a @ theirs[0] - b) ** 2).sum(0, keepdims=b.ndim == 1)
    assert_same(ours.residuals, residuals)
    assert ours.rank.item() == theirs[2]
    assert_same(ours.singular_values, theirs[3])
    check_gradients(lambda x, y: mg.linalg.lstsq(x, y).solution, a, b, rtol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, -1, -3])
def test_matrix_power(n):
    a = normal(2, 3, 3) + 3 * np.eye(3)
    assert_same(mg.linalg.matrix_power(mg.asarray(a), n), np.linalg.matrix_power(a, n), rtol=1e-8)
    check_gradients(lambda x: mg.linalg.matrix_power(x, n), a, rtol=1e-5)
    integers = np.array([[1, 1], [0, 1]])
    if n >= 0:
        assert mg.linalg.matrix_power(mg.asarray(integers), n).tolist() == np.linalg.matrix_power(integers, n).tolist()


def test_cross():
    a, b = normal(2, 3), normal(3)
    assert_same(mg.linalg.cross(mg.asarray(a), mg.asarray(b)), np.cross(a, b))
    assert_same(mg.linalg.cross(mg.asarray(a.T), mg.asarray(a.T[:, ::-1].copy()), axis=0), np.cross(a, a[::-1]).T)
    check_gradients(mg.linalg.cross, a, b)


FUNCTIONS = {
    "eigh": lambda x: mg.linalg.eigh(x + x.mT),
    "svd": lambda x: mg.linalg.svd(x, full_matrices=False),
    "qr": mg.linalg.qr,
    "pinv": mg.linalg.pinv,
    "matrix_rank": mg.linalg.matrix_rank,
    "matrix_power": lambda x: mg.linalg.matrix_power(x, 3),
    "lstsq": lambda x: mg.linalg.lstsq(x[:, :2], x[:, 2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors_under_jit_vmap_and_jvp(name):
    function, a = FUNCTIONS[name], normal(4, 3, 3)
    expected = [np.stack(parts) for parts in zip(*[
        [t.numpy() for t in (out if isinstance(out, tuple) else (out,))] for out in map(function, map(mg.asarray, a))
    ])]
    for mode in (mg.vmap(function), mg.jit(mg.vmap(function))):
        out = mode(mg.asarray(a))
        for ours, theirs in zip(out if isinstance(out, tuple) else (out,), expected):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-10)
    if name != "matrix_rank":
        def total(x):
            return mg.abs(out[0] if isinstance(out := function(x), tuple) else out).sum()

        direction = mg.asarray(normal(3, 3))
        slope = mg.jvp(total, (mg.asarray(a[0]),), (direction,))[1].item()
        np.testing.assert_allclose(slope, (mg.grad(total)(mg.asarray(a[0])) * direction).sum().item(), rtol=1e-8)


def test_factors_in_other_dtypes():
    for dtype, wanted in (("float16", "float16"), ("float32", "float32"), ("int32", "float32")):
        x = mg.asarray([[2, 1], [1, 3]]).astype(dtype)
        for function in (mg.linalg.eigvalsh, mg.linalg.svdvals, mg.linalg.pinv, lambda x: mg.linalg.qr(x).Q):
            assert function(x).dtype == wanted


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mg.linalg.eigh(mg.ones((2, 3))), ShapeError, r"eigh: a square matrix is needed .*\(2, 3\)"),
        (lambda: mg.linalg.svd(mg.ones(3)), ShapeError, "svd: a matrix has two dimensions"),
        (lambda: mg.linalg.qr(mg.ones(3)), ShapeError, "qr: a matrix has two dimensions"),
        (lambda: mg.linalg.qr(mg.eye(2), "full"), ConversionError, "qr: mode is 'reduced' or 'complete', not 'full'"),
        (lambda: mg.linalg.pinv(mg.ones(3)), ShapeError, "pinv: a matrix has two dimensions"),
        (lambda: mg.linalg.svd(mg.full((2, 2), mg.nan)), MatrixError, "svd: the singular values .* were not found"),
        (lambda: mg.linalg.lstsq(mg.ones((3, 2)), mg.ones(2)), ShapeError, r"lstsq: the matrix has 3 rows, and y .*2,"),
        (lambda: mg.linalg.matrix_power(mg.ones((2, 3)), 2), ShapeError, "matrix_power: a square matrix"),
        (lambda: mg.linalg.matrix_power(mg.eye(2), 0.5), ConversionError, "matrix_power: n is an integer, not 0.5"),
        (lambda: mg.linalg.cross(mg.ones(2), mg.ones(2)), ShapeError, "cross: vectors have three elements, not 2"),
    ],
)
def test_wrong_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_vectors_that_are_not_unique_have_no_gradient():
    x = mg.asarray(normal(4, 2), requires_grad=True)
    for factors in (mg.linalg.qr(x, mode="complete"), mg.linalg.svd(x)):
        with pytest.raises(GradError, match=r"qr: the complete factors .* have no gradient(.|\n)*full_matrices=False"):
            factors[0].sum().backward()
