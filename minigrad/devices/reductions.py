"""The kernels of reductions, over short dimensions too.

NumPy sets up a loop for each result. In pooling, each result has two or four elements,
and setting up takes ten times as long as the arithmetic. There the parts of the array
are joined instead, each as large as the result.

Threads share large arrays in blocks, which depend on the shape only. Where NumPy is slow
with a dimension in the middle, the second half of a block is joined to the first, again
and again.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..core.dtypes import float16
from .compiled import as_single
from .library import KernelGroup
from .threads import in_blocks

SHORT = 16  # elements that make up a result
MANY = 1 << 12  # results from which it matters
LARGE = 1 << 20  # elements of an array that is reduced in blocks
HALVED, SHARED = 1 << 17, 1 << 18  # elements of a block
ROW = 128  # elements from which on NumPy adds rows fast
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

    def argmax(self, x: Any, axis: int) -> Any:
        return self.xp.argmax(x, axis)

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
    if x.dtype == float16 and ufunc in IN_SINGLE and dtype in (None, float16) and x.size:
        return reduce(ufunc, as_single(x), axis, None, keepdims).astype(float16)
    if x.size >= 2 * MANY:
        sizes = [x.shape[a] for a in axis]
        if 1 < prod(sizes) <= SHORT and x.size >= MANY * prod(sizes):
            return _joined(ufunc, x, axis, sizes, dtype, keepdims)
    if x.size >= LARGE and axis and dtype in (None, x.dtype) and x.itemsize > 2:
        along = max(axis)
        inner = prod(x.shape[along + 1 :])
        halved = inner > 1 and x.shape[along] >= SHORT and (inner < ROW or ufunc is not np.add)
        step = -(-(HALVED if halved else SHARED) // (x.size // len(x)))
        in_order = [*x.strides] == sorted(x.strides, reverse=True)
        if step < len(x) and in_order and (halved or inner == 1):
            return _in_blocks(ufunc, x, axis, step, halved, keepdims)
    return ufunc.reduce(x, axis, dtype, None, keepdims)


def _in_blocks(ufunc: Any, x: Any, axis: Axes, step: int, halved: bool, keepdims: bool) -> Any:
    """Reduce blocks of `step` along the first dimension, and then their results."""
    along = max(axis)
    parts: list[Any] = [None] * -(-len(x) // step)

    def work(start: int, stop: int) -> None:
        block = x[start:stop]
        while halved and block.shape[along] > 1:
            block = _half(ufunc, block, along)
        parts[start // step] = ufunc.reduce(block, axis, None, None, True)

    in_blocks(work, len(x), step)
    total = np.concatenate(parts)
    if 0 in axis:
        total = ufunc.reduce(total, (0,), None, None, True)
    return total if keepdims else total.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _half(ufunc: Any, x: Any, axis: int) -> Any:
    """The first half of an array along a dimension, combined with the second half."""
    size = x.shape[axis]
    front = (slice(None),) * axis
    half = ufunc(x[(*front, slice(0, size // 2))], x[(*front, slice(size // 2, size // 2 * 2))])
    if size % 2:
        first = half[(*front, slice(0, 1))]
        ufunc(first, x[(*front, slice(size - 1, size))], out=first)
    return half


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
