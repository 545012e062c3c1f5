"""The kernels on matrices, written once for numpy and cupy: products, equations, factors.  The last two dimensions are
the matrix, those before count the matrices of a stack."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.dtypes import float16
from ..core.errors import MatrixError

Kernel = Callable[..., Any]
LARGE = 1 << 15  # elements of a product from which finding memory for it is worth asking


def matrix_kernels(xp: Any, empty: Any) -> dict[str, Kernel]:
    """The kernels made of `xp`, by name of the primitive."""
    return {kernel.__name__: kernel for kernel in (matmul_kernel(xp, empty), *equation_kernels(xp))}


def matmul_kernel(xp: Any, empty: Any) -> Kernel:
    """The matrix product.  `empty` finds the memory for a large one.

    >>> matmul_kernel(np, np.empty)(np.ones((2, 3)), np.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    half_is_slow = xp is np  # no BLAS on a CPU has it

    def matmul(x: Any, y: Any, out: Any = None) -> Any:
        if out is not None:  # which may be x: no product in place without a copy
            xp.copyto(out, matmul(x, y), casting="unsafe")
            return out
        if half_is_slow and x.dtype is float16:
            return matmul(x.astype(np.float32), y.astype(np.float32)).astype(float16)
        if y.ndim != 2:
            return xp.matmul(x, y)
        if x.ndim == 2:
            return product(x, y)
        rows = x.shape[:-1]  # one large product, where the array library would loop over small ones
        return product(x.reshape(math.prod(rows), x.shape[-1]), y).reshape(*rows, y.shape[1])

    def product(x: Any, y: Any) -> Any:
        shape = (x.shape[0], y.shape[1])
        if shape[0] * shape[1] < LARGE:
            return x.dot(y)  # the same as matmul, in half the time for small ones
        return x.dot(y, empty(shape, x.dtype))

    return matmul


def equation_kernels(xp: Any) -> list[Kernel]:
    """`solve`, `cholesky` and `slogdet`."""

    def solve(x: Any, y: Any) -> Any:
        if x.shape[:-2] != y.shape[:-2]:
            stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
            x, y = xp.broadcast_to(x, stack + x.shape[-2:]), xp.broadcast_to(y, stack + y.shape[-2:])
        try:
            return in_lapack_dtype(xp, xp.linalg.solve, x, y)
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                f"solve: {_first(xp, _singular(xp, x))} is singular: its rows are not independent, so there is no "
                "solution, or there are many",
                hint="x + 1e-6 * mg.eye(n) is a matrix close by that may have an inverse",
            ) from error

    def cholesky(x: Any) -> Any:
        try:
            return in_lapack_dtype(xp, xp.linalg.cholesky, x)
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                f"cholesky: {_first(xp, _not_positive(xp, x))} is not positive definite",
                expect="a symmetric matrix whose eigenvalues are all positive, such as A @ A.mT + 1e-6 * mg.eye(n)",
            ) from error

    def slogdet(x: Any) -> Any:
        def sign_and_log(x: Any) -> Any:
            return xp.stack(xp.linalg.slogdet(x), axis=-1)

        return in_lapack_dtype(xp, sign_and_log, x)

    return [solve, cholesky, slogdet]


def in_lapack_dtype(xp: Any, function: Kernel, *arrays: Any) -> Any:
    """Call a function that knows float32 and float64; half precision is computed in float32.

    >>> in_lapack_dtype(np, np.linalg.cholesky, np.full((1, 1), 4.0, np.float16))
    array([[2.]], dtype=float16)
    """
    with _raising(xp):
        if arrays[0].dtype is float16:
            return function(*[a.astype(np.float32) for a in arrays]).astype(float16)
        return function(*arrays)


def _raising(xp: Any) -> AbstractContextManager[Any]:
    """CuPy fills the result with nan where NumPy raises, unless it is told to raise too."""
    if xp.__name__ != "cupy":
        return nullcontext()
    import cupyx

    return cupyx.errstate(linalg="raise")  # type: ignore[no-any-return]


def _singular(xp: Any, x: Any) -> Any:
    sign, _ = xp.linalg.slogdet(x.astype(np.float64))
    return sign == 0


def _not_positive(xp: Any, x: Any) -> Any:
    """Which matrices of a stack have no Cholesky factor: found one by one, since this is for a message only."""
    bad = np.zeros(x.shape[:-2], np.bool_)
    for place in np.ndindex(bad.shape):
        try:
            in_lapack_dtype(xp, xp.linalg.cholesky, x[place])
        except np.linalg.LinAlgError:
            bad[place] = True
    return bad


def _first(xp: Any, bad: Any) -> str:
    """Words for the first matrix in a stack that is bad."""
    if bad.ndim == 0:
        return "the matrix"
    found = xp.argwhere(xp.asarray(bad))
    place = ", ".join(str(int(i)) for i in found[0]) if len(found) else "?"
    return f"matrix [{place}] of the stack"
