"""Functions of float32 as arithmetic without branches, which compilers vectorise on every processor.

Each function follows the same plan: reduce the argument to a small range, where a short polynomial is exact to the last
place, then undo the reduction on the result.  Errors are 1 to 3 units in the last place; infinities, nan, -0.0 and
numbers near 0 give the right results.
"""

from __future__ import annotations

from math import pi
from typing import Any

from ...devices.special import R as ERF_TERMS
from .ir import DOUBLE, FLOAT, INT
from .writer import MANTISSA, Writer

INFINITY = float("inf")

LOG2_E = 1.44269504
LN2 = 0.693359375, -2.12194440e-4  # ln 2 in two parts, the first with so few bits that its multiples are exact
# (eʳ - 1 - r) / r² for |r| ≤ ln(2)/2, highest power first.
EXP_TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
# (ln(1 + m) - m + m²/2) / m³ for 1 + m from √½ to √2.
LOG_TERMS = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)
# (sin t - t) / t³ and (cos t - 1 + t²/2) / t⁴ for |t| ≤ π/4, in powers of t².
SIN_TERMS = (-1.95140834e-4, 8.3321547e-3, -1.66666552e-1)
COS_TERMS = (2.44348448e-5, -1.38873374e-3, 4.16666456e-2)
TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A  # its bits behind the point
STRETCH = 24  # exponents of two that use the same parts of 2/π
EXP_LEAST, EXP_MOST = -104.0, 89.0  # exp is 0 below, and infinite above
HALF_ROOT = 0x3F3504F3  # the bits of √½ as an integer
# Adding ROUNDING to a number below 2²² rounds it: the bits of the sum, minus ROUNDING_BITS, are a whole number.
ROUNDING, ROUNDING_BITS = 1.5 * 2.0**MANTISSA, 0x4B400000


def exp(w: Writer, x: str) -> str:
    """eˣ = 2ⁿ eʳ, where n is the nearest whole number to x / ln 2.

    An argument for which the result is 0 is replaced first, because arithmetic near 0 takes 100 times as long.
    """
    vanishes = w.lt(x, EXP_LEAST)
    limited = w.select(vanishes, 0.0, x)
    limited = w.select(w.lt(EXP_MOST, limited), EXP_MOST, limited)
    n, grown = _grown(w, limited)
    half = w.whole("rshift", n, 1)  # in two steps: 2ⁿ alone may be too large or too small for a float
    value = w.mul(w.mul(w.add(grown, 1.0), w.power(half)), w.power(w.whole("sub", n, half)))
    return w.select(vanishes, 0.0, value)


def expm1(w: Writer, x: str) -> str:
    """eˣ - 1 = 2ⁿ (eʳ - 1) + (2ⁿ - 1), which keeps all places for x near 0."""
    limited = w.select(w.lt(x, -40.0), -40.0, x)
    limited = w.select(w.lt(EXP_MOST, limited), EXP_MOST, limited)
    n, grown = _grown(w, limited)
    last = w.whole("min", n, 127)  # 2¹²⁸ is not a float; the last doubling comes at the end
    power = w.power(last)
    doubled = w.select(w.lt(127, n), 2.0, 1.0)
    value = w.mul(w.add(w.mul(power, grown), w.sub(power, w.div(1.0, doubled))), doubled)
    return w.select(w.eq(x, 0.0), x, value)  # -0.0 stays -0.0


def _grown(w: Writer, x: str) -> tuple[str, str]:
    """n, an int32, and eʳ - 1, where x is n ln 2 + r and |r| ≤ ln(2) / 2."""
    shifted = w.add(w.mul(x, LOG2_E), ROUNDING)
    n = w.sub(shifted, ROUNDING)
    rest = w.sub(w.sub(x, w.mul(n, LN2[0])), w.mul(n, LN2[1]))
    grown = w.add(w.mul(w.polynomial(rest, EXP_TERMS), w.mul(rest, rest)), rest)
    return w.whole("sub", w.let("bitcast", (shifted,), INT), ROUNDING_BITS), grown


def log(w: Writer, x: str) -> str:
    """ln x = k ln 2 + ln(1 + m), 1 + m between √½ and √2."""
    tiny = w.lt(x, 1.17549435e-38)  # denormal: its exponent bits are 0
    normal = w.select(tiny, w.mul(x, 8388608.0), x)
    bits = w.let("bitcast", (normal,), INT)
    k = w.whole("rshift", w.whole("sub", bits, HALF_ROOT), MANTISSA)
    fraction = w.whole("sub", bits, w.whole("lshift", k, MANTISSA))
    m = w.sub(w.let("bitcast", (fraction,), FLOAT), 1.0)
    exponent = w.sub(w.let("cast", (k,), FLOAT), w.select(tiny, 23.0, 0.0))
    square = w.mul(m, m)
    value = w.mul(w.mul(w.polynomial(m, LOG_TERMS), m), square)
    value = w.sub(w.add(value, w.mul(exponent, LN2[1])), w.mul(square, 0.5))
    value = w.add(w.add(m, value), w.mul(exponent, LN2[0]))
    value = w.select(w.eq(x, INFINITY), INFINITY, value)
    value = w.select(w.eq(x, 0.0), -INFINITY, value)
    value = w.select(w.lt(x, 0.0), float("nan"), value)
    return w.select(w.eq(x, x), value, x)


