"""Kernels that check on the GPU whether positions lie within a dimension."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .special import check_range

THREADS = 128  # of a block

CHECKS = """
#define CHECK(NAME, TYPE)                                                                                       \\
    extern "C" __global__ void NAME(const TYPE *positions, long long count, long long size, long long *found) { \\
        long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;                                         \\
        if (i >= count || (positions[i] >= -size && positions[i] < size)) return;                               \\
        found[1] = positions[i];                                                                                \\
        found[0] = 1;                                                                                           \\
    }

CHECK(check_int8, signed char)
CHECK(check_int16, short)
CHECK(check_int32, int)
CHECK(check_int64, long long)
CHECK(check_uint8, unsigned char)
"""


@cache
def checks_module(cupy: Any) -> Any:
    """The kernels that check positions."""
    return cupy.RawModule(code=CHECKS)


def check_on_cuda(xp: Any, found: Any, index: Any, size: int) -> None:
    """`check_range` with one small kernel, whose result is `found`: two integers in the GPU's memory.

    An `xp` that cannot compile CUDA C uses array operations.
    """
    if not index.size:
        return
    if not hasattr(xp, "RawModule"):
        check_range(index, size)
        return
    launch = checks_module(xp).get_function(f"check_{index.dtype.name}")
    blocks = -(-index.size // THREADS)
    launch((blocks,), (THREADS,), [xp.ascontiguousarray(index), np.int64(index.size), np.int64(size), found])
    if found.get()[0]:
        found.fill(0)
        check_range(index, size)
