"""Elementwise operations that NumPy computes number by number: the compiler provides machine code for them.

These are all operations on float16, and some functions of float64.  Without LLVM, NumPy computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..core.dtypes import float16, float32, float64
from ..core.primitive import P, Primitive
from .library import Kernel

Compiled = Callable[[Sequence[Any], Any], object]  # takes values, and the array for the result
SLOW = frozenset(("sin", "cos", "tanh", "sigmoid", "erf"))  # functions of float64
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
        return kernel

    def compute(*values: Any, out: Any, **attrs: Any) -> Any:
        if not out.flags.c_contiguous:
            return kernel(*values, **attrs, out=out)
        function([_spread(value, out.shape) for value in values], out)
        return out

    return compute


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
