"""Stacks of many small matrices, for which LAPACK and BLAS take longer to call than to compute.

Machine code of the compiler computes with several matrices of a stack at once.  Each function returns None where
NumPy is as fast, where the compiler has no machine code, or for a matrix for which NumPy raises an error.
"""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any

import numpy as np

from .compiled import native

FEWEST = 256  # matrices
LARGEST = 8  # rows and columns of a matrix
QUICK, MANY = 4, 1 << 11  # larger matrices with pivots take LLVM a fifth of a second, which only pays for many
LONGEST, MOST = 16, 64  # of a product: the size of a dimension, and the elements of a left factor of several columns


def multiplies(x: tuple[int, ...], y: tuple[int, ...], dtype: Any) -> bool:
    """Whether `product` takes factors of these shapes."""
    matrix = *x[-2:], y[-1]
    small = len(y) > 2 and 0 < min(matrix) and max(matrix) <= LONGEST and (y[-1] == 1 or x[-2] * x[-1] <= MOST)
    sizes = [b if a == 1 else a for a, b in zip_longest(x[-3::-1], y[-3::-1], fillvalue=1)]  # of the stack, reversed
    many = small and math.prod(sizes) >= FEWEST
    return many and dtype.kind == "f" and dtype.itemsize > 2 and native() is not None


def product(x: Any, y: Any, out: Any) -> Any:
    """The product of two stacks that `multiplies` accepts, in `out`, which is contiguous."""
    native().on_stacks("product", (*x.shape[-2:], y.shape[-1]), *_stacked(out.shape[:-2], x, y), out)
    return out


def solve(x: Any, y: Any) -> Any:
    """The solutions of linear equations, or None."""
    if not _is_small(x) or not 0 < y.shape[-1] <= QUICK or x.dtype != y.dtype:
        return None
    return _checked("solution", (x.shape[-1], y.shape[-1]), y.shape, x, y)


def slogdet(x: Any) -> Any:
    """The sign and the logarithm of each determinant, or None."""
    return _checked("sign_and_log", x.shape[-1:], (*x.shape[:-2], 2), x) if _is_small(x) else None


def cholesky(x: Any) -> Any:
    """The Cholesky factors, or None."""
    return _checked("root", x.shape[-1:], x.shape, x) if _is_small(x, LARGEST) else None


def _checked(name: str, sizes: tuple[int, ...], shape: tuple[int, ...], *arrays: Any) -> Any:
    """The results of a kernel, or None if a pivot is not above 0 in size."""
    stacked = _stacked(arrays[0].shape[:-2], *arrays)
    out, least = np.empty(shape, arrays[0].dtype), np.empty(len(stacked[0]))
    native().on_stacks(name, sizes, *stacked, out, least)
    return out if (least > 0).all() else None


def _is_small(x: Any, quick: int = QUICK) -> bool:
    size = x.shape[-1]
    small = 0 < size <= LARGEST and x.size >= (FEWEST if size <= quick else MANY) * size**2
    return small and x.dtype.kind == "f" and x.dtype.itemsize > 2 and native() is not None


def _stacked(stack: tuple[int, ...], *arrays: Any) -> list[Any]:
    """Arrays as contiguous stacks of matrices in one dimension."""
    whole = [np.broadcast_to(a, (*stack, *a.shape[-2:])) for a in arrays]
    return [np.ascontiguousarray(a).reshape(-1, *a.shape[-2:]) for a in whole]
