"""Matrix products on GPUs by cuBLAS, in one call for all dtypes and for stacks of matrices.

CuPy has the library loaded, but its own products take several times as long to queue, and cannot be recorded in a CUDA
graph.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

# The numbers of cuBLAS for a dtype, and for what sums are computed in: halves are summed in single precision.
TYPES = {"float16": (2, 68, ctypes.c_float), "float32": (0, 68, ctypes.c_float), "float64": (1, 70, ctypes.c_double)}
PLAIN, TRANSPOSED = 0, 1
WORKSPACE = 32 << 20  # bytes: what NVIDIA recommends for the newest GPUs
POINTER, INT, LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
MATRIX: list[Any] = [POINTER, INT, INT, LONG]  # the address, the dtype, the leading dimension, the next matrix
ARGUMENTS: list[Any] = [POINTER, *[INT] * 5, POINTER, *MATRIX, *MATRIX, POINTER, *MATRIX, INT, INT, INT]


class Operand(NamedTuple):
    """A stack of matrices as BLAS takes it: all lines lie `leading` apart, and all matrices `next` apart."""

    array: Any
    order: int  # TRANSPOSED: the lines are columns
    leading: int
    next: int


class Products:
    """Matrix products on one GPU, queued one after the other: they share a workspace."""

    def __init__(self, cupy: Any) -> None:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # a requirement of CuPy

        self.cupy = cupy
        self.workspace: Any = None
        library = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
        self.call, self.set_stream = library.cublasGemmStridedBatchedEx, library.cublasSetStream_v2
        self.set_workspace = library.cublasSetWorkspace_v2
        self.call.argtypes = ARGUMENTS
        self.set_stream.argtypes = [POINTER, POINTER]
        self.set_workspace.argtypes = [POINTER, POINTER, ctypes.c_size_t]

    def product(self, x: Any, y: Any, out: Any = None) -> Any:
        """x @ y for arrays of two or more dimensions; `out` is contiguous."""
        xp, dtype = self.cupy, x.dtype
        if dtype.name not in TYPES:
            return xp.matmul(x, y) if out is None else xp.matmul(x, y, out=out)
        if y.ndim == 2 and x.ndim > 2:  # one large product instead of many small ones
            whole = None if out is None else out.reshape(math.prod(x.shape[:-1]), y.shape[1])
            rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
            return self.product(rows, y, whole).reshape(*x.shape[:-1], y.shape[1])
        stack = x.shape[:-2] if x.shape[:-2] == y.shape[:-2] else np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        rows, columns, inner = x.shape[-2], y.shape[-1], x.shape[-1]
        if out is None:
            out = xp.empty((*stack, rows, columns), dtype)
        if not inner or not out.size:
            out.fill(0)
            return out
        left, right = operand(xp, x, stack), operand(xp, y, stack)
        number, computing, scalar = TYPES[dtype.name]
        if self.workspace is None:
            self.workspace = xp.empty(WORKSPACE, np.uint8)
        handle, item = xp.cuda.device.get_cublas_handle(), dtype.itemsize
        self.set_stream(handle, xp.cuda.get_current_stream().ptr)
        self.set_workspace(handle, self.workspace.data.ptr, WORKSPACE)  # its own could not be recorded
        # BLAS stores matrices by columns. What it sees in our memory is the transpose of each matrix, and the
        # transpose of a product is the product of the transposes the other way round.
        status = self.call(
            handle, right.order, left.order, columns, rows, inner, ctypes.byref(scalar(1)),
            right.array.data.ptr, number, right.leading // item, right.next // item,
            left.array.data.ptr, number, left.leading // item, left.next // item, ctypes.byref(scalar(0)),
            out.data.ptr, number, columns, rows * columns, math.prod(stack), computing, -1,
        )
        if status:
            raise RuntimeError(f"cuBLAS reports status {status} for a product of {x.shape} and {y.shape}")
        return out


def operand(xp: Any, x: Any, stack: tuple[int, ...]) -> Operand:
    """An array as an operand, without a copy if BLAS can read its memory.

    >>> operand(np, np.zeros((2, 3)).T, ())[1:], operand(np, np.zeros((2, 3, 4)), (5, 2))[1:]
    ((1, 24, 0), (0, 32, 96))
    """
    if x.shape[:-2] != stack:
        x = xp.broadcast_to(x, (*stack, *x.shape[-2:]))
    item, apart = x.dtype.itemsize, _apart(stack, x.strides[:-2])
    (rows, columns), (down, across) = x.shape[-2:], x.strides[-2:]
    if apart is not None and apart % item == 0:
        if (across == item or columns == 1) and (down >= columns * item or rows == 1) and down % item == 0:
            return Operand(x, PLAIN, max(down, columns * item), apart)
        if (down == item or rows == 1) and (across >= rows * item or columns == 1) and across % item == 0:
            return Operand(x, TRANSPOSED, max(across, rows * item), apart)
    x = xp.ascontiguousarray(x)
    return Operand(x, PLAIN, columns * item, rows * columns * item)


def _apart(stack: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The distance between neighbours in a stack, in bytes; None if it varies."""
    apart, count = None, 1
    for size, stride in zip(reversed(stack), reversed(strides)):
        if size == 1:
            continue
        if apart is None:
            apart = stride
        elif stride != apart * count:
            return None
        count *= size
    return (apart or 0) if apart is None or apart >= 0 else None
