"""Linear algebra: `solve`, `cholesky` and `slogdet` are primitives, because LAPACK computes them; the rest is composed.

The last two dimensions of a tensor are a matrix, and the dimensions before them a stack of matrices.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.programs import in_programs
from ..core.tensor import Tensor
from ..support.errors import AxisError, ConversionError, ShapeError
from ..support.table import counted
from ..support.words import shown, whole
from .composite import composed
from .contract import matmul
from .creation import eye, tril, triu
from .declare import broadcast_shapes, declare, normal_axes, normal_axis
from .elementwise import abs, astype, exp, multiply, to_float
from .factors import check_square, lower_half, svdvals
from .joining import roll
from .reduce import max, min, sum, vector_norm
from .view import broadcast_to, expand_dims, matrix_transpose, moveaxis, raw_slice, reshape

MANY = 4096  # elements of small matrices, whose determinants are worth a program

# The primitives -----------------------------------------------------------------------------------------------------


def _infer_solve(x: Any, y: Any) -> Any:
    check_square("solve", x)
    if len(y.shape) < 2 or y.shape[-2] != x.shape[-1]:
        raise ShapeError(
            f"solve: shapes {x.shape} and {y.shape} do not go together: the matrix has {counted(x.shape[-1], 'row')}",
            expect=f"{counted(x.shape[-1], 'row')} on the right too",
        )
    stack = broadcast_shapes("solve", [x.shape[:-2], y.shape[:-2]])
    return (*stack, *y.shape[-2:]), P.solve.common_dtype((x, y))


def _infer_cholesky(x: Any) -> Any:
    check_square("cholesky", x)
    return x.shape, P.cholesky.common_dtype((x,))


def _infer_slogdet(x: Any) -> Any:
    check_square("slogdet", x)
    return (*x.shape[:-2], 2), P.slogdet.common_dtype((x,))


def _solve_forward(primals: Any, tangents: Any, out: Any) -> Any:
    """x dz = dy - dx z."""
    x, (dx, dy) = primals[0], tangents
    if dx is not None:
        dy = -matmul(dx, out) if dy is None else dy - matmul(dx, out)
    return P.solve.apply(x, dy)


def _of_cholesky(g: Any, out: Any) -> Any:
    """L dLᵀ + dL Lᵀ = dA, solved for dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ keeps the lower triangle and half the diagonal.

    The rule is the transpose of that map.  Only the lower triangle of A is read; the upper one is taken to be equal.
    """
    turned = matrix_transpose(out)
    middle = lower_half(matmul(turned, g))
    inner = matrix_transpose(P.solve.apply(turned, middle))
    both = P.solve.apply(turned, inner)  # L⁻ᵀ middleᵀ L⁻¹
    return lower_half(both + matrix_transpose(both))


def _of_slogdet(g: Any, x: Any) -> Any:
    """d log|det A| = tr(A⁻¹ dA); the sign has no derivative."""
    return matrix_transpose(inv(x)) * reshape(g[..., 1], (*g.shape[:-1], 1, 1))


for _op in (
    Primitive(
        "solve", "contract", ("x", "y"), _infer_solve, domain="float", formula=r"x^{-1} y", jvp=_solve_forward,
        rules={"x": lambda g, x, out: -matmul(P.solve.apply(matrix_transpose(x), g), matrix_transpose(out)),
               "y": lambda g, x: P.solve.apply(matrix_transpose(x), g)},
        local={
            "x": r"-x^{-\mathsf T}\,\partial\mathrm{out}\,(x^{-1}y)^{\mathsf T}",
            "y": r"x^{-\mathsf T}\,\partial\mathrm{out}",
        },
    ),
    Primitive("cholesky", "contract", ("x",), _infer_cholesky, domain="float", rules={"x": _of_cholesky},
              formula=r"L : L L^{\mathsf T} = x"),
    Primitive("slogdet", "contract", ("x",), _infer_slogdet, domain="float", rules={"x": _of_slogdet},
              formula=r"(\operatorname{sign} \det x,\ \ln|\det x|)", local={"x": r"(0,\ x^{-\mathsf T})"}),
):
    declare(_op)


# Equations ----------------------------------------------------------------------------------------------------------


def solve(x: Tensor, y: Tensor) -> Tensor:
    """The z for which x @ z = y, where y is a vector or a matrix (or a stack of matrices).

    >>> mg.linalg.solve(mg.asarray([[2.0, 0.0], [0.0, 4.0]]), mg.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    check_square("solve", x)
    if y.ndim != 1:
        return P.solve.apply(x, y)  # type: ignore[no-any-return]
    out = P.solve.apply(x, reshape(y, (y.size, 1)))
    return reshape(out, out.shape[:-1])


@composed
def solve_triangular(x: Tensor, y: Tensor, upper: bool = False) -> Tensor:
    """The z for which x @ z = y, where only the lower (or upper) triangle of x is read.

    >>> mg.linalg.solve_triangular(mg.asarray([[2.0, 9.0], [1.0, 4.0]]), mg.asarray([2.0, 5.0])).tolist()
    [1.0, 1.0]
    """
    check_square("solve_triangular", x)
    return solve(triu(x) if upper else tril(x), y)


@composed
def inv(x: Tensor) -> Tensor:
    """The inverse matrix.  To multiply by it, `solve` is faster and more accurate.

    >>> mg.linalg.inv(mg.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    check_square("inv", x)
    dtype = x.dtype if x.dtype.kind == "f" else dtypes.default_float
    return P.solve.apply(x, eye(x.shape[-1], dtype=dtype, device=x.device))  # type: ignore[no-any-return]


def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular L for which L @ L.mT = x, of a symmetric and positive definite matrix; or L.mT.

    If x is not quite symmetric, the mean of x and its transpose is used, so the gradient is symmetric.

    >>> mg.linalg.cholesky(mg.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    check_square("cholesky", x)
    lower: Tensor = P.cholesky.apply((x + matrix_transpose(x)) * 0.5)
    return matrix_transpose(lower) if upper else lower


class SignAndLog(NamedTuple):
    """A number as its sign and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(x: Tensor) -> SignAndLog:
    """The sign of the determinant, and the logarithm of its size, which do not overflow or vanish.

    >>> sign, log_size = mg.linalg.slogdet(mg.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.item(), log_size.item()
    (-1.0, 0.0)
    """
    both = P.slogdet.apply(x)
    return SignAndLog(both[..., 0], both[..., 1])


@composed
def det(x: Tensor) -> Tensor:
    """The determinant.

    Its gradient, det(x) times the inverse transposed, needs a matrix that is not singular.  Large stacks of matrices
    with two or three rows need none: their determinants are sums of products.

    >>> mg.linalg.det(mg.asarray([[2.0, 0.0], [0.0, 4.0]])).round().item()
    8.0
    """
    if x.shape[-2:] in ((2, 2), (3, 3)) and x.dtype.kind == "f" and x.size >= MANY:
        return _in_program(x)
    sign, log_size = slogdet(x)
    return multiply(sign, exp(log_size))


def _by_products(x: Tensor) -> Tensor:
    """Determinants of 2 or 3 rows from products of the elements, in float64: faster than eliminations."""
    n = x.shape[-1]
    wide = [[astype(raw_slice(x, index=(..., i, j)), dtypes.float64) for j in range(n)] for i in range(n)]
    if n == 2:
        (a, b), (c, d) = wide
        return astype(a * d - b * c, x.dtype)
    first, (d, e, f), (g, h, i) = wide
    minors = e * i - f * h, f * g - d * i, d * h - e * g
    return astype(first[0] * minors[0] + first[1] * minors[1] + first[2] * minors[2], x.dtype)


_in_program = in_programs(_by_products, MANY)


@composed
def matrix_power(x: Tensor, n: int) -> Tensor:
    """A square matrix to the power of an integer: a product of `n` factors, or of inverses if `n` is negative.

    >>> mg.linalg.matrix_power(mg.asarray([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    check_square("matrix_power", x)
    if (count := whole(n)) is None:
        raise ConversionError(f"matrix_power: n is an integer, not {shown(n)}")
    power = x if count > 0 else inv(x) if count else broadcast_to(eye(x.shape[-1], device=x.device), x.shape)
    out, count = (None if count else astype(power, x.dtype)), count if count > 0 else -count
    while count:  # the product of x, x², x⁴, ... for the bits of n
        if count % 2:
            out = power if out is None else matmul(out, power)
        count //= 2
        power = matmul(power, power) if count else power
    return out.copy() if out is x else out  # type: ignore[return-value]


@composed
def cross(x: Tensor, y: Tensor, axis: int = -1) -> Tensor:
    """The cross product of vectors with three elements along `axis`: orthogonal to both.

    >>> mg.linalg.cross(mg.asarray([1.0, 0.0, 0.0]), mg.asarray([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    x, y = (moveaxis(t, normal_axis("cross", axis, t.ndim), -1) for t in (x, y))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError(f"cross: vectors have three elements, not {x.shape[-1]} and {y.shape[-1]} along axis {axis}")
    out = roll(x, -1, -1) * roll(y, 1, -1) - roll(x, 1, -1) * roll(y, -1, -1)
    return moveaxis(out, -1, axis)


# Norms --------------------------------------------------------------------------------------------------------------


@composed
def norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of all elements, or of the vectors along one axis, or of the matrices along two.

    `ord` is as in `vector_norm` or `matrix_norm`; without it, the root of the sum of squares.

    >>> mg.linalg.norm(mg.asarray([3.0, 4.0])).item()
    5.0
    >>> mg.linalg.norm(mg.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    if ord is None:
        return vector_norm(x, axis, 2, keepdims)
    axes = normal_axes("norm", axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axes, ord, keepdims)
    if len(axes) != 2:
        raise AxisError(
            f"norm: ord={ord!r} is for vectors or matrices, not for shape {x.shape} along axes {axes}",
            hint="give axis=, or use mg.linalg.vector_norm for all elements as one vector",
        )
    return _matrix_norm(x, ord, axes, keepdims)


@composed
def matrix_norm(x: Tensor, ord: Any = "fro", keepdims: bool = False) -> Tensor:
    """The norm of each matrix of a stack: "fro" (the root of the sum of squares), 1 and inf (the largest sum of sizes
    in a column and in a row), -1 and -inf (the smallest), 2, -2 and "nuc" (the largest, the smallest and the sum of the
    singular values).

    >>> mg.linalg.matrix_norm(mg.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: a matrix has two dimensions, and this tensor has shape {x.shape}")
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


def _matrix_norm(x: Tensor, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if ord == "fro":
        return vector_norm(x, axes, 2, keepdims)
    if ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(to_float(x), axes, (-2, -1)))
        out = sum(values, -1) if ord == "nuc" else (max if ord > 0 else min)(values, -1)
        return expand_dims(out, sorted(axes)) if keepdims else out
    if ord not in (1, -1, math.inf, -math.inf):
        raise ConversionError(
            f"matrix_norm: there is no ord {ord!r}", expect="'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    summed, rest = axes if ord in (1, -1) else axes[::-1]
    sums = sum(abs(to_float(x)), summed, keepdims=True)
    out = (max if ord > 0 else min)(sums, rest, True)
    return out if keepdims else out.squeeze(axes)
