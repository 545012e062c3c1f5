"""Reductions with NumPy, over short dimensions too.

NumPy sets up a loop for each result.  Where that is for two or four elements, as in pooling, setting up takes ten times
as long as the arithmetic: then the parts of the array are joined instead, each as large as the result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

SHORT = 16  # elements that make up a result
MANY = 1 << 12  # results from which it matters


def reduction(ufunc: Any) -> Callable[..., Any]:
    """`ufunc.reduce` for NumPy's arrays.

    >>> reduction(np.add)(np.ones((2, 3)), axis=(1,), dtype=None, keepdims=True)
    array([[3.],
           [3.]])
    """

    def reduce(x: Any, axis: tuple[int, ...], dtype: Any, keepdims: bool) -> Any:
        sizes = [x.shape[a] for a in axis]
        if 1 < prod(sizes) <= SHORT and x.size >= MANY * prod(sizes):
            return _joined(ufunc, x, axis, sizes, dtype, keepdims)
        return ufunc.reduce(x, axis, dtype, None, keepdims)

    return reduce


def _joined(ufunc: Any, x: Any, axis: tuple[int, ...], sizes: list[int], dtype: Any, keepdims: bool) -> Any:
    index: list[Any] = [slice(None)] * x.ndim
    total = None
    for offset in np.ndindex(*sizes):
        for a, i in zip(axis, offset):
            index[a] = slice(i, i + 1) if keepdims else i
        part = x[tuple(index)]
        if total is None:
            total = np.array(part, dtype)
        else:
            ufunc(total, part, out=total)
    return total
