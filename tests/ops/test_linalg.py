"""Linear algebra: values against NumPy in float64, gradients to second order, errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.linalg import MANY
from minigrad.support.errors import AxisError, ConversionError, MatrixError, ShapeError
from tests.numerical import check_gradients

rng = np.random.default_rng(0)
STACKS = [(3, 3), (2, 3, 3), (2, 1, 2, 2), (1, 1), (0, 0), (0, 2, 2)]


def normal(*shape):
    return rng.standard_normal(shape)


def regular(*shape):
    """Matrices far from singular, of either orientation."""
    return normal(*shape) + 3 * np.eye(shape[-1])[::-1]


def positive(*shape):
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


def assert_same(ours, theirs, rtol=1e-10):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy_copy(), theirs, rtol=rtol, atol=1e-12)


# Equations ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", STACKS)
def test_solve_inv_det_slogdet(shape):
    a, b = regular(*shape), normal(*shape[:-1], 2)
    x, y = mg.asarray(a), mg.asarray(b)
    assert_same(mg.linalg.solve(x, y), np.linalg.solve(a, b))
    assert_same(mg.linalg.inv(x), np.linalg.inv(a))
    assert_same(mg.linalg.det(x), np.linalg.det(a))
    for ours, theirs in zip(mg.linalg.slogdet(x), np.linalg.slogdet(a)):
        assert_same(ours, theirs)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (1, 1)])
@pytest.mark.parametrize("function", [mg.linalg.inv, mg.linalg.det, mg.linalg.slogdet])
def test_gradients_of_functions_of_a_matrix(function, shape):
    check_gradients(function, regular(*shape))


@pytest.mark.parametrize(
    "left, right",
    [((3, 3), (3,)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 1, 2, 2), (3, 2, 2))],
)
def test_solve_of_a_vector_and_of_stacks_that_broadcast(left, right):
    a, b = regular(*left), normal(*right)
    assert_same(mg.linalg.solve(mg.asarray(a), mg.asarray(b)), np.linalg.solve(a, b))
    check_gradients(mg.linalg.solve, a, b)


@pytest.mark.parametrize("shape", STACKS)
def test_cholesky(shape):
    a = positive(*shape)
    lower = np.linalg.cholesky(a)
    assert_same(mg.linalg.cholesky(mg.asarray(a)), lower)
    assert_same(mg.linalg.cholesky(mg.asarray(a), upper=True), np.swapaxes(lower, -1, -2))


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_gradients_of_cholesky(shape):
    a = positive(*shape)
    check_gradients(mg.linalg.cholesky, a, rtol=1e-5)
    x = mg.asarray(a, requires_grad=True)
    weight = mg.asarray(normal(*shape))
    g = mg.gradients((mg.linalg.cholesky(x) * weight).sum(), x).numpy_copy()
    np.testing.assert_allclose(g, np.swapaxes(g, -1, -2), rtol=1e-12)


def test_the_log_likelihood_of_a_normal_distribution():
    """A typical use: Cholesky, or slogdet and solve, give the same value and the same gradients."""
    a, residual = positive(4, 4), normal(4)

    def by_cholesky(covariance, r):
        lower = mg.linalg.cholesky(covariance)
        white = mg.linalg.solve(lower, r)
        return mg.log(mg.diagonal(lower)).sum() * 2.0 + mg.vecdot(white, white)

    def by_determinant(covariance, r):
        return mg.linalg.slogdet(covariance)[1] + mg.vecdot(r, mg.linalg.solve(covariance, r))

    found = []
    for function in (by_cholesky, by_determinant):
        x, r = mg.asarray(a, requires_grad=True), mg.asarray(residual, requires_grad=True)
        value = function(x, r)
        found.append([value.item(), *[g.numpy_copy() for g in mg.gradients(value, [x, r])]])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_linear_algebra_dtypes():
    for dtype, wanted in (("float16", "float16"), ("float32", "float32"), ("float64", "float64"), ("int32", "float32")):
        x = mg.asarray([[2, 1], [1, 3]]).astype(dtype)
        for function in (mg.linalg.inv, mg.linalg.det, mg.linalg.cholesky, mg.linalg.norm):
            assert function(x).dtype == wanted
        assert mg.linalg.solve(x, x).dtype == wanted
        assert abs(mg.linalg.det(x).item() - 5) < 0.02


def test_slogdet_beyond_the_range_of_floats():
    x = mg.eye(400, dtype=mg.float64) * 1e-3
    assert mg.linalg.det(x).item() == 0.0
    assert abs(mg.linalg.slogdet(x)[1].item() - 400 * np.log(1e-3)) < 1e-6
    singular = mg.ones((2, 2))
    assert mg.linalg.det(singular).item() == 0.0
    assert mg.linalg.slogdet(singular)[1].item() == -np.inf


def test_linear_algebra_of_a_stack_under_vmap():
    a, b = regular(4, 3, 3), normal(3)
    out = mg.vmap(mg.linalg.solve, in_axes=(0, None))(mg.asarray(a), mg.asarray(b))
    assert_same(out, np.linalg.solve(a, b))
    assert_same(mg.vmap(mg.linalg.det)(mg.asarray(a)), np.linalg.det(a))


def test_linear_algebra_in_forward_mode():
    a, b, da, db = regular(3, 3), normal(3, 2), normal(3, 3), normal(3, 2)
    z = np.linalg.solve(a, b)
    points, moves = (mg.asarray(a), mg.asarray(b)), (mg.asarray(da), mg.asarray(db))
    assert_same(mg.jvp(mg.linalg.solve, points, moves)[1], np.linalg.solve(a, db - da @ z))
    assert_same(mg.jvp(lambda x: mg.linalg.solve(x, points[1]), points[:1], moves[:1])[1], np.linalg.solve(a, -da @ z))
    assert_same(mg.jvp(lambda y: mg.linalg.solve(points[0], y), points[1:], moves[1:])[1], np.linalg.solve(a, db))
    change = mg.jvp(mg.linalg.det, points[:1], moves[:1])[1]
    assert_same(change, np.linalg.det(a) * np.trace(np.linalg.solve(a, da)))


SINGULAR = np.ones((2, 2))
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])


def stacked(bad):
    return mg.asarray(np.stack([np.eye(2), bad, np.eye(2)])[None])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: mg.linalg.inv(mg.asarray(SINGULAR)), MatrixError, "solve: the matrix is singular"),
        (lambda: mg.linalg.solve(stacked(SINGULAR), mg.ones(2)), MatrixError, r"matrix \[0, 1\] of the stack is si"),
        (lambda: mg.linalg.cholesky(mg.asarray(INDEFINITE)), MatrixError, "the matrix is not positive definite"),
        (lambda: mg.linalg.cholesky(stacked(INDEFINITE)), MatrixError, r"cholesky: matrix \[0, 1\] of the"),
        (lambda: mg.linalg.inv(mg.ones((2, 3))), ShapeError, r"inv: a square matrix is needed .*\(2, 3\)"),
        (lambda: mg.linalg.det(mg.ones(3)), ShapeError, r"^det: a square matrix is needed .*\(3,\)"),
        (lambda: mg.linalg.cholesky(mg.ones((2, 3))), ShapeError, "cholesky: a square matrix"),
        (lambda: mg.linalg.solve(mg.ones((2, 3)), mg.ones(2)), ShapeError, "solve: a square matrix"),
        (lambda: mg.linalg.solve(mg.eye(2), mg.ones(3)), ShapeError, r"\(2, 2\) and \(3, 1\) .* the matrix has 2 rows"),
        (lambda: mg.linalg.solve(mg.eye(2), mg.ones((3, 2))), ShapeError, "the matrix has 2 rows"),
        (lambda: mg.linalg.solve(mg.eye(2), mg.ones(())), ShapeError, "the matrix has 2 rows"),
        (lambda: mg.linalg.norm(mg.ones((2, 2, 2)), ord=1), AxisError, "norm: ord=1 is for vectors or matrices"),
        (lambda: mg.linalg.matrix_norm(mg.ones(2)), ShapeError, "matrix_norm: a matrix has two dimensions"),
        (lambda: mg.linalg.matrix_norm(mg.eye(2), ord=3), ConversionError, "there is no ord 3(.|\n)*'nuc'"),
        (lambda: mg.linalg.vector_norm(mg.ones(2), ord="fro"), ConversionError, "ord is a number, not 'fro'"),
    ],
)
def test_linear_algebra_refuses_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_gradient_of_a_determinant_needs_an_inverse():
    x = mg.asarray(SINGULAR, requires_grad=True)
    with pytest.raises(MatrixError, match="singular"):
        mg.linalg.det(x).backward()


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("jit", [False, True])
def test_determinants_of_large_stacks_of_small_matrices(n, dtype, jit):
    a = np.random.default_rng(0).normal(size=(2, MANY // n, n, n)).astype(dtype)
    a[0, 0] = 1.0
    exact = a.astype("float64")
    det = mg.jit(mg.linalg.det) if jit else mg.linalg.det
    x = mg.asarray(a, requires_grad=True)
    out = det(x)
    assert out.dtype == dtype and out[0, 0].item() == 0.0
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(out.detach().numpy(), np.linalg.det(exact), rtol=tolerance, atol=tolerance)
    out.sum().backward()
    rest = exact[1]
    expected = np.linalg.det(rest)[:, None, None] * np.linalg.inv(rest).swapaxes(1, 2)
    np.testing.assert_allclose(x.grad.numpy()[1], expected, rtol=10 * tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(x.grad.numpy()[0, 0], [[1.0, -1.0], [-1.0, 1.0]] if n == 2 else np.zeros((3, 3)))


# Norms ----------------------------------------------------------------------------------------------------------------

ORDERS = [1, 2, 3, 0.5, 2.5, -1, -2.5, np.inf, -np.inf, 0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis, keepdims", [(0, False), (-1, True), (1, False)])
def test_norms_of_vectors_are_those_of_numpy(order, axis, keepdims):
    a = normal(3, 4)
    assert_same(mg.linalg.norm(mg.asarray(a), order, axis, keepdims), np.linalg.norm(a, order, axis, keepdims))
    ours = mg.linalg.vector_norm(mg.asarray(a), axis=axis, ord=order, keepdims=keepdims)
    assert_same(ours, np.linalg.vector_norm(a, axis=axis, ord=order, keepdims=keepdims))
    check_gradients(lambda x: mg.linalg.norm(x, order, axis, keepdims), a, rtol=1e-5)


def test_norms_of_all_elements():
    a = normal(2, 3, 4)
    assert_same(mg.linalg.norm(mg.asarray(a)), np.linalg.norm(a))
    assert_same(mg.linalg.norm(mg.asarray(a), keepdims=True), np.linalg.norm(a, keepdims=True))
    assert_same(mg.linalg.vector_norm(mg.asarray(a), axis=(0, 2)), np.linalg.vector_norm(a, axis=(0, 2)))
    assert_same(mg.linalg.vector_norm(mg.asarray(a), ord=3), np.linalg.vector_norm(a, ord=3))
    assert_same(mg.linalg.norm(mg.asarray(2.5, dtype="float64")), np.linalg.norm(2.5))
    assert mg.linalg.norm(mg.zeros((0,))).item() == 0.0


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("axis, keepdims", [((0, 1), False), ((2, 0), True), ((-1, -2), False)])
def test_norms_of_matrices_are_those_of_numpy(order, axis, keepdims):
    a = normal(2, 3, 4)
    assert_same(mg.linalg.norm(mg.asarray(a), order, axis, keepdims), np.linalg.norm(a, order, axis, keepdims))
    check_gradients(lambda x: mg.linalg.norm(x, order, axis, keepdims), a)


def test_matrix_norm_of_a_stack():
    a = normal(2, 3, 4)
    for order in ("fro", "nuc", 2, 1, np.inf):
        for keepdims in (False, True):
            ours = mg.linalg.matrix_norm(mg.asarray(a), order, keepdims)
            assert_same(ours, np.linalg.matrix_norm(a, ord=order, keepdims=keepdims))


@pytest.mark.parametrize("order", [1, 2, 3, 1.5, np.inf, -np.inf])
def test_the_gradient_of_a_norm_of_zeros_is_zero(order):
    x = mg.zeros((2, 3), requires_grad=True)
    out = mg.linalg.vector_norm(x, axis=1, ord=order)
    g = mg.gradients(out.sum(), x, create_graph=True)
    assert out.tolist() == [0.0, 0.0] and g.tolist() == [[0.0] * 3] * 2


def test_the_gradient_of_a_norm_beside_a_row_of_zeros():
    x = mg.asarray([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    mg.linalg.norm(x, axis=1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_linalg_namespace():
    for name in mg.linalg.__all__:
        assert getattr(mg.linalg, name).__doc__
    x = mg.ones((2, 3))
    assert mg.linalg.matrix_transpose(x).shape == (3, 2) and mg.linalg.trace(x).item() == 2.0


@pytest.mark.parametrize("upper", [False, True])
def test_a_triangular_system_reads_one_triangle(upper):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3), rng.normal(size=(2, 3, 2))
    found = mg.linalg.solve_triangular(mg.asarray(x), mg.asarray(y), upper).numpy_copy()
    np.testing.assert_allclose(found, np.linalg.solve(np.triu(x) if upper else np.tril(x), y))
    check_gradients(lambda x, y: mg.linalg.solve_triangular(x, y, upper), x, y)
