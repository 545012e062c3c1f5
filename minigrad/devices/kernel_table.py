"""The kernels: for each primitive, what runs, written once for every array library that speaks NumPy's language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import IndexingError
from .control import control_kernels
from .effects import effect_kernels
from .matrices import matrix_kernels
from .philox import random_kernel
from .reductions import reduction
from .special import cast, erf_kernel, scatter_add_kernel
from .threads import BLOCK, elementwise_in_blocks
from .windows import window_kernels

Kernel = Callable[..., Any]
MANY = 1 << 14  # elements from which arithmetic on bits is faster than a branch for each

# Primitives that are one function of the array library under another name or the same.
SAME = {
    "pow": "power", "abs": "absolute", "divide": "true_divide", "atan2": "arctan2",
    "bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
} | {
    name: name
    for name in (
        "add", "subtract", "multiply", "negative", "floor_divide", "remainder", "maximum", "minimum", "exp", "expm1",
        "log", "log1p", "sqrt", "sin", "cos", "tanh", "less", "less_equal", "equal", "bitwise_and",
        "bitwise_or", "bitwise_xor",
    )
}  # fmt: skip


def choose_bits(condition: Any, x: Any, y: Any, out: Any) -> None:
    """`where` by arithmetic on bits: NumPy branches for each element, and half its guesses are wrong.

    >>> out = np.empty(2)
    >>> choose_bits(np.array([True, False]), np.array([1.0, 2.0]), -0.5, out)
    >>> out.tolist()
    [1.0, -0.5]
    """
    bits = np.dtype(f"i{out.dtype.itemsize}")
    x, y, result = np.asarray(x, out.dtype).view(bits), np.asarray(y, out.dtype).view(bits), out.view(bits)
    mask = condition.astype(bool, copy=False).astype(bits)
    np.bitwise_xor(x, y, result)
    np.bitwise_and(result, np.negative(mask, mask), result)
    np.bitwise_xor(result, y, result)


def check_range(index: Any, size: int, axis: int) -> None:
    """Raise where an array of integers does not index a dimension of this size.

    >>> check_range(np.array([0, 3]), 3, axis=0)
    Traceback (most recent call last):
    minigrad.core.errors.IndexingError: index 3 is out of range for dimension 0 of size 3
    ...
    """
    index = index.astype("int64", copy=False)  # a small type could not be compared with a large size
    outside = (index < -size) | (index >= size)
    if outside.any():
        raise IndexingError(
            f"index {index[outside][0].item()} is out of range for dimension {axis} of size {size}",
            expect=f"integers from {-size} to {size - 1}",
        )


def kernel_table(xp: Any, empty: Any = None) -> dict[str, Kernel]:
    """Every primitive's kernel, made of `xp`: numpy or cupy.  `empty(shape, dtype)` finds memory for large results."""
    table: dict[str, Kernel] = {name: getattr(xp, theirs) for name, theirs in SAME.items()}
    empty = empty or xp.empty

    def kernel(function: Kernel) -> Kernel:
        table[function.__name__.strip("_")] = function
        return function

    @kernel
    def astype(x: Any, dtype: Any, out: Any = None) -> Any:
        return cast(xp, x, dtype, out)

    @kernel
    def bitcast(x: Any, dtype: Any, out: Any = None) -> Any:
        return astype(x.view(dtype), dtype, out)  # copied, so that the memory is not the input's

    def rounding(function: Kernel) -> Kernel:
        def apply(x: Any, out: Any = None) -> Any:
            return function(x, out) if x.dtype.kind == "f" else astype(x, x.dtype, out)  # NumPy may make them floats

        apply.__name__ = function.__name__
        return apply

    table["floor"], table["round"] = rounding(xp.floor), rounding(xp.rint)

    @kernel
    def sigmoid(x: Any, out: Any = None) -> Any:
        power = xp.exp(-xp.absolute(x))  # at most 1: of a large negative x it is the result, and nothing overflows
        return xp.true_divide(xp.maximum(power, x >= 0), 1 + power, out=out)

    @kernel
    def where(condition: Any, x: Any, y: Any, out: Any = None) -> Any:
        if out is None and (xp is not np or condition.size < MANY):
            return xp.where(condition, x, y)
        if xp is not np:
            xp.copyto(out, y)
            xp.copyto(out, x, where=condition)
            return out
        if out is None:
            out = empty(np.broadcast(condition, x, y).shape, x.dtype if hasattr(x, "dtype") else y.dtype)
        if out.size > 16 * BLOCK:  # below, waking other threads costs more than they save
            elementwise_in_blocks(choose_bits, [condition, x, y], {}, out)
        else:
            choose_bits(condition, x, y, out)
        return out

    # reductions

    add_up, multiply_all = reduction(xp.add), reduction(xp.multiply)
    largest, smallest = reduction(xp.maximum), reduction(xp.minimum)

    @kernel
    def sum(x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
        return add_up(x, axis, dtype or x.dtype, keepdims)

    @kernel
    def prod(x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
        return multiply_all(x, axis, dtype or x.dtype, keepdims)

    @kernel
    def max(x: Any, axis: Any, keepdims: bool) -> Any:
        return largest(x, axis, None, keepdims)

    @kernel
    def min(x: Any, axis: Any, keepdims: bool) -> Any:
        return smallest(x, axis, None, keepdims)

    @kernel
    def argmax(x: Any, axis: int) -> Any:
        return xp.argmax(x, axis)

    @kernel
    def argmin(x: Any, axis: int) -> Any:
        return xp.argmin(x, axis)

    @kernel
    def cumulative_sum(x: Any, axis: int, dtype: Any) -> Any:
        return x.cumsum(axis, dtype or x.dtype)

    @kernel
    def cumulative_prod(x: Any, axis: int, dtype: Any) -> Any:
        return x.cumprod(axis, dtype or x.dtype)

    # views

    @kernel
    def reshape(x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    @kernel
    def permute_dims(x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @kernel
    def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
        if x.ndim or xp is not np:
            return xp.broadcast_to(x, shape)
        out = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))  # a third of the price, for the seed of a sum
        out.flags.writeable = False
        return out

    @kernel
    def slice(x: Any, index: tuple[Any, ...]) -> Any:
        return x[index]

    # index

    @kernel
    def gather(x: Any, *indices: Any) -> Any:
        return x[indices]

    @kernel
    def put(base: Any, value: Any, *indices: Any, chain: Any, out: Any = None) -> Any:
        if out is None:
            out = base.copy(order="C")
        target = out
        for op, attrs in chain:
            target = table[op.name](target, **attrs)
        if hasattr(value, "dtype"):
            value = astype(value, out.dtype) if value.dtype != out.dtype else value
        if indices:  # all in row-major order: NumPy follows the strides, and of equal indices the last has to win
            target[tuple([xp.ascontiguousarray(i).reshape(i.shape) for i in indices])] = xp.array(value, order="C")
        else:
            target[...] = value
        return out

    @kernel
    def place(x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        out = empty(shape, x.dtype)
        out.fill(0)
        out[index] = x
        return out

    @kernel
    def concat(*xs: Any, axis: int) -> Any:
        return xp.concatenate(xs, axis)

    @kernel
    def argsort(x: Any, axis: int, descending: bool) -> Any:
        if not descending:
            return xp.argsort(x, axis, kind="stable")
        backwards = xp.argsort(xp.flip(x, axis), axis, kind="stable")  # reversed twice, so that ties keep their order
        return x.shape[axis] - 1 - xp.flip(backwards, axis)

    @kernel
    def nonzero(x: Any) -> Any:
        return xp.nonzero(x)

    # creation and structure

    @kernel
    def full(shape: tuple[int, ...], value: Any, dtype: Any, device: Any) -> Any:
        out = empty(shape, dtype)
        out.fill(value)
        return out

    @kernel
    def arange(start: Any, step: Any, count: int, dtype: Any, device: Any) -> Any:
        return cast(xp, start + xp.arange(count) * step, dtype)

    table |= effect_kernels(xp)
    table["random"] = random_kernel(xp)
    table["erf"], table["scatter_add"] = erf_kernel(xp), scatter_add_kernel(xp)
    table |= matrix_kernels(xp, empty) | window_kernels(xp, empty)

    @kernel
    def to_device(x: Any, source: Any, device: Any) -> Any:
        return device.receive(x, source)

    @kernel
    def project(x: tuple[Any, ...], index: int) -> Any:
        return x[index]

    @kernel
    def call(*values: Any, application: Any) -> Any:
        return application.compute(*values)

    return table | control_kernels(xp)
