"""Products of integer matrices by float BLAS, where the numbers are so small that every sum is exact.

NumPy multiplies integers one by one, which takes up to 30 times as long; it does so here for larger numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EXACT = {np.float32: 1 << 24, np.float64: 1 << 53}  # sums up to these are exact, in any order


def whole_product(matmul: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The product of two matrices of one integer dtype, which wraps around.  `matmul` multiplies floats.

    >>> whole_product(np.matmul, np.full((1, 2), 100, np.int8), np.full((2, 1), 3, np.int8)).tolist()
    [[88]]
    """
    bound = x.shape[-1] * _largest(x) * _largest(y)
    for kind, most in EXACT.items():
        if bound <= most:
            return matmul(x.astype(kind), y.astype(kind)).astype(np.int64).astype(x.dtype, copy=False)
    return np.matmul(x, y)


def _largest(x: Any) -> int:
    return max(-int(x.min(initial=0)), int(x.max(initial=0)))
