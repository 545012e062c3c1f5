"""Factors of matrices: `eigh`, `svd`, `qr` and `pinv` are primitives, because LAPACK computes them.

A primitive has one result, so the factors are stacked: the eigenvalues (or singular values) as the first row, below
them the vectors as columns.  Where two eigenvalues or singular values are equal, their vectors are not unique and have
no derivative: the part of a gradient that flows through the choice between such vectors is taken to be 0.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor
from ..support.errors import ConversionError, GradError, ShapeError
from ..support.table import counted
from .composite import composed
from .contract import matmul
from .creation import eye, tril
from .declare import broadcast_shapes, declare
from .elementwise import astype, divide, equal, greater, to_float, where
from .joining import concat
from .reduce import count_nonzero, max, sum
from .view import expand_dims, matrix_transpose

# The primitives -----------------------------------------------------------------------------------------------------


def check_square(name: str, x: Any) -> None:
    """Raise an error unless x is a square matrix, or a stack of them."""
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: a square matrix is needed (or a stack of them), not shape {x.shape}")


def _check_matrix(name: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: a matrix has two dimensions, and this tensor has shape {x.shape}")


def _infer_eigh(x: Any) -> Any:
    check_square("eigh", x)
    return (*x.shape[:-2], x.shape[-1] + 1, x.shape[-1]), P.eigh.common_dtype((x,))


def _infer_svd(x: Any) -> Any:
    rows, columns = x.shape[-2:]
    return (*x.shape[:-2], 1 + rows + columns, min(rows, columns)), P.svd.common_dtype((x,))


def _infer_qr(x: Any, complete: bool) -> Any:
    rows, columns = x.shape[-2:]
    return (*x.shape[:-2], rows + columns, rows if complete else columns), P.qr.common_dtype((x,))


def _infer_pinv(x: Any, rtol: Any) -> Any:
    stack = broadcast_shapes("pinv", [x.shape[:-2], rtol.shape[:-2]])
    return (*stack, x.shape[-1], x.shape[-2]), P.pinv.common_dtype((x,))


def lower_half(x: Any) -> Any:
    """The lower triangle, the diagonal halved.

    >>> lower_half(mg.ones((2, 2))).tolist()
    [[0.5, 0.0], [1.0, 0.5]]
    """
    return (tril(x) + tril(x, -1)) * 0.5


def _inverse(x: Any) -> Any:
    """1 / x, and 0 where x is 0."""
    nothing = equal(x, 0)
    return where(nothing, 0.0, divide(1.0, where(nothing, 1.0, x)))


def _on_diagonal(row: Any) -> Any:
    """Matrices with this last row (of a stack of matrices with one row) as diagonal."""
    return where(eye(row.shape[-1], dtype=dtypes.bool, device=row.device), row, 0.0)


def _of_eigh(g: Any, out: Any) -> Any:
    """x = V Λ Vᵀ: with F = 1 / (λⱼ - λᵢ) and 0 on the diagonal, the gradient is V (diag(gΛ) + F ∘ Vᵀ gV) Vᵀ.

    Only the lower triangle of x is read; the upper one is taken to be equal.
    """
    values, vectors = out[..., :1, :], out[..., 1:, :]
    turned = matrix_transpose(vectors)
    inner = _inverse(values - matrix_transpose(values)) * matmul(turned, g[..., 1:, :])
    whole = matmul(matmul(vectors, _on_diagonal(g[..., :1, :]) + inner), turned)
    return lower_half(whole + matrix_transpose(whole))


def _of_svd(g: Any, out: Any, node: Any) -> Any:
    """x = U S Vᵀ: the gradients of U and V rotate vectors within their spaces, and, if x is not square, out of them."""
    rows, columns = node.inputs[0].shape[-2:]
    s, u, v = out[..., :1, :], out[..., 1 : 1 + rows, :], out[..., 1 + rows :, :]
    gs, gu, gv = g[..., :1, :], g[..., 1 : 1 + rows, :], g[..., 1 + rows :, :]
    s_column = matrix_transpose(s)
    ratio = _inverse((s - s_column) * (s + s_column))

    def turn(vectors: Any, gradient: Any) -> Any:
        product = matmul(matrix_transpose(vectors), gradient)
        return (product - matrix_transpose(product)) * ratio

    def outside(vectors: Any, gradient: Any) -> Any:
        return (gradient - matmul(vectors, matmul(matrix_transpose(vectors), gradient))) * _inverse(s)

    middle = turn(u, gu) * s + s_column * turn(v, gv) + _on_diagonal(gs)
    total = matmul(matmul(u, middle), matrix_transpose(v))
    if rows > columns:
        total = total + matmul(outside(u, gu), matrix_transpose(v))
    if columns > rows:
        total = total + matmul(u, matrix_transpose(outside(v, gv)))
    return total


def _of_qr(g: Any, out: Any, node: Any) -> Any:
    """x = Q R: the gradient is (gQ + Q M) R⁻ᵀ, where M is the lower triangle of R gRᵀ - gQᵀ Q, made symmetric."""
    rows, columns = node.inputs[0].shape[-2:]
    if node.attrs["complete"]:
        raise GradError(
            f"qr: the complete factors of a matrix of shape {(rows, columns)} have no gradient: they are not unique",
            hint="mode='reduced' in qr, full_matrices=False in svd",
        )
    q, r_turned, gq = out[..., :rows, :], out[..., rows:, :], g[..., :rows, :]
    product = matmul(matrix_transpose(r_turned), g[..., rows:, :]) - matmul(matrix_transpose(gq), q)
    middle = tril(product) + matrix_transpose(tril(product, -1))
    inner = matrix_transpose(gq + matmul(q, middle))
    return matrix_transpose(P.solve.apply(matrix_transpose(r_turned), inner))


def _of_pinv(g: Any, x: Any, out: Any) -> Any:
    """The derivative at a fixed rank, of P = x⁺: -P dx P + P Pᵀ dxᵀ (1 - x P) + (1 - P x) dxᵀ Pᵀ P."""
    p, p_turned, g_turned = out, matrix_transpose(out), matrix_transpose(g)
    left = g_turned - matmul(x, matmul(p, g_turned))
    right = g_turned - matmul(matmul(g_turned, p), x)
    return (
        matmul(left, matmul(p, p_turned)) + matmul(matmul(p_turned, p), right)
        - matmul(matmul(p_turned, g), p_turned)
    )


for _op in (
    Primitive("eigh", "contract", ("x",), _infer_eigh, domain="float", rules={"x": _of_eigh},
              formula=r"(\lambda,\ V) : V \Lambda V^{\mathsf T} = x"),
    Primitive("svd", "contract", ("x",), _infer_svd, domain="float", rules={"x": _of_svd},
              formula=r"(s,\ U,\ V) : U S V^{\mathsf T} = x"),
    Primitive("qr", "contract", ("x",), _infer_qr, domain="float", rules={"x": _of_qr},
              formula=r"(Q,\ R^{\mathsf T}) : Q R = x"),
    Primitive("pinv", "contract", ("x", "rtol"), _infer_pinv, domain="float", promotes=("x",), rules={"x": _of_pinv},
              formula=r"x^{+}"),
):
    declare(_op)


# The functions ------------------------------------------------------------------------------------------------------


class Eigen(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SingularValues(NamedTuple):
    """The factors U, S and V transposed of a matrix; S is the vector of the singular values, largest first."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Orthogonal(NamedTuple):
    """The factors of a matrix: Q with orthogonal columns, and R, an upper triangle."""

    Q: Tensor
    R: Tensor


