"""Functions that NumPy lacks, leaves undefined, or computes many times slower than necessary.

These are `erf`, casts of floats to integers, and `where`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..support.errors import IndexingError

# The error function -------------------------------------------------------------------------------------------------
#
# float32: erf(x) = tanh(x + x R(x²)).  Two terms of R are the well-known approximation in GELU; ten are float32.
# float64: erf(t) = 1 - exp(-(t + t P(t))) for t = |x|, because tanh takes twice as long as expm1 there.
#
# Both are good by their form: tanh and expm1 shrink a relative error of their argument, the more the larger it is.  So
# the polynomials need not be good where erf is nearly 1, and were fitted so that the largest relative error of *erf* is
# as small as it can be (9e-9 and 7e-17).  Rounding adds to it: 2.2 units in the last place at most in float32 (more
# than 2 for one number in 10,000) and 2 in float64.

R = np.array([
    0.128379179, 0.102772153, -0.000206592387, -0.00059541885, 6.94159806e-05, 1.28362183e-06, -1.27829383e-06,
    1.54698221e-07, -8.36728089e-09, 1.75938807e-10,
], np.float32)
P = np.array([
    0.12837916709551248, 0.6366197723676119, 0.10277260330005651, -0.01912844696307523, -0.00020919522992183674,
    0.0016962105267870591, -0.0005901467976326101, 2.595515709133339e-05, 6.429012102566563e-05,
    -2.9323704992756993e-05, 2.796031119388289e-06, 3.5645863729060676e-06, -2.429789466456644e-06,
    8.537617157522252e-07, -1.7414509824540507e-07, 8.403092460370853e-09, 7.768979839101943e-09,
    -3.149026453442571e-09, 6.801961200922345e-10, -9.534312942090008e-11, 8.70661247008436e-12,
    -4.745844773792378e-13, 1.1774434061537548e-14,
])
ONE_FROM: dict[Any, Any] = {  # erf is 1 from here on
    np.dtype(np.float32): np.float32(4.05),
    np.dtype(np.float64): np.float64(6.0),
}
BLOCK = 1 << 14  # elements: the temporaries of a block stay in the cache


def erf(x: Any, out: Any = None) -> Any:
    """The error function of a NumPy array of floats.

    >>> erf(np.array([0.0, -np.inf, np.nan], np.float32))
    array([ 0., -1., nan], dtype=float32)
    """
    if x.dtype == np.float16:
        half = erf(x.astype(np.float32)).astype(np.float16)
        return half if out is None else _copied(half, out)
    result = out if out is not None and out.flags.c_contiguous else np.empty(x.shape, x.dtype)
    block = _tanh_of_polynomial if x.dtype == np.float32 else _one_minus_exponential
    flat, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        block(flat[start : start + BLOCK], target[start : start + BLOCK])
    return result if out is None or out is result else _copied(result, out)


def _copied(result: Any, out: Any) -> Any:
    out[...] = result
    return out


def _tanh_of_polynomial(x: Any, out: Any) -> None:
    limit = ONE_FROM[x.dtype]
    np.minimum(x, limit, out=out)
    np.maximum(out, -limit, out=out)
    argument = horner(R, out * out)
    argument *= out
    out += argument
    np.tanh(out, out=out)


def _one_minus_exponential(x: Any, out: Any) -> None:
    size = np.abs(x)
    np.minimum(size, ONE_FROM[x.dtype], out=size)
    exponent = horner(P, size)
    exponent *= size
    exponent += size
    np.negative(exponent, out=exponent)
    np.expm1(exponent, out=exponent)
    np.copysign(exponent, x, out=out)


def horner(coefficients: Any, t: Any) -> Any:
    """A polynomial by its coefficients, lowest power first, in one array.

    >>> horner(np.array([3.0, 2.0, 1.0]), np.array([10.0]))
    array([123.])
    """
    total = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= t
    total += coefficients[0]
    return total


# Casts --------------------------------------------------------------------------------------------------------------


def cast(xp: Any, x: Any, dtype: Any, out: Any = None) -> Any:
    """An array of `xp` in a different dtype.  Floats beyond the range of an integer become the nearest one, and nan 0.

    NumPy leaves the result of such floats undefined: processors differ, and so do NumPy's own loops.

    >>> cast(np, np.array([2.7, -1e9, np.inf, np.nan]), np.dtype("int8")).tolist()
    [2, -128, 127, 0]
    """
    if dtype.kind in "iu" and x.dtype.kind == "f":
        x = _truncated(x, dtype) if xp is np else _saturated(xp, x, dtype)
    elif out is None:
        return x.astype(dtype)
    if out is None:
        return x
    xp.copyto(out, x, casting="unsafe")
    return out


def _truncated(x: Any, dtype: Any) -> Any:
    """`cast` for a NumPy array of floats.  A second pass is needed only if some float does not fit."""
    if x.dtype == np.float16 and x.size > 1:  # NumPy has no quick loops for it
        x = x.astype(np.float32)
    if _reports_misfits(x.dtype, dtype):
        found = _cast_or_none(x, dtype)
    else:
        found = x.astype(dtype) if _in_range(x, dtype) else None
    return _saturated(np, x, dtype) if found is None else found


@cache
def _reports_misfits(source: Any, target: Any) -> bool:
    """Whether NumPy reports each float that does not fit: not for small integers, and not in WebAssembly."""
    low, high = _open_range(source, target)
    arrays = [np.full(size, value) for value in (2 * low, high, source.type("nan")) for size in (1, 64)]
    return all(_cast_or_none(array, target) is None for array in arrays)


def _cast_or_none(x: Any, dtype: Any) -> Any:
    """NumPy's cast, or None where NumPy reports a float that does not fit."""
    try:
        with np.errstate(invalid="raise"):
            return x.astype(dtype)
    except FloatingPointError:
        return None