def log1p(w: Writer, x: str) -> str:
    """ln(1 + x), plus a first-order term for the rounding error of 1 + x."""
    u = w.add(1.0, x)
    lost = w.sub(x, w.sub(u, 1.0))
    value = w.add(log(w, u), w.div(lost, u))
    value = w.select(w.eq(u, 1.0), x, value)
    value = w.select(w.eq(x, -1.0), -INFINITY, value)
    return w.select(w.eq(u, INFINITY), x, value)


def tanh(w: Writer, x: str) -> str:
    """t / (t + 2) with t = exp(2|x|) - 1, which keeps all places for x near 0."""
    size = w.abs(x)
    capped = w.select(w.lt(10.0, size), 10.0, size)
    n, grown = _grown(w, w.add(capped, capped))
    power = w.power(n)
    t = w.add(w.mul(power, grown), w.sub(power, 1.0))
    return w.copysign(w.div(t, w.add(t, 2.0)), x)  # -0.0 stays -0.0, too


def erf(w: Writer, x: str) -> str:
    """tanh(x + x R(x²)), the formula of eager mode."""
    limited = w.select(w.lt(4.05, x), 4.05, x)
    limited = w.select(w.lt(limited, -4.05), -4.05, limited)
    square = w.mul(limited, limited)
    terms = tuple(float(term) for term in ERF_TERMS[::-1])
    return tanh(w, w.add(w.mul(w.polynomial(square, terms), limited), limited))


def sin(w: Writer, x: str) -> str:
    """The sine or cosine of the rest of x after whole quarter turns, with the sign of the quarter."""
    rest, quarter = _turned(w, x)
    return w.select(w.eq(x, 0.0), x, _quarter(w, rest, quarter))  # -0.0 stays -0.0


def cos(w: Writer, x: str) -> str:
    """The sine, a quarter turn ahead."""
    rest, quarter = _turned(w, x)
    return _quarter(w, rest, w.whole("add", quarter, 1))


def _quarter(w: Writer, rest: str, quarter: str) -> str:
    square = w.mul(rest, rest)
    sine = w.add(w.mul(w.mul(w.polynomial(square, SIN_TERMS), square), rest), rest)
    cosine = w.mul(w.polynomial(square, COS_TERMS), w.mul(square, square))
    cosine = w.add(w.sub(cosine, w.mul(square, 0.5)), 1.0)
    value = w.select(w.eq(w.whole("and", quarter, 1), 0), sine, cosine)
    return w.select(w.eq(w.whole("and", quarter, 2), 0), value, w.neg(value))


def _turned(w: Writer, x: str) -> tuple[str, str]:
    """The rest of x after n quarter turns, at most π/4, and n, for every x.

    x · 2/π is needed modulo 4 with an error below 2⁻⁵³.  So 2/π is cut into short parts, whose products with a float32
    are exact in float64.  For large x, the first bits of 2/π only add multiples of 4, and are left out.
    """

    def wide(op: str, *args: Any) -> str:
        return w.let(op, args, DOUBLE)

    size, exact = w.abs(x), wide("cast", x)
    parts: list[Any] = list(_parts_of_two_over_pi(0))
    for stretch in range(1, 128 // STRETCH + 1):
        small = w.lt(size, 2.0 ** (STRETCH * stretch))
        parts = [wide("select", small, old, new) for old, new in zip(parts, _parts_of_two_over_pi(stretch))]
    first, second, third = [wide("mul", exact, part) for part in parts]
    first, second = [
        wide("sub", product, wide("mul", wide("rint", wide("mul", product, 0.25)), 4.0)) for product in (first, second)
    ]
    n = wide("rint", wide("add", first, second))
    rest = wide("add", wide("add", wide("sub", first, n), second), third)
    return w.let("cast", (wide("mul", rest, pi / 2),), FLOAT), w.whole("whole", n)


def _parts_of_two_over_pi(stretch: int) -> tuple[float, float, float]:
    """Three parts of 2/π with 29, 29 and 53 bits, from bit 2²⁴⁻²⁴ˢ on.

    >>> import math
    >>> sum(_parts_of_two_over_pi(0)) * math.pi
    2.0
    """
    width = TWO_OVER_PI.bit_length()
    start = max(0, STRETCH * (stretch - 1) - 1)  # bits to skip
    parts = []
    for length in (29, 29, 53):
        bits = TWO_OVER_PI >> (width - start - length) & ((1 << length) - 1)
        start += length
        parts.append(float(bits) * 2.0**-start)
    return parts[0], parts[1], parts[2]
