"""The kernels of reductions, over short dimensions too.

NumPy sets up a loop for each result. In pooling, each result has two or four elements,
and setting up takes ten times as long as the arithmetic. There the parts of the array
are joined instead, each as large as the result.

Machine code of the compiler reduces large arrays, if there is any.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..core.dtypes import float16
from .compiled import as_single, native
from .library import KernelGroup, positions

SHORT = 16  # elements that make up a result
MANY = 1 << 12  # results from which it matters
LARGE = 1 << 16  # elements that are worth machine code
COMPILED = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}
POSITION: Any = {np.maximum: np.ndarray.argmax, np.minimum: np.ndarray.argmin}
IN_SINGLE = (np.add, np.maximum, np.minimum)  # reductions of float16 that are computed in float32
Axes = tuple[int, ...]


class ReductionKernels(KernelGroup):
    """One result for many elements, and running totals."""

    def sum(self, x: Any, axis: Axes, keepdims: bool, dtype: Any) -> Any:
        return reduce(self.xp.add, x, axis, dtype or x.dtype, keepdims)

    def prod(self, x: Any, axis: Axes, keepdims: bool, dtype: Any) -> Any:
        return reduce(self.xp.multiply, x, axis, dtype or x.dtype, keepdims)

    def max(self, x: Any, axis: Axes, keepdims: bool) -> Any:
        return reduce(self.xp.maximum, x, axis, None, keepdims)

    def min(self, x: Any, axis: Axes, keepdims: bool) -> Any:
        return reduce(self.xp.minimum, x, axis, None, keepdims)

    @positions
    def argmax(self, x: Any, axis: int) -> Any:
        return self.xp.argmax(x, axis)

    @positions
    def argmin(self, x: Any, axis: int) -> Any:
        return self.xp.argmin(x, axis)

    @staticmethod
    def cumulative_sum(x: Any, axis: int, dtype: Any) -> Any:
        return x.cumsum(axis, dtype or x.dtype)

    @staticmethod
    def cumulative_prod(x: Any, axis: int, dtype: Any) -> Any:
        return x.cumprod(axis, dtype or x.dtype)


def reduce(ufunc: Any, x: Any, axis: Axes, dtype: Any, keepdims: bool) -> Any:
    """`ufunc.reduce` for NumPy's arrays.

    >>> reduce(np.add, np.ones((2, 3)), axis=(1,), dtype=None, keepdims=True)
    array([[3.],
           [3.]])
    """
    if x.size < MANY and x.dtype is not float16:
        if len(axis) < x.ndim:
            return ufunc.reduce(x, axis, dtype, None, keepdims)
        if ufunc in POSITION and x.size and keepdims is False:
            return np.array(x.item(POSITION[ufunc](x)), x.dtype)  # which takes half the time
        return ufunc.reduce(x, None, dtype, None, keepdims)  # faster than with all axes
    if x.dtype == float16 and ufunc in IN_SINGLE and dtype in (None, float16) and x.size:
        return reduce(ufunc, as_single(x), axis, None, keepdims).astype(float16)
    if x.size >= LARGE and not x.flags.c_contiguous:
        order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
        turned = x.transpose(order)
        if turned.flags.c_contiguous:  # only permuted
            out = reduce(ufunc, turned, tuple([order.index(a) for a in axis]), dtype, True)
            out = out.transpose(np.argsort(order))
            return out if keepdims else out.squeeze(axis)
    if x.size >= LARGE and _is_worth_compiling(ufunc, x, axis, dtype):
        compiled = native()
        if compiled is not None:
            return _by_machine_code(compiled, COMPILED[ufunc], x, axis, keepdims)
    if x.size >= 2 * MANY:
        sizes = [x.shape[a] for a in axis]
        if 1 < prod(sizes) <= SHORT and x.size >= MANY * prod(sizes):
            return _joined(ufunc, x, axis, sizes, dtype, keepdims)
    return ufunc.reduce(x, axis, dtype, None, keepdims)


def _is_worth_compiling(ufunc: Any, x: Any, axis: Axes, dtype: Any) -> bool:
    if not axis or ufunc not in COMPILED or dtype not in (None, x.dtype) or x.itemsize < 4:
        return False
    return bool(x.flags.c_contiguous)


def _by_machine_code(compiled: Any, name: str, x: Any, axis: Axes, keepdims: bool) -> Any:
    """Reduce one group of neighbouring dimensions after the other, the last one first."""
    kept = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    shape, stop = [*x.shape], x.ndim
    while stop:
        start = stop
        while start and start - 1 in axis:
            start -= 1
        if start < stop:
            sizes = prod(shape[:start]), prod(shape[start:stop]), prod(shape[stop:])
            x = compiled.reduce_middle(name, x.reshape(sizes))
            shape[start:stop] = [1] * (stop - start)
        stop = max(start - 1, 0)
    return x.reshape(kept if keepdims else [n for i, n in enumerate(kept) if i not in axis])


def _joined(
    ufunc: Any, x: Any, axis: Axes, sizes: list[int], dtype: Any, keepdims: bool
) -> Any:
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
