"""Elementwise operations that NumPy computes number by number or row by row: the compiler provides machine code.

Number by number: all operations on float16, and some functions of float64.  Row by row: arithmetic on arrays whose rows
are apart in memory, such as parts of an image, or are the same row, such as a bias.  Without LLVM, NumPy computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..core.dtypes import float16, float32, float64
from ..core.primitive import P, Primitive
from .library import Kernel

Layout = tuple[Any, tuple[int, ...], tuple[int, ...]]  # the dtype, shape and strides of an array
Compiled = Callable[[Sequence[Any], Any], object]  # takes values, and the array for the result
SLOW = frozenset(("sin", "cos", "tanh", "sigmoid", "erf"))  # functions of float64
PLAIN = frozenset("add subtract multiply negative abs maximum minimum where less less_equal equal".split())  # in rows
LONG_ROW = 1 << 12  # elements, from which on NumPy takes no longer
ENOUGH = 1 << 12  # elements that are worth a call


class Provider:
    """The compiler, a room above this one: `load` returns its functions for eager mode.  The package sets it."""

    load: Callable[[], Any] | None = None


@cache
def native() -> Any:
    """The compiler's functions for eager mode, or None without LLVM."""
    found = Provider.load and Provider.load()
    return found if found and found.is_available() else None


def compiled(op: Primitive, values: Sequence[Any], dtype: Any) -> Compiled | None:
    """Machine code for an operation on NumPy arrays of one shape and on numbers, or None."""
    load = Provider.load
    if load is None:
        return None
    kinds = tuple([getattr(value, "dtype", None) if getattr(value, "ndim", 0) else None for value in values])
    half = float16 in (*kinds, dtype) and all(kind is None or kind.kind in "bf" for kind in (*kinds, dtype))
    return load().machine_code(op, kinds, dtype) if half or (op.name in SLOW and kinds == (float64,)) else None


def with_machine_code(kernel: Kernel, op: Primitive, values: Sequence[Any], dtype: Any) -> Kernel:
    """The kernel, or a function that takes the same arguments and computes by machine code."""
    function = compiled(op, values, dtype)
    if function is None:
        return _in_rows(kernel, op) if op.name in PLAIN and native() else kernel

    def compute(*values: Any, out: Any, **attrs: Any) -> Any:
        if not out.flags.c_contiguous:
            return kernel(*values, **attrs, out=out)
        function([_spread(value, out.shape) for value in values], out)
        return out

    return compute


def _in_rows(kernel: Kernel, op: Primitive) -> Kernel:
    def compute(*values: Any, out: Any) -> Any:
        given = [a for a in values if getattr(a, "ndim", 0)]
        floats = [a.dtype for a in given if a.dtype.kind == "f"]
        if not floats or all(a.flags.c_contiguous and a.shape == out.shape for a in given):
            return kernel(*values, out=out)
        arrays = [a if getattr(a, "ndim", 0) else np.asarray(a, floats[0]) for a in (*values, out)]
        function = _function_of_rows(op, *[(a.dtype, a.shape, a.strides) for a in arrays])
        if function is None:
            return kernel(*values, out=out)
        function([a.ctypes.data for a in arrays])
        return out

    return compute


@lru_cache(1024)
def _function_of_rows(op: Primitive, *layouts: Layout) -> Callable[[Sequence[int]], object] | None:
    """Machine code for arrays of these layouts, the last of which is the result's; None if NumPy is as fast."""
    sizes, steps = rows_of(layouts)
    in_order = len(sizes) == 3 and all(a >= 0 and b >= 0 and c in (0, 1) for a, b, c in steps)
    if not in_order or sizes[2] >= LONG_ROW:
        return None
    kinds = tuple([dtype if shape else None for dtype, shape, _ in layouts[:-1]])
    return native().function_of_rows(op, kinds, layouts[-1][0], sizes, steps)  # type: ignore[no-any-return]


def rows_of(layouts: Sequence[Layout]) -> tuple[list[int], list[tuple[int, ...]]]:
    """The sizes of at least three dimensions, as few as possible, and each array's steps in them, in elements.

    The last layout is the result's; the others are broadcast to it, and numbers are left out.

    >>> image, out = np.zeros((2, 5, 8, 8), "f4")[..., 1:], np.zeros((2, 5, 8, 7), "f4")
    >>> rows_of([(a.dtype, a.shape, a.strides) for a in (image, out)])
    ([1, 80, 7], [(0, 8, 1), (0, 7, 1)])
    """
    whole, sizes, steps = layouts[-1][1], list[int](), list[list[int]]()  # the steps of all arrays in one dimension
    spread = []
    for dtype, shape, strides in layouts:
        if shape:
            in_elements = [s // dtype.itemsize if s % dtype.itemsize == 0 else -1 for s in strides]
            repeated = [0 if size == 1 else step for size, step in zip(shape, in_elements)]
            spread.append([0] * (len(whole) - len(shape)) + repeated)
    for size, *step in zip(whole, *spread):
        if sizes and steps[-1] == [size * s for s in step]:
            sizes[-1], steps[-1] = sizes[-1] * size, step
        elif size > 1:
            sizes.append(size)
            steps.append(step)
    more = max(3 - len(sizes), 0)
    return [1] * more + sizes, [*zip(*[[0] * len(spread)] * more, *steps)]


def _spread(value: Any, shape: tuple[int, ...]) -> Any:
    """An array, copied if it does not have this shape in row-major order; a number stays a number."""
    if not getattr(value, "ndim", 0) or (value.shape == shape and value.flags.c_contiguous):
        return value
    return np.ascontiguousarray(np.broadcast_to(value, shape))


def as_single(x: Any) -> Any:
    """An array of float16 in float32."""
    out = np.empty(x.shape, float32)
    function = compiled(P.astype, (x,), float32) if x.size >= ENOUGH and x.flags.c_contiguous else None
    if function is None:
        out[...] = x
    else:
        function((x,), out)
    return out
