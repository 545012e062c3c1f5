"""Powers, as arithmetic without branches: see `maths`.

An error of the exponent y ln |x| is a relative error of the result.  So the logarithm has 11 more bits than the result:
the largest exponents have 11 bits before the point.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from .ir import DOUBLE, Operand, Writer
from .maths import INFINITY, NAN, WIDE, exp_of_sum, parted

# For float32, whose powers are computed in float64 and with base 2, highest power first:
# (log₂((1 + s) / (1 - s)) / s for |s| ≤ 0.172, in powers of s²; and 2ʳ for |r| ≤ ½.
LOG2_TERMS = (0.3407593670985646, 0.4116711343404347, 0.5770836115750759, 0.9617966732001593, 2.8853900817902027)
EXP2_TERMS = (
    0.0001534576607955036, 0.0013399957268125204, 0.00961848933452007, 0.05550328713226114, 0.24022646885238666,
    0.693147205766078, 1.0000000005551386,
)
BEYOND = 200.0  # 2 to this power is infinite in float32
# For float64: (ln((1 + s) / (1 - s)) / 2s - 1 - s²/3) / s⁴, and ⅓ in two parts.
LOG_TERMS = (
    0.06594811369495354, 0.06628808171009407, 0.07693359536526016, 0.09090892652439175, 0.11111111253811498,
    0.1428571428509025, 0.20000000000001025,
)
THIRD = 0.3333333333333333, 1.850371707708594e-17
HUGE = 2.0**100  # stands in for an infinite exponent: 0 ln 1 stays 0


def is_product(exponent: Any) -> bool:
    """Whether a power with this number as exponent is a product of a few factors.

    >>> is_product(-1.5), is_product(4), is_product(0.1)
    (True, False, False)
    """
    return bool(abs(exponent) <= 3 and 2 * exponent == int(2 * exponent))


def pow_of_number(w: Writer, x: str, y: Operand) -> str | None:
    """A product of a few x, their inverses and their root; None for an exponent that needs a logarithm."""
    if isinstance(y, str) or w.dtype.kind != "f" or y in (0, 1) or not is_product(y):
        return None
    factors = [x] * int(abs(y))
    if len(factors) < abs(y):  # -∞ to the power of ½ is infinite, and so is the inverse of -0.0
        x = w.select(w.eq(x, -INFINITY), INFINITY, w.add(x, 0.0))
        factors = [w.sqrt(x), *[x] * len(factors)]
    if y < 0:
        inverses = {factor: w.div(1.0, factor) for factor in dict.fromkeys(factors)}
        factors = [inverses[factor] for factor in factors]
    return reduce(w.mul, factors)


def pow(w: Writer, x: str, y: str) -> str | None:
    """xʸ, with NumPy's values for zeros, infinities and negative numbers."""
    if w.dtype == DOUBLE and not w.fused:
        return None
    size = w.abs(x)
    finite = w.select(w.eq(w.abs(y), INFINITY), w.copysign(HUGE, y), y)
    ordinary = w.both(w.lt(0.0, size), w.lt(size, INFINITY))
    edge = w.select(w.eq(size, 0.0), -INFINITY, size)  # the logarithm of zero, infinity and nan
    value = (_power if w.dtype == DOUBLE else _short_power)(w, size, finite, ordinary, edge)
    whole, half = w.eq(w.rint(y), y), w.mul(y, 0.5)
    odd = w.both(whole, w.logic("invert", w.eq(w.rint(half), half)))
    value = w.select(odd, w.copysign(value, x), value)
    has_no_root = w.both(w.both(w.lt(x, 0.0), ordinary), w.logic("invert", whole))
    value = w.select(has_no_root, NAN, value)
    return w.select(w.logic("or", w.eq(y, 0.0), w.eq(x, 1.0)), 1.0, value)


def _short_power(w: Writer, size: str, y: str, ordinary: str, edge: str) -> str:
    """A power of float32: 2 to the power of y log₂ |x|."""
    wide = w.of(DOUBLE)
    exponent, m = parted(wide, wide.cast(size), denormal=False)
    s = wide.div(m, wide.add(m, 2.0))
    logarithm = wide.mul_add(wide.polynomial(wide.mul(s, s), LOG2_TERMS), s, exponent)
    power = wide.mul(wide.cast(y), wide.select(ordinary, logarithm, wide.cast(edge)))
    power = wide.select(w.lt(power, -BEYOND), -BEYOND, power)
    power = wide.select(w.lt(BEYOND, power), BEYOND, power)
    shifted = wide.add(power, WIDE.rounding)
    rest = wide.sub(power, wide.sub(shifted, WIDE.rounding))
    n = wide.whole("sub", wide.whole("bitcast", shifted), WIDE.rounding_bits)
    return w.cast(wide.mul(wide.polynomial(rest, EXP2_TERMS), wide.power(n)))


def _power(w: Writer, size: str, y: str, ordinary: str, edge: str) -> str:
    """A power of float64: the power of e for y ln |x|, as a sum of two."""
    logarithm, rest = _accurate_log(w, size)
    logarithm = w.select(ordinary, logarithm, edge)
    power = w.mul(y, logarithm)
    more = w.add(w.fma(y, logarithm, w.neg(power)), w.mul(y, rest))
    return exp_of_sum(w, power, w.select(w.lt(w.abs(power), HUGE), more, 0.0))


def _accurate_log(w: Writer, x: str) -> tuple[str, str]:
    """The logarithm of a positive float64 as the sum of two: 2s + 2s³ (⅓ + s² Q(s²)) + k ln 2 with s = m / (2 + m)."""
    exponent, m = parted(w, x)
    below = w.add(m, 2.0)
    lost = w.sub(m, w.sub(below, 2.0))
    inverse = w.div(1.0, below)
    s = w.mul(m, inverse)
    s_more = w.mul(w.sub(w.fma(w.neg(s), below, m), w.mul(s, lost)), inverse)
    square = w.mul(s, s)
    square_more = w.add(w.fma(s, s, w.neg(square)), w.mul(w.mul(s, s_more), 2.0))
    series = w.mul(w.polynomial(square, LOG_TERMS), square)
    factor = w.add(series, THIRD[0])
    factor_more = w.add(w.sub(series, w.sub(factor, THIRD[0])), THIRD[1])
    cube = w.mul(s, square)
    cube_more = w.add(w.fma(s, square, w.neg(cube)), w.add(w.mul(s, square_more), w.mul(s_more, square)))
    term = w.mul(cube, factor)
    term_more = w.add(w.fma(cube, factor, w.neg(term)), w.add(w.mul(cube, factor_more), w.mul(cube_more, factor)))
    multiple, twice, double = w.mul(exponent, WIDE.ln2[0]), w.add(s, s), w.add(term, term)
    first = w.add(multiple, twice)
    total = w.add(first, double)
    small = w.add(w.sub(twice, w.sub(first, multiple)), w.sub(double, w.sub(total, first)))
    small = w.add(small, w.mul(w.add(s_more, term_more), 2.0))
    return total, w.add(small, w.mul(exponent, WIDE.ln2[1]))