class LeastSquares(NamedTuple):
    """The solution of a system of equations, the sum of squares of its errors, the rank, and the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _symmetric_eigen(x: Any) -> Tensor:
    check_square("eigh", x)
    return P.eigh.apply((x + matrix_transpose(x)) * 0.5)  # type: ignore[no-any-return]


@composed
def eigh(x: Tensor) -> Eigen:
    """The eigenvalues of a symmetric matrix, smallest first, and the eigenvectors as columns.

    If x is not quite symmetric, the mean of x and its transpose is used, so the gradient is symmetric.

    >>> x = mg.asarray([[0.0, 1.0], [1.0, 0.0]])
    >>> values, vectors = mg.linalg.eigh(x)
    >>> values.round(3).tolist(), bool(mg.allclose(x @ vectors, vectors * values, atol=1e-6))
    ([-1.0, 1.0], True)
    """
    both = _symmetric_eigen(x)
    return Eigen(both[..., 0, :], both[..., 1:, :])


@composed
def eigvalsh(x: Tensor) -> Tensor:
    """The eigenvalues of a symmetric matrix, smallest first.

    >>> mg.linalg.eigvalsh(mg.asarray([[3.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 3.0]
    """
    return _symmetric_eigen(x)[..., 0, :]


@composed
def svd(x: Tensor, full_matrices: bool = True) -> SingularValues:
    """The factors U, S and Vh of x, where S are the singular values: x = U[:, :k] @ diag(S) @ Vh[:k], k = len(S).

    With `full_matrices`, U and Vh are square.  The vectors that are added to a matrix that is not square are not
    unique and have no gradient; with `full_matrices=False` the factors have gradients.

    >>> u, s, vh = mg.linalg.svd(mg.asarray([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), full_matrices=False)
    >>> u.shape, s.tolist(), vh.shape
    ((3, 2), [3.0, 2.0], (2, 2))
    """
    _check_matrix("svd", x)
    out = P.svd.apply(x)
    rows, count = x.shape[-2], out.shape[-1]
    u, v = out[..., 1 : 1 + rows, :], out[..., 1 + rows :, :]
    if full_matrices:
        u, v = (t if t.shape[-2] == count else concat([t, qr(t, "complete").Q[..., count:]], axis=-1) for t in (u, v))
    return SingularValues(u, out[..., 0, :], matrix_transpose(v))


@composed
def svdvals(x: Tensor) -> Tensor:
    """The singular values, largest first.

    >>> mg.linalg.svdvals(mg.asarray([[0.0, 2.0], [3.0, 0.0]])).tolist()
    [3.0, 2.0]
    """
    _check_matrix("svdvals", x)
    return P.svd.apply(x)[..., 0, :]  # type: ignore[no-any-return]


@composed
def qr(x: Tensor, mode: str = "reduced") -> Orthogonal:
    """The factors Q and R of x = Q @ R: Q has orthogonal columns of length 1, R is an upper triangle.

    With `mode="complete"`, Q is square.  The gradient needs independent columns.

    >>> q, r = mg.linalg.qr(mg.asarray([[0.0, 2.0], [3.0, 0.0]]))
    >>> mg.abs(q).tolist(), mg.abs(r).tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]])
    """
    _check_matrix("qr", x)
    if mode not in ("reduced", "complete"):
        raise ConversionError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    rows, columns = x.shape[-2:]
    square = x[..., :rows]  # all of a high matrix
    out = P.qr.apply(square, complete=mode == "complete" and rows > columns)
    q, r = out[..., :rows, :], matrix_transpose(out[..., rows:, :])
    return Orthogonal(q, concat([r, matmul(matrix_transpose(q), x[..., rows:])], axis=-1) if columns > rows else r)


def _tolerance(x: Tensor, rtol: Any) -> Tensor:
    """The smallest share of the largest singular value that counts as not 0, as a stack of 1 by 1 matrices."""
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * dtypes.finfo(x.dtype).eps
    return expand_dims(astype(as_tensor(rtol, x.device), x.dtype), (-2, -1))


@composed
def pinv(x: Tensor, rtol: Any = None) -> Tensor:
    """The pseudo-inverse: of a regular matrix the inverse; of others `pinv(x) @ y` is the best z for x @ z = y.

    Singular values up to `rtol` times the largest one count as 0.  The gradient is that at a fixed rank.

    >>> mg.linalg.pinv(mg.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    _check_matrix("pinv", x)
    x = to_float(x)
    if not x.size:
        return matrix_transpose(x).copy()
    return P.pinv.apply(x, _tolerance(x, rtol))  # type: ignore[no-any-return]


@composed
def matrix_rank(x: Tensor, rtol: Any = None) -> Tensor:
    """The number of singular values above `rtol` times the largest one.

    >>> mg.linalg.matrix_rank(mg.ones((3, 3))).item()
    1
    """
    _check_matrix("matrix_rank", x)
    x = to_float(x)
    values = svdvals(x)
    if not x.size:
        return count_nonzero(values, axis=-1)
    return count_nonzero(greater(values, max(values, -1, keepdims=True) * _tolerance(x, rtol)[..., 0]), axis=-1)


@composed
def lstsq(x: Tensor, y: Tensor, rtol: Any = None) -> LeastSquares:
    """The z for which the sum of squares of x @ z - y is smallest (and z itself, if there are several).

    The results have the names of PyTorch's function and the order of NumPy's.

    >>> x = mg.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> mg.linalg.lstsq(x, mg.asarray([1.0, 3.0, 5.0])).solution.round(3).tolist()
    [1.0, 2.0]
    """
    _check_matrix("lstsq", x)
    x = to_float(x)
    columns = expand_dims(y, -1) if y.ndim == 1 else y
    if y.ndim < 1 or columns.shape[-2] != x.shape[-2]:
        raise ShapeError(f"lstsq: the matrix has {counted(x.shape[-2], 'row')}, and y has shape {y.shape}")
    solution = matmul(pinv(x, rtol), columns)
    off = matmul(x, solution) - columns
    solution = solution[..., 0] if y.ndim == 1 else solution
    return LeastSquares(solution, sum(off * off, -2), matrix_rank(x, rtol), svdvals(x))