def _in_range(x: Any, dtype: Any) -> bool:
    low, high = _open_range(x.dtype, dtype)
    least, most = np.minimum.reduce(x, None, initial=0), np.maximum.reduce(x, None, initial=0)
    return bool(low < least and most < high)  # which a nan makes False


def _saturated(xp: Any, x: Any, dtype: Any) -> Any:
    low, high = _open_range(x.dtype, dtype)
    limits = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        whole = x.astype(dtype)
    xp.copyto(whole, dtype.type(limits.min), where=x <= low)
    xp.copyto(whole, dtype.type(limits.max), where=x >= high)
    xp.copyto(whole, dtype.type(0), where=x != x)
    return whole


@cache
def _open_range(source: Any, target: Any) -> tuple[Any, Any]:
    """Floats strictly between these two fit into the integer dtype when their fraction is cut off.

    >>> [float(bound) for bound in _open_range(np.dtype("float32"), np.dtype("uint8"))]
    [-1.0, 256.0]
    """
    limits = np.iinfo(target)
    with np.errstate(over="ignore"):  # in float16, 2 to the power of 31 is infinity
        return source.type(int(limits.min) - 1), source.type(int(limits.max) + 1)


# Choosing -----------------------------------------------------------------------------------------------------------


def choose_bits(condition: Any, x: Any, y: Any, out: Any) -> None:
    """`where` by arithmetic on bits.

    NumPy branches for each element, and the processor guesses half of them wrong.

    >>> out = np.empty(2)
    >>> choose_bits(np.array([True, False]), np.array([1.0, 2.0]), -0.5, out)
    >>> out.tolist()
    [1.0, -0.5]
    """
    bits = np.dtype(f"i{out.dtype.itemsize}")
    x, y = np.asarray(x, out.dtype).view(bits), np.asarray(y, out.dtype).view(bits)
    result = out.view(bits)
    mask = np.asarray(condition, bool).astype(bits)
    np.bitwise_xor(x, y, result)
    np.bitwise_and(result, np.negative(mask, mask), result)
    np.bitwise_xor(result, y, result)


# Indices ------------------------------------------------------------------------------------------------------------


def check_range(index: Any, size: int) -> None:
    """Raise an error if an index lies outside a dimension of this size.

    >>> check_range(np.array([0, 3]), 3)
    Traceback (most recent call last):
    minigrad.support.errors.IndexingError: index 3 is out of range for a dimension of size 3
    ...
    """
    # A small integer type could not be compared with a large size.
    index = index.astype("int64", copy=False)
    outside = (index < -size) | (index >= size)
    if outside.any():
        raise IndexingError(
            f"index {index[outside][0].item()} is out of range for a dimension of size {size}",
            expect=f"integers from {-size} to {size - 1}",
        )
