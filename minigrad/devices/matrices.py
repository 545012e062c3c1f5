"""The kernels on matrices: products, equations, factors.

The last two dimensions are the matrix, those before count the matrices of a stack.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.dtypes import float16
from ..support.errors import MatrixError
from ..support.host import IN_BROWSER
from . import stacks
from .library import Kernel, KernelGroup
from .whole import whole_product

LARGE = 1 << 15  # elements of a product whose memory comes from the device
MANY = 1 << 15  # products of integers from which floats are faster


class MatrixKernels(KernelGroup):
    """`matmul`, `solve`, and the factors of matrices, which `ops` describes."""

    half_is_slow = True  # BLAS on CPUs does not have it
    whole_is_slow = True  # nor integers

    def matmul(self, x: Any, y: Any, out: Any = None) -> Any:
        if out is not None:  # out may be x: no product in place without a copy
            self.xp.copyto(out, self.matmul(x, y), casting="unsafe")
            return out
        if x.dtype is float16 and self.half_is_slow:
            product = self.matmul(x.astype(np.float32), y.astype(np.float32))
            return product.astype(float16)
        if self.whole_is_slow and x.dtype.kind in "iu" and x.size * y.shape[-1] >= MANY:
            return whole_product(self.matmul, x, y)
        if y.ndim != 2:
            if self.xp is np and stacks.multiplies(x.shape, y.shape, x.dtype) and x.dtype == y.dtype:
                shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
                return stacks.product(x, y, self.empty(shape, x.dtype))
            return self.xp.matmul(x, y)
        if x.ndim == 2:
            return self._product(x, y)
        # One large product, where the array library would loop over small ones.
        rows = x.shape[:-1]
        product = self._product(x.reshape(math.prod(rows), x.shape[-1]), y)
        return product.reshape(*rows, y.shape[1])

    def _product(self, x: Any, y: Any) -> Any:
        shape = (x.shape[0], y.shape[1])
        if shape[0] * shape[1] < LARGE:
            return x.dot(y)  # the same as matmul, in half the time for small ones
        return x.dot(y, self.empty(shape, x.dtype))

    def solve(self, x: Any, y: Any) -> Any:
        if x.shape[:-2] != y.shape[:-2]:
            stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
            x = self.xp.broadcast_to(x, stack + x.shape[-2:])
            y = self.xp.broadcast_to(y, stack + y.shape[-2:])
        try:
            return self._of_stacks(stacks.solve, self.xp.linalg.solve, x, y)
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                f"solve: {self._first(self._singular(x))} is singular: its rows are "
                "not independent, so there is no solution, or there are many",
                hint="x + 1e-6 * mg.eye(n) is a nearby matrix that may have an "
                "inverse",
            ) from error

    def cholesky(self, x: Any) -> Any:
        try:
            return self._of_stacks(stacks.cholesky, self.xp.linalg.cholesky, x)
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                f"cholesky: {self._first(self._not_positive(x))} is not positive "
                "definite",
                expect="a symmetric matrix whose eigenvalues are all positive, "
                "such as A @ A.mT + 1e-6 * mg.eye(n)",
            ) from error

    def slogdet(self, x: Any) -> Any:
        def sign_and_log(x: Any) -> Any:
            return self.xp.stack(self.xp.linalg.slogdet(x), axis=-1)

        return self._of_stacks(stacks.slogdet, sign_and_log, x)

    def _of_stacks(self, small: Kernel, function: Kernel, *arrays: Any) -> Any:
        """The result for stacks of small matrices, or that of LAPACK."""
        found = small(*arrays) if self.xp is np else None
        return self._in_lapack_dtype(function, *arrays) if found is None else found

    def eigh(self, x: Any) -> Any:
        def stacked(x: Any) -> Any:
            values, vectors = self.xp.linalg.eigh(x)
            return self.xp.concatenate([values[..., None, :], vectors], axis=-2)

        return self._converging("eigh", stacked, x)

    def svd(self, x: Any) -> Any:
        def stacked(x: Any) -> Any:
            u, s, vh = self.xp.linalg.svd(x, full_matrices=False)
            parts = [s[..., None, :], u, vh.swapaxes(-1, -2)]
            return self.xp.concatenate(parts, axis=-2)

        return self._converging("svd", stacked, x)

    def qr(self, x: Any, complete: bool) -> Any:
        def stacked(x: Any) -> Any:
            q, r = self.xp.linalg.qr(x, mode="complete" if complete else "reduced")
            return self.xp.concatenate([q, r.swapaxes(-1, -2)], axis=-2)

        return self._in_lapack_dtype(stacked, x)

    def pinv(self, x: Any, rtol: Any) -> Any:
        def inverse(x: Any) -> Any:
            return self.xp.linalg.pinv(x, rtol[..., 0, 0])

        stack = np.broadcast_shapes(x.shape[:-2], rtol.shape[:-2])
        x = self.xp.broadcast_to(x, stack + x.shape[-2:])
        return self._converging("pinv", inverse, x)

    def _converging(self, name: str, function: Kernel, x: Any) -> Any:
        try:
            return self._in_lapack_dtype(function, x)
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                f"{name}: the singular values or eigenvalues were not found: {error}",
                expect="finite numbers, as mg.isfinite(x).all() checks",
            ) from error

    def _in_lapack_dtype(self, function: Kernel, *arrays: Any) -> Any:
        """LAPACK has float32 and float64; half precision is computed in float32."""
        with self._raising():
            if arrays[0].dtype is float16:
                singles = [a.astype(np.float32) for a in arrays]
                return function(*singles).astype(float16)
            found = function(*arrays)
        if IN_BROWSER and np.isnan(found).any() and not any(np.isnan(a).any() for a in arrays):
            raise np.linalg.LinAlgError("LAPACK found nan")  # NumPy finds it by flags of the processor elsewhere
        return found

    def _raising(self) -> AbstractContextManager[Any]:
        """A block in which the library raises `LinAlgError`, as NumPy always does."""
        return nullcontext()

    # For messages: the first matrix of a stack that is bad

    def _singular(self, x: Any) -> Any:
        sign, _ = self.xp.linalg.slogdet(x.astype(np.float64))
        return sign == 0

    def _not_positive(self, x: Any) -> Any:
        bad = np.zeros(x.shape[:-2], np.bool_)
        for place in np.ndindex(bad.shape):
            try:
                self._in_lapack_dtype(self.xp.linalg.cholesky, x[place])
            except np.linalg.LinAlgError:
                bad[place] = True
        return bad

    def _first(self, bad: Any) -> str:
        if bad.ndim == 0:
            return "the matrix"
        found = self.xp.argwhere(self.xp.asarray(bad))
        place = ", ".join(str(int(i)) for i in found[0]) if len(found) else "?"
        return f"matrix [{place}] of the stack"
