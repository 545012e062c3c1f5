"""The kernels of sliding windows, written once for numpy and cupy: looking at them, and adding them up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .threads import BLOCK, in_blocks

Kernel = Callable[..., Any]
Sizes = tuple[int, ...]


def window_kernels(xp: Any, empty: Any) -> dict[str, Kernel]:
    """The kernels made of `xp`, by name of the primitive.  `empty` finds the memory for a large result."""

    def windows(x: Any, axis: Sizes, size: Sizes, stride: Sizes, dilation: Sizes) -> Any:
        shape, strides = list(x.shape), list(x.strides)
        for a, extent, step, gap in zip(axis, size, stride, dilation):
            shape[a] = (shape[a] - (extent - 1) * gap - 1) // step + 1
            strides[a] *= step
        shape += size
        strides += [x.strides[a] * gap for a, gap in zip(axis, dilation)]
        only_to_read = {"writeable": False} if xp is np else {}  # windows overlap
        return xp.lib.stride_tricks.as_strided(x, shape, strides, **only_to_read)

    def overlap_add(x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, shape: Sizes) -> Any:
        out = empty(shape, x.dtype)
        if xp is np and 0 not in axis and out.size > 4 * BLOCK:
            in_blocks(lambda low, high: _add_up(x[low:high], axis, stride, dilation, out[low:high]), shape[0], 1)
        else:
            _add_up(x, axis, stride, dilation, out)
        return out

    return {"windows": windows, "overlap_add": overlap_add}


def _add_up(x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, out: Any) -> None:
    """Add every window to where it was taken from: for each place within a window, all windows at once.

    >>> out = np.empty(3)
    >>> _add_up(np.array([[1.0, 2.0], [30.0, 40.0]]), (0,), (1,), (1,), out)
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
