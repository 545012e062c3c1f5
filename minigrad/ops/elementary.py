"""The other elementwise functions of the array API, composed from the elementwise primitives.

Each is correct at signed zeros, infinities and nans, does not overflow on the way to a finite result, and has the right
gradient.  `bitcast` is the only primitive here: functions that read the sign bit, or step to the next float, need the
bits of a float.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import NUMBERS, Tensor, as_tensor, method
from ..support.errors import DtypeError
from .bits import bitwise_and, bitwise_invert, bitwise_or, bitwise_xor
from .composite import composed
from .creation import zeros_like
from .declare import declare
from .elementwise import (
    abs,
    astype,
    atan2,
    cos,
    divide,
    equal,
    exp,
    expm1,
    floor,
    greater,
    less,
    log,
    log1p,
    maximum,
    multiply,
    negative,
    not_equal,
    power,
    round,
    sign,
    sin,
    sqrt,
    where,
)

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitcast", "ceil", "conj", "copysign", "cosh", "exp2",
    "hypot", "imag",
    "isfinite", "isinf", "isnan", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "nextafter", "positive", "real", "reciprocal", "signbit", "sinh", "square", "tan", "trunc",
]

# Bits ---------------------------------------------------------------------------------------------------------------

SAME_SIZE = {dtypes.float16: dtypes.int16, dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}


def _infer_bitcast(x: Any, dtype: Any) -> Any:
    if x.dtype.itemsize != dtype.itemsize or "b" in (x.dtype.kind, dtype.kind):
        raise DtypeError(f"bitcast: the bits of {x.dtype} can't be read as {dtype}", expect="numbers of the same size")
    return x.shape, dtype


declare(
    Primitive(
        "bitcast", "elementwise", ("x",), _infer_bitcast, promotes=(), expr="bitcast(x)",
        formula=r"\operatorname{bits} x",
    )
)


def bitcast(x: Tensor, dtype: Any) -> Tensor:
    """The same bits, read as another dtype of the same size.  No gradient flows through it.

    >>> hex(mg.bitcast(mg.asarray(1.0), mg.int32).item())
    '0x3f800000'
    """
    target = dtypes.as_dtype(dtype)
    _infer_bitcast(x, target)
    return P.bitcast.apply(x, dtype=target)


def signbit(x: Tensor) -> Tensor:
    """Where the sign bit is set: for negative numbers and -0.0.

    >>> mg.signbit(mg.asarray([-1.0, -0.0, 0.0])).tolist()
    [True, True, False]
    """
    return less(bitcast(x, SAME_SIZE[x.dtype]) if x.dtype.kind == "f" else x, 0)


@composed
def copysign(x: Any, y: Any) -> Tensor:
    """x with the sign of y.

    >>> mg.copysign(mg.asarray([1.0, -2.0]), mg.asarray([-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """
    x, y = _two_floats(x, y)
    return where(equal(signbit(x), signbit(y)), x, negative(x))


@composed
def nextafter(x: Any, y: Any) -> Tensor:
    """The next float after x in the direction of y.  No gradient flows through it.

    >>> mg.nextafter(mg.asarray(1.0), 2.0).item() - 1
    1.1920928955078125e-07
    """
    x, y = _two_floats(x, y)
    x, y = x.detach(), y.detach()
    bits = bitcast(x, SAME_SIZE[x.dtype])
    outward = equal(greater(y, x), greater(x, 0.0))  # as integers, bits count away from zero on both sides
    stepped = bitcast(bits + where(outward, 1, -1).astype(bits.dtype), x.dtype)
    smallest = copysign(bitcast(bits * 0 + 1, x.dtype), y)
    moved = where(equal(x, 0.0), smallest, stepped)
    return where(equal(x, y), y, where(isnan(y), y, where(isnan(x), x, moved)))


def _two_floats(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of one float dtype; the operations that follow broadcast them."""
    device = next((t.device for t in (x, y) if t.__class__ is Tensor), None)
    dtype = dtypes.result_type(*[t if t.__class__ in NUMBERS else dtypes.dtype_of(t) for t in (x, y)])
    dtype = dtype if dtype.kind == "f" else dtypes.default_float
    first, second = (astype(as_tensor(t, device), dtype, copy=False) for t in (x, y))
    return first, second


# What kind of number --------------------------------------------------------------------------------------------------


@method
def isnan(x: Tensor) -> Tensor:
    """Where x is not a number.

    >>> mg.isnan(mg.asarray([1.0, mg.nan])).tolist()
    [False, True]
    """
    return not_equal(x, x)


@method
def isinf(x: Tensor) -> Tensor:
    """Where x is infinite.

    >>> mg.isinf(mg.asarray([1.0, -mg.inf])).tolist()
    [False, True]
    """
    return equal(abs(x), math.inf) if x.dtype.kind == "f" else not_equal(x, x)


@method
def isfinite(x: Tensor) -> Tensor:
    """Where x is neither infinite nor a nan.

    >>> mg.isfinite(mg.asarray([1.0, mg.inf, mg.nan])).tolist()
    [True, False, False]
    """
    return less(abs(x), math.inf) if x.dtype.kind == "f" else equal(x, x)


# Logic ----------------------------------------------------------------------------------------------------------------


def _truth(x: Any) -> Any:
    x = as_tensor(x)
    return x if x.dtype is dtypes.bool else not_equal(x, 0)


@method
@composed
def logical_and(x: Any, y: Any) -> Tensor:
    """Where both are true (not zero).

    >>> mg.logical_and(mg.asarray([True, True]), mg.asarray([True, False])).tolist()
    [True, False]
    """
    return bitwise_and(_truth(x), _truth(y))


@method
@composed
def logical_or(x: Any, y: Any) -> Tensor:
    """Where either is true (not zero).

    >>> mg.logical_or(mg.asarray([False, True]), mg.asarray([False, False])).tolist()
    [False, True]
    """
    return bitwise_or(_truth(x), _truth(y))


@composed
def logical_xor(x: Any, y: Any) -> Tensor:
    """Where one of them is true (not zero), and not both.

    >>> mg.logical_xor(mg.asarray([True, True]), mg.asarray([True, False])).tolist()
    [False, True]
    """
    return bitwise_xor(_truth(x), _truth(y))


@method
@composed
def logical_not(x: Any) -> Tensor:
    """Where x is false (zero).

    >>> mg.logical_not(mg.asarray([True, False])).tolist()
    [False, True]
    """
    return bitwise_invert(_truth(x))


# Arithmetic and rounding ----------------------------------------------------------------------------------------------


@method
def __pos__(x: Tensor) -> Tensor:
    return x.copy()


def positive(x: Tensor) -> Tensor:
    """The same numbers.

    >>> mg.positive(mg.asarray([1.0, -2.0])).tolist()
    [1.0, -2.0]
    """
    return as_tensor(x).copy()


def conj(x: Tensor) -> Tensor:
    """The complex conjugate.  All tensors are real, so this is a copy of the numbers.

    >>> mg.conj(mg.asarray([1.0, -2.0])).tolist()
    [1.0, -2.0]
    """
    return positive(x)


def real(x: Tensor) -> Tensor:
    """The real part.  All tensors are real, so this is a copy of the numbers.

    >>> mg.real(mg.asarray([1.0, -2.0])).tolist()
    [1.0, -2.0]
    """
    return positive(x)


def imag(x: Tensor) -> Tensor:
    """The imaginary part.  All tensors are real, so the result is zeros.

    >>> mg.imag(mg.asarray([1.0, -2.0])).tolist()
    [0.0, 0.0]
    """
    return zeros_like(x)


@method
def square(x: Tensor) -> Tensor:
    """x times x.

    >>> mg.square(mg.asarray([3.0])).tolist()
    [9.0]
    """
    return multiply(x, x)


@method
def reciprocal(x: Tensor) -> Tensor:
    """1 / x.

    >>> mg.reciprocal(mg.asarray([4.0])).tolist()
    [0.25]
    """
    return divide(1, x)


@method
@composed
def ceil(x: Tensor) -> Tensor:
    """The next integer above, in the same dtype.  No gradient flows through it.

    >>> mg.ceil(mg.asarray([1.5, -1.5])).tolist()
    [2.0, -1.0]
    """
    return negative(floor(negative(x)))


@method
@composed
def trunc(x: Tensor) -> Tensor:
    """The next integer towards zero, in the same dtype.  No gradient flows through it.

    >>> mg.trunc(mg.asarray([1.5, -1.5])).tolist()
    [1.0, -1.0]
    """
    return where(less(x, 0), ceil(x), floor(x))


@composed
def hypot(x: Any, y: Any) -> Tensor:
    """The length of the hypotenuse, the root of x*x + y*y, without overflow.

    >>> mg.hypot(mg.asarray([3.0, 3e30]), mg.asarray([4.0, 4e30])).tolist()
    [5.0, 4.999999...e+30]
    """
    x, y = _two_floats(x, y)
    larger = maximum(abs(x), abs(y)).detach()
    scale = where(greater(larger, 0.0), larger, 1.0)
    scale = where(isfinite(scale), scale, 1.0)  # any scale gives the same result, so it has no gradient
    a, b = x / scale, y / scale
    return where(logical_or(isinf(x), isinf(y)), math.inf, scale * sqrt(a * a + b * b))


# Logarithms -----------------------------------------------------------------------------------------------------------


@composed
def exp2(x: Tensor) -> Tensor:
    """2 to the power of x.

    >>> mg.exp2(mg.asarray([0.0, 3.0])).tolist()
    [1.0, 8.0]
    """
    return power(2.0, x)


@method
@composed
def log2(x: Tensor) -> Tensor:
    """The logarithm to base 2, exact for powers of 2.

    >>> mg.log2(mg.asarray([1.0, 8.0])).tolist()
    [0.0, 3.0]
    """
    return _log_to_base(x, 2.0)


@method
@composed
def log10(x: Tensor) -> Tensor:
    """The logarithm to base 10, exact for powers of 10.

    >>> mg.log10(mg.asarray([1.0, 1000.0])).tolist()
    [0.0, 3.0]
    """
    return _log_to_base(x, 10.0)


def _log_to_base(x: Tensor, base: float) -> Tensor:
    y = log(x) * (1 / math.log(base))
    value = y.detach()
    near = round(value)
    exact = logical_and(equal(power(base, near), x), isfinite(value))
    return y + where(exact, near - value, 0.0)


@composed
def logaddexp(x: Any, y: Any) -> Tensor:
    """log(exp(x) + exp(y)), without overflow.

    >>> mg.logaddexp(mg.asarray([1000.0]), mg.asarray([1000.0])).tolist()
    [1000.693...]
    """
    x, y = _two_floats(x, y)
    swapped = less(x, y)
    high, low = where(swapped, y, x), where(swapped, x, y)
    alike = logical_and(equal(x, y), isinf(x))  # inf - inf would be a nan
    return high + log1p(exp(where(alike, 0.0, low - high)))


# Trigonometric and hyperbolic functions -------------------------------------------------------------------------------


@method
@composed
def tan(x: Tensor) -> Tensor:
    """The tangent.

    >>> mg.tan(mg.asarray([0.0])).tolist()
    [0.0]
    """
    return sin(x) / cos(x)


@composed
def asin(x: Tensor) -> Tensor:
    """The angle whose sine is x.

    >>> mg.asin(mg.asarray([1.0])).tolist()
    [1.570796...]
    """
    return atan2(x, sqrt(1.0 - x) * sqrt(1.0 + x))  # of one root, the slope at the ends would be nan


@composed
def acos(x: Tensor) -> Tensor:
    """The angle whose cosine is x.

    >>> mg.acos(mg.asarray([1.0, -1.0])).tolist()
    [0.0, 3.14159...]
    """
    return 2.0 * atan2(sqrt(1.0 - x), sqrt(1.0 + x))


def atan(x: Tensor) -> Tensor:
    """The angle whose tangent is x.

    >>> mg.atan(mg.asarray([1.0])).tolist()
    [0.785398...]
    """
    return atan2(x, 1.0)


@composed
def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine: (exp(x/2)² - exp(-x/2)²) / 2, from squares that only overflow if the result does.

    >>> mg.sinh(mg.asarray([0.0, -0.0])).tolist()
    [0.0, -0.0]
    """
    half = x * 0.5
    up, down = expm1(half), expm1(negative(half))
    return up * (1.0 + up * 0.5) - down * (1.0 + down * 0.5)


@composed
def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine.

    >>> mg.cosh(mg.asarray([0.0])).tolist()
    [1.0]
    """
    half = x * 0.5  # exp(x) would overflow where exp(x / 2) does not
    up, down = exp(half), exp(negative(half))
    return (0.5 * up) * up + (0.5 * down) * down


@composed
def asinh(x: Tensor) -> Tensor:
    """The number whose hyperbolic sine is x.

    >>> mg.asinh(mg.asarray([0.0, mg.inf])).tolist()
    [0.0, inf]
    """
    small = less(abs(x), 1.0)
    near = where(small, x, 0.0)
    near = 2.0 * atanh(near / (1.0 + sqrt(near * near + 1.0)))
    far = abs(where(small, 1.0, x))
    below = 1.0 / far  # at infinity, its square is smooth and 1 / far² is not
    far = log(far) + log(1.0 + sqrt(1.0 + below * below))
    return where(small, near, far * sign(x))


@composed
def acosh(x: Tensor) -> Tensor:
    """The non-negative number whose hyperbolic cosine is x.

    >>> mg.acosh(mg.asarray([1.0])).tolist()
    [0.0]
    """
    return 2.0 * asinh(sqrt((x - 1.0) * 0.5))


@composed
def atanh(x: Tensor) -> Tensor:
    """The number whose hyperbolic tangent is x.

    >>> mg.atanh(mg.asarray([0.0, 1.0])).tolist()
    [0.0, inf]
    """
    return 0.5 * (log1p(x) - log1p(negative(x)))
