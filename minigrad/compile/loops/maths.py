"""Functions of floats as arithmetic without branches, which compilers vectorise on every processor.

Each function follows the same plan: reduce the argument to a small range, where a short polynomial is exact to the last
place, then undo the reduction on the result.  Errors are 1 to 3 units in the last place; infinities, nan, -0.0 and
numbers near 0 give the right results.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...devices.special import P as ERF_EXPONENT
from ...devices.special import R as ERF_TERMS
from .ir import DOUBLE, FLOAT, Writer

INFINITY, NAN = float("inf"), float("nan")
LOG2_E = 1.4426950408889634


class Constants(NamedTuple):
    """The numbers of one dtype.  Coefficients have the highest power first."""

    rounding: float  # a sum with this number is rounded to a whole number: its last bits
    rounding_bits: int  # the bits of `rounding`
    ln2: tuple[float, float]  # ln 2 in two parts, the first with so few bits that its multiples are exact
    exp_terms: tuple[float, ...]  # (eʳ - 1 - r) / r² for |r| ≤ ln(2)/2
    exp_least: float  # exp is 0 below,
    exp_most: float  # and infinite above
    tanh_most: float  # tanh is 1 from here on
    half_root: int  # the bits of √½
    tiny: float  # smaller numbers are denormal: their exponent bits are 0
    log_terms: tuple[float, ...]


SINGLE = Constants(
    rounding=1.5 * 2.0**23, rounding_bits=0x4B400000, ln2=(0.693359375, -2.12194440e-4),
    exp_terms=(
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
    ),
    exp_least=-104.0, exp_most=89.0, tanh_most=10.0, half_root=0x3F3504F3, tiny=1.17549435e-38,
    log_terms=(  # (ln(1 + m) - m + m²/2) / m³ for 1 + m from √½ to √2
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    ),
)
WIDE = Constants(
    rounding=1.5 * 2.0**52, rounding_bits=0x4338000000000000, ln2=(6.93147180369123816e-01, 1.90821492927058770e-10),
    exp_terms=(
        2.5114474429578448e-08, 2.7626296687374066e-07, 2.7557227967184036e-06, 2.4801504539162445e-05,
        0.00019841269902992465, 0.0013888888932279454, 0.008333333333314624, 0.04166666666657404, 0.16666666666666685,
        0.5000000000000006,
    ),
    exp_least=-746.0, exp_most=710.0, tanh_most=20.0, half_root=0x3FE6A09E667F3BCD, tiny=2.2250738585072014e-308,
    log_terms=(  # (ln((1 + s) / (1 - s)) / s - 2) / s² for |s| ≤ 0.172, in powers of s²
        1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
        2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01,
    ),
)
CONSTANTS = {FLOAT: SINGLE, DOUBLE: WIDE}


def exp(w: Writer, x: str) -> str:
    """eˣ = 2ⁿ eʳ, where n is the nearest whole number to x / ln 2.

    An argument for which the result is 0 is replaced first, because arithmetic near 0 takes 100 times as long.
    """
    return exp_of_sum(w, x, None)


def exp_of_sum(w: Writer, x: str, rest: Any) -> str:
    """The power of e for the sum of x and a small rest."""
    least, most = CONSTANTS[w.dtype].exp_least, CONSTANTS[w.dtype].exp_most
    vanishes = w.lt(x, least)
    limited = w.select(vanishes, 0.0, x)
    limited = w.select(w.lt(most, limited), most, limited)
    n, grown = _grown(w, limited, rest)
    half = w.whole("rshift", n, 1)  # in two steps: 2ⁿ alone may be too large or too small for a float
    value = w.mul(w.mul(w.add(grown, 1.0), w.power(half)), w.power(w.whole("sub", n, half)))
    return w.select(vanishes, 0.0, value)


def expm1(w: Writer, x: str) -> str:
    """eˣ - 1 = 2ⁿ (eʳ - 1) + (2ⁿ - 1), which keeps all places for x near 0."""
    most, bias = CONSTANTS[w.dtype].exp_most, w.layout.bias
    limited = w.select(w.lt(x, -40.0), -40.0, x)
    limited = w.select(w.lt(most, limited), most, limited)
    n, grown = _grown(w, limited)
    last = w.whole("min", n, bias)  # one power higher is not a float; the last doubling comes at the end
    power = w.power(last)
    doubled = w.select(w.lt(bias, n), 2.0, 1.0)
    value = w.mul(w.mul_add(power, grown, w.sub(power, w.div(1.0, doubled))), doubled)
    return w.select(w.eq(x, 0.0), x, value)  # -0.0 stays -0.0


def _grown(w: Writer, x: str, more: Any = None) -> tuple[str, str]:
    """n, an integer, and eʳ - 1, where x (and `more`, if it is given) is n ln 2 + r and |r| ≤ ln(2) / 2."""
    c = CONSTANTS[w.dtype]
    shifted = w.mul_add(x, LOG2_E, c.rounding)
    n = w.sub(shifted, c.rounding)
    rest = w.sub_mul(w.sub_mul(x, n, c.ln2[0]), n, c.ln2[1])
    rest = rest if more is None else w.add(rest, more)
    grown = w.mul_add(w.polynomial(rest, c.exp_terms), w.mul(rest, rest), rest)
    return w.whole("sub", w.whole("bitcast", shifted), c.rounding_bits), grown


def log(w: Writer, x: str) -> str:
    """ln x = k ln 2 + ln(1 + m), 1 + m between √½ and √2."""
    exponent, m = parted(w, x)
    value = (_log_in_powers if w.dtype == FLOAT else _log_in_ratios)(w, exponent, m)
    value = w.select(w.eq(x, INFINITY), INFINITY, value)
    value = w.select(w.eq(x, 0.0), -INFINITY, value)
    value = w.select(w.lt(x, 0.0), NAN, value)
    return w.select(w.eq(x, x), value, x)


def parted(w: Writer, x: str, denormal: bool = True) -> tuple[str, str]:
    """k, as a float, and m, where a positive x is 2ᵏ (1 + m), and 1 + m lies between √½ and √2.

    `denormal`: x may be denormal.
    """
    c, mantissa, normal = CONSTANTS[w.dtype], w.layout.mantissa, x
    if denormal:
        tiny = w.lt(x, c.tiny)
        normal = w.select(tiny, w.mul(x, 2.0**mantissa), x)
    bits = w.whole("bitcast", normal)
    k = w.whole("rshift", w.whole("sub", bits, c.half_root), mantissa)
    fraction = w.whole("sub", bits, w.whole("lshift", k, mantissa))
    m = w.sub(w.bitcast(fraction), 1.0)
    exponent = w.cast(k)
    return w.sub(exponent, w.select(tiny, float(mantissa), 0.0)) if denormal else exponent, m


def _log_in_powers(w: Writer, exponent: str, m: str) -> str:
    c, square = CONSTANTS[w.dtype], w.mul(m, m)
    value = w.mul(w.mul(w.polynomial(m, c.log_terms), m), square)
    value = w.sub_mul(w.mul_add(exponent, c.ln2[1], value), square, 0.5)
    return w.mul_add(exponent, c.ln2[0], w.add(m, value))


def _log_in_ratios(w: Writer, exponent: str, m: str) -> str:
    """The series in s = m / (2 + m) needs half as many terms, and a division."""
    c = CONSTANTS[w.dtype]
    s, half = w.div(m, w.add(m, 2.0)), w.mul(w.mul(m, 0.5), m)
    square = w.mul(s, s)
    series = w.mul(w.polynomial(square, c.log_terms), square)
    value = w.mul_add(s, w.add(half, series), w.mul(exponent, c.ln2[1]))
    return w.mul_add(exponent, c.ln2[0], w.sub(m, w.sub(half, value)))


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
    most = CONSTANTS[w.dtype].tanh_most
    size = w.abs(x)
    capped = w.select(w.lt(most, size), most, size)
    n, grown = _grown(w, w.add(capped, capped))
    power = w.power(n)
    t = w.mul_add(power, grown, w.sub(power, 1.0))
    return w.copysign(w.div(t, w.add(t, 2.0)), x)  # -0.0 stays -0.0, too


def erf(w: Writer, x: str) -> str:
    """The formulas of eager mode: tanh(x + x R(x²)) for float32, 1 - exp(-(t + t P(t))) with t = |x| for float64."""
    if w.dtype == DOUBLE:
        size = w.abs(x)
        t = w.select(w.lt(6.0, size), 6.0, size)
        exponent = w.mul_add(w.polynomial(t, _from_highest(ERF_EXPONENT)), t, t)
        return w.copysign(expm1(w, w.neg(exponent)), x)
    limited = w.select(w.lt(4.05, x), 4.05, x)
    limited = w.select(w.lt(limited, -4.05), -4.05, limited)
    square = w.mul(limited, limited)
    return tanh(w, w.mul_add(w.polynomial(square, _from_highest(ERF_TERMS)), limited, limited))


def _from_highest(terms: Any) -> tuple[float, ...]:
    return tuple(float(term) for term in terms[::-1])
