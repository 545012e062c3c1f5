"""The kernels of `cuda`: the kernels of the CPU with CuPy, and overrides where CuPy differs."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .cuda_checks import check_on_cuda
from .kernel_table import Kernels
from .library import Kernel
from .philox import draw_on_cuda
from .windows import Sizes, add_up

SIGN = 1 << 63  # the bit of the sign

# What cupy.add.at has atomic additions for.
ADDS_ATOMICALLY = {"int32", "uint32", "uint64", "float16", "float32", "float64"}


def _reduction(name: str) -> Any:
    """A reduction by the method of CuPy's arrays that has this name."""

    def kernel(x: Any, axis: Sizes, keepdims: bool, dtype: Any = None) -> Any:
        if not axis:
            return x.astype(dtype or x.dtype)
        typed = {} if dtype is None else {"dtype": dtype}
        return getattr(x, name)(axis=axis, keepdims=keepdims, **typed)

    kernel.__name__ = name
    return staticmethod(kernel)


class CudaKernels(Kernels):
    """Kernels on CuPy's arrays."""

    half_is_slow = whole_is_slow = False

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        from cupyx.scipy.special import erf

        self.xp, self._erf = device.cupy, erf
        self._found: Any = None  # what a check finds, in the GPU's memory
        # For programs, which check positions themselves and are recorded.
        self.for_programs: dict[str, Kernel] = {
            "gather": self._gather, "scatter_add": self._scatter_add, "scatter_max": self._scatter_max,
            "matmul": self._recordable_product,
        }

    # Elementwise: floats are divided as floor(x / y), which rounds twice. C leaves open
    # what a wide shift gives. The error function of halves is in double precision.

    def floor_divide(self, x: Any, y: Any, out: Any = None) -> Any:
        if self.xp.result_type(x, y).kind != "f":
            return self.xp.floor_divide(x, y, out=out)
        return _into(out, divided(self.xp, x, y)[0])

    def remainder(self, x: Any, y: Any, out: Any = None) -> Any:
        if self.xp.result_type(x, y).kind != "f":
            return self.xp.remainder(x, y, out=out)
        return _into(out, divided(self.xp, x, y)[1])

    def pow(self, x: Any, y: Any, out: Any = None) -> Any:
        if self.xp.result_type(x, y).kind != "f":
            if bool((y < 0).any() if hasattr(y, "any") else y < 0):
                raise ValueError("Integers to negative integer powers are not allowed.")
        return self.xp.power(x, y, out=out)

    def bitwise_left_shift(self, x: Any, y: Any, out: Any = None) -> Any:
        return _into(out, self._shifted(self.xp.left_shift, x, y, False))

    def bitwise_right_shift(self, x: Any, y: Any, out: Any = None) -> Any:
        return _into(out, self._shifted(self.xp.right_shift, x, y, True))

    def _shifted(self, shift: Kernel, x: Any, y: Any, keeps_sign: bool) -> Any:
        xp, dtype = self.xp, self.xp.result_type(x, y)
        x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
        wide = (y < 0) | (y >= 8 * dtype.itemsize)
        beyond = -(x < 0).astype(dtype) if keeps_sign else 0
        return xp.where(wide, beyond, shift(x, xp.where(wide, 0, y)))

    def erf(self, x: Any, out: Any = None) -> Any:
        if x.dtype.itemsize == 2:
            return _into(out, self._erf(x.astype("float32")).astype(x.dtype))
        return self._erf(x, out=out)

    def where(self, condition: Any, x: Any, y: Any, out: Any = None) -> Any:
        if out is None:
            return self.xp.where(self.xp.asarray(condition), x, y)
        self.xp.copyto(out, y)
        self.xp.copyto(out, x, where=condition)
        return out

    # Reductions: cupy.maximum and cupy.minimum cannot reduce

    sum, prod, max, min = map(_reduction, ("sum", "prod", "max", "min"))

    # Views: CuPy's arrays cannot be read-only

    def broadcast_to(self, x: Any, shape: Sizes) -> Any:  # type: ignore[override]
        return self.xp.broadcast_to(x, shape)

    def _strided(self, x: Any, shape: list[int], strides: list[int]) -> Any:
        return self.xp.lib.stride_tricks.as_strided(x, shape, strides)

    # Indexing: positions out of range wrap around, it is left open which of equal ones
    # wins, and few dtypes have atomic additions. Sorting an empty array is an error
    # (CuPy's issue 9816).

    def gather(self, x: Any, *indices: Any) -> Any:
        self._check(x, indices)
        return x[indices]

    @staticmethod
    def _gather(x: Any, *indices: Any) -> Any:
        return x[indices]

    def scatter_add(self, base: Any, value: Any, *indices: Any) -> Any:
        self._check(base, indices)
        return self._scatter_add(base, value, *indices)

    def scatter_max(self, base: Any, value: Any, *indices: Any) -> Any:
        self._check(base, indices)
        return self._scatter_max(base, value, *indices)

    def _recordable_product(self, x: Any, y: Any) -> Any:
        products = self.device.products
        return self.matmul(x, y) if products is None else products.product(x, y)

    def _check(self, x: Any, indices: tuple[Any, ...]) -> None:
        if not self.device.check_indices:
            return
        if self._found is None:
            self._found = self.xp.zeros(2, np.int64)
        for index, size in zip(indices, x.shape):
            check_on_cuda(self.xp, self._found, index, size)

    def _scatter_add(self, base: Any, value: Any, *indices: Any) -> Any:
        dtype = base.dtype
        value = self.xp.asarray(value, dtype)
        if dtype.name in ADDS_ATOMICALLY:
            return self._added(base, value, indices)
        if dtype.name == "int64":  # the bits of a sum are the same without a sign
            unsigned = base.view("uint64"), value.view("uint64")
            return self._added(*unsigned, indices).view(dtype)
        wide = base.astype("int32"), value.astype("int32")
        return self._added(*wide, indices).astype(dtype)

    def _added(self, base: Any, value: Any, indices: tuple[Any, ...]) -> Any:
        out = base.copy()
        self.xp.add.at(out, indices, value)
        return out

    def _scatter_max(self, base: Any, value: Any, *indices: Any) -> Any:
        """The atomic maximum of floats drops nans, so whole numbers in the same order are compared."""
        out = ranked(self.xp, base)
        self.xp.maximum.at(out, indices, ranked(self.xp, self.xp.asarray(value, base.dtype)))
        return unranked(self.xp, out, base.dtype)

    def _assign(self, target: Any, indices: tuple[Any, ...], value: Any) -> None:
        """Number the positions, and write only the largest number at each place."""
        self._check(target, indices)
        xp = self.xp
        shape = np.broadcast_shapes(*[index.shape for index in indices])
        order = xp.arange(1, math.prod(shape) + 1, dtype="uint64").reshape(shape)
        latest = xp.zeros(target.shape[: len(indices)], "uint64")
        xp.maximum.at(latest, indices, order)
        wins = latest[indices] == order
        if hasattr(value, "ndim"):
            whole = xp.broadcast_to(value, shape + target.shape[len(indices) :])
            value = whole[wins]
        target[tuple([xp.broadcast_to(i, shape)[wins] for i in indices])] = value

    def argsort(
        self, x: Any, axis: int, descending: bool, count: int | None = None
    ) -> Any:
        xp, size = self.xp, x.shape[axis]
        if not x.size:
            order = xp.zeros(x.shape, "int64")
        elif not descending:
            order = xp.argsort(x, axis, kind="stable")
        else:  # reversed twice, so that ties keep their order
            backwards = xp.argsort(xp.flip(x, axis), axis, kind="stable")
            order = size - 1 - xp.flip(backwards, axis)
        return order if count is None else order[(slice(None),) * axis + (slice(count),)]

    def sort(self, x: Any, axis: int, descending: bool) -> Any:
        return self.xp.take_along_axis(x, self.argsort(x, axis, descending), axis)

    # One kernel for all elements, instead of threads

    def overlap_add(
        self, x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, shape: Sizes
    ) -> Any:
        out = self.empty(shape, x.dtype)
        add_up(x, axis, stride, dilation, out)
        return out

    def random(
        self, shape: Sizes, dtype: Any, key: int, block: int, device: Any
    ) -> Any:
        return draw_on_cuda(self.xp, shape, dtype, key, block)

    def _raising(self) -> AbstractContextManager[Any]:
        import cupyx

        return cupyx.errstate(linalg="raise")  # type: ignore[no-any-return]


