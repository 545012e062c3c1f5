"""The kernels of sliding windows: views of windows, and sums of overlapping windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .library import KernelGroup
from .threads import BLOCK, in_blocks

Sizes = tuple[int, ...]


class WindowKernels(KernelGroup):
    """Windows over an array, as a view, and the sum of overlapping windows."""

    def windows(
        self, x: Any, axis: Sizes, size: Sizes, stride: Sizes, dilation: Sizes
    ) -> Any:
        shape, strides = list(x.shape), list(x.strides)
        for a, extent, step, gap in zip(axis, size, stride, dilation):
            shape[a] = (shape[a] - (extent - 1) * gap - 1) // step + 1
            strides[a] *= step
        shape += size
        strides += [x.strides[a] * gap for a, gap in zip(axis, dilation)]
        return self._strided(x, shape, strides)

    def _strided(self, x: Any, shape: list[int], strides: list[int]) -> Any:
        """A view with these strides.  It is read-only, because windows overlap."""
        as_strided = self.xp.lib.stride_tricks.as_strided
        return as_strided(x, shape, strides, writeable=False)

    def overlap_add(
        self, x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, shape: Sizes
    ) -> Any:
        def add_rows(low: int, high: int) -> None:
            add_up(x[low:high], axis, stride, dilation, out[low:high])

        out = self.empty(shape, x.dtype)
        if 0 not in axis and out.size > 4 * BLOCK:
            in_blocks(add_rows, shape[0], 1)
        else:
            add_up(x, axis, stride, dilation, out)
        return out


def add_up(x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, out: Any) -> None:
    """Add every window at its place in the array.

    The loop is over the places within a window: each step adds one of all windows.

    >>> out = np.empty(3)
    >>> add_up(np.array([[1.0, 2.0], [30.0, 40.0]]), (0,), (1,), (1,), out)
    >>> out.tolist()
    [1.0, 32.0, 40.0]
    """
    out[...] = 0
    for offset in np.ndindex(x.shape[out.ndim :]):
        index = [slice(None)] * out.ndim
        for a, place, step, gap in zip(axis, offset, stride, dilation):
            first = place * gap
            index[a] = slice(first, first + (x.shape[a] - 1) * step + 1, step)
        out[tuple(index)] += x[(..., *offset)]
