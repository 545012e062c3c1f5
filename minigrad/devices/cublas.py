"""Matrix products on GPUs by cuBLAS, in one call for all dtypes and for stacks of matrices.

CuPy has the library loaded, but its own products take several times as long to queue, and cannot be recorded in a CUDA
graph.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

from ..support.forking import new_lock


class Type(NamedTuple):
    """A dtype for cuBLAS: its number, the number of the dtype of sums, and the factors 1 and 0."""

    number: int
    sums: int
    one: Any
    zero: Any


def _type(number: int, sums: int, scalar: Any) -> Type:
    return Type(number, sums, ctypes.byref(scalar(1)), ctypes.byref(scalar(0)))


SINGLE, DOUBLE = 68, 70  # what sums are computed in: halves are summed in single precision
TYPES = {
    np.dtype(np.float16): _type(2, SINGLE, ctypes.c_float),
    np.dtype(np.float32): _type(0, SINGLE, ctypes.c_float),
    np.dtype(np.float64): _type(1, DOUBLE, ctypes.c_double),
}
PLAIN, TRANSPOSED = 0, 1
DEFAULT = -1  # the library chooses the algorithm
WORKSPACE = 32 << 20  # bytes: what NVIDIA recommends for the newest GPUs
POINTER, INT, LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
MATRIX: list[Any] = [POINTER, INT, INT, LONG]  # the address, the dtype, the leading dimension, the next matrix
ARGUMENTS: list[Any] = [POINTER, *[INT] * 5, POINTER, *MATRIX, *MATRIX, POINTER, *MATRIX, INT, INT, INT]


class Operand(NamedTuple):
    """A stack of matrices as BLAS takes it: all lines are `leading` elements apart, all matrices `next` elements."""

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
        self.handle, self.lock = ctypes.c_void_p(), new_lock()  # threads may not come between setting and calling
        if library.cublasCreate_v2(ctypes.byref(self.handle)):
            raise RuntimeError("cuBLAS does not start")
        self.call.argtypes = ARGUMENTS
        self.set_stream.argtypes = [POINTER, POINTER]
        self.set_workspace.argtypes = [POINTER, POINTER, ctypes.c_size_t]

    def product(self, x: Any, y: Any, out: Any = None) -> Any:
        """x @ y for arrays of two or more dimensions; `out` is contiguous."""
        xp, kind = self.cupy, TYPES.get(x.dtype)
        if kind is None:
            return xp.matmul(x, y) if out is None else xp.matmul(x, y, out=out)
        *before, rows, inner = x.shape
        *behind, _, columns = y.shape
        if before and not behind:  # one large product instead of many small ones
            rows *= math.prod(before)
            whole = None if out is None else out.reshape(rows, columns)
            return self.product(x.reshape(rows, inner), y, whole).reshape(*x.shape[:-1], columns)
        stack = tuple(before) if before == behind else np.broadcast_shapes(tuple(before), tuple(behind))
        if out is None:
            out = xp.empty((*stack, rows, columns), x.dtype)
        if not inner or not out.size:
            out.fill(0)
            return out
        left, of_left, down, next_left = operand(xp, x, stack)
        right, of_right, across, next_right = operand(xp, y, stack)
        if self.workspace is None:
            self.workspace = xp.empty(WORKSPACE, np.uint8)
        with self.lock:
            self.set_stream(self.handle, xp.cuda.get_current_stream().ptr)
            self.set_workspace(self.handle, self.workspace.data.ptr, WORKSPACE)  # its own could not be recorded
            # BLAS stores matrices by columns. What it reads in our memory is the transpose of each matrix, and the
            # transpose of a product is the product of the transposes the other way round.
            status = self.call(
                self.handle, of_right, of_left, columns, rows, inner, kind.one,
                right.data.ptr, kind.number, across, next_right, left.data.ptr, kind.number, down, next_left, kind.zero,
                out.data.ptr, kind.number, columns, rows * columns, math.prod(stack), kind.sums, DEFAULT,
            )
        if status:
            raise RuntimeError(f"cuBLAS reports status {status} for a product of {x.shape} and {y.shape}")
        return out


def operand(xp: Any, x: Any, stack: tuple[int, ...]) -> Operand:
    """An array as an operand, without a copy if BLAS can read its memory.

    >>> operand(np, np.zeros((2, 3)).T, ())[1:], operand(np, np.zeros((2, 3, 4)), (5, 2))[1:]
    ((1, 3, 0), (0, 4, 12))
    """
    if x.ndim > 2 and x.shape[:-2] != stack:
        x = xp.broadcast_to(x, (*stack, *x.shape[-2:]))
    *before, rows, columns = x.shape
    *apart, down, across = x.strides
    item = x.dtype.itemsize
    following = _following(before, apart) if before else 0
    if following is not None and following % item == 0:
        if (across == item or columns == 1) and (down >= columns * item or rows == 1) and down % item == 0:
            return Operand(x, PLAIN, max(down // item, columns), following // item)
        if (down == item or rows == 1) and (across >= rows * item or columns == 1) and across % item == 0:
            return Operand(x, TRANSPOSED, max(across // item, rows), following // item)
    return Operand(xp.ascontiguousarray(x), PLAIN, columns, rows * columns)


def _following(stack: list[int], strides: list[int]) -> int | None:
    """The distance between neighbours in a stack, in bytes; None if it varies.

    >>> _following([2, 3], [72, 24]), _following([1, 3], [7, 24]), _following([2, 3], [0, 24])
    (24, 24, None)
    """
    found, count = None, 1
    for size, stride in zip(reversed(stack), reversed(strides)):
        if size > 1:
            if found is None:
                found = stride
            elif stride != found * count:
                return None
            count *= size
    if found is None:
        return 0
    return found if found >= 0 else None
