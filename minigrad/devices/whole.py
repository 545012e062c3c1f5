"""Products of integer matrices by float BLAS, in numbers so small that every sum is exact.

NumPy multiplies integers one by one, 30 times as slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EXACT = {np.float32: 1 << 24, np.float64: 1 << 53}  # sums up to these are exact, in any order
BITS, STEP = 21, 512  # of a part, and of the rows that are multiplied at a time: sums of three products are exact


def whole_product(matmul: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The product of two matrices of one integer dtype, which wraps around.  `matmul` multiplies floats.

    >>> whole_product(np.matmul, np.full((1, 2), 100, np.int8), np.full((2, 1), 3, np.int8)).tolist()
    [[88]]
    """
    dtype, size = x.dtype, x.shape[-1]
    x, y = x.astype(np.int64), y.astype(np.int64)
    bound = size * _largest(x) * _largest(y)
    for kind, most in EXACT.items():
        if bound <= most:
            return matmul(x.astype(kind), y.astype(kind)).astype(np.int64).astype(dtype, copy=False)
    total: Any = 0
    for start in range(0, size, STEP):
        columns, rows = x[..., start : start + STEP], y[..., start : start + STEP, :]
        total += _in_parts(matmul, columns, rows, 8 * dtype.itemsize)
    return total.astype(dtype, copy=False)


def _largest(x: Any) -> int:
    return max(-int(x.min(initial=0)), int(x.max(initial=0)))


def _in_parts(matmul: Callable[[Any, Any], Any], x: Any, y: Any, bits: int) -> Any:
    """The last 64 bits of a product.  Pairs of parts that together lie above `bits` do not matter."""
    width = bits // 2 if bits <= 2 * BITS else BITS + 1
    xs, ys = _parts(x, width, bits), _parts(y, width, bits)
    total: Any = 0
    for place in range(len(xs)):
        left = np.concatenate(xs[: place + 1], -1)
        right = np.concatenate(ys[place::-1], -2)
        total += matmul(left, right).astype(np.int64) << place * width
    return total


def _parts(x: Any, width: int, bits: int) -> list[Any]:
    """x as a sum of multiples of 1, 2ʷ, 2²ʷ and so on, modulo 2 to the power of `bits`: the factors, as floats."""
    half, parts = 1 << (width - 1), []
    for _ in range(-(-bits // width)):
        low = ((x + half) & (2 * half - 1)) - half
        parts.append(low.astype(np.float64))
        x = (x - low) >> width
    return parts