def ranked(xp: Any, x: Any) -> Any:
    """Unsigned whole numbers in the order of these numbers; nan is the largest.

    >>> ranked(np, np.array([-np.inf, -1.0, 0.0, 2.0, np.nan])).argsort()
    array([0, 1, 2, 3, 4])
    """
    if x.dtype.kind != "f":
        return x.astype(xp.uint64) if x.dtype.kind != "i" else x.astype(xp.int64).view(xp.uint64) ^ xp.uint64(SIGN)
    bits = xp.where(xp.isnan(x), np.nan, x).astype(xp.float64).view(xp.uint64)
    return xp.where(bits >= SIGN, ~bits, bits | xp.uint64(SIGN))


def unranked(xp: Any, numbers: Any, dtype: Any) -> Any:
    """The numbers of this dtype that `ranked` gives these whole numbers.

    >>> unranked(np, ranked(np, np.array([-3, 0, 5])), np.dtype("int64"))
    array([-3,  0,  5])
    """
    if dtype.kind != "f":
        return (numbers if dtype.kind != "i" else (numbers ^ xp.uint64(SIGN)).view(xp.int64)).astype(dtype)
    return xp.where(numbers >= SIGN, numbers ^ xp.uint64(SIGN), ~numbers).view(xp.float64).astype(dtype)


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out


def divided(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The quotient rounded down and the remainder of floats, as NumPy defines them.

    >>> divided(np, np.array([1.0, -5.0, 5.0]), np.array([0.1, np.inf, 0.0]))
    (array([ 9., -1., inf]), array([0.1, inf, nan]))
    """
    dtype = xp.result_type(x, y)
    x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
    rest = xp.fmod(x, y)
    quotient = (x - rest) / y
    other_side = (rest != 0) & ((rest < 0) != (y < 0))
    rest = xp.where(other_side, rest + y, rest)
    quotient = xp.where(other_side, quotient - 1, quotient)
    whole = xp.floor(quotient)
    whole = xp.where(quotient - whole > 0.5, whole + 1, whole)
    exact = x / y
    whole = xp.where(whole == 0, xp.copysign(whole, exact), whole)
    rest = xp.where(rest == 0, xp.copysign(rest, y), rest)
    return xp.where(y == 0, exact, whole), rest
