"""Sine, cosine and the angle of a point, as arithmetic without branches: see `maths`.

A sine needs its argument modulo a whole turn, for arguments of any size.  So 2/π is cut into parts whose products with
the argument are exact.  For a large argument, the first parts only add whole turns, and are left out.
"""

from __future__ import annotations

from functools import reduce
from math import ldexp, pi
from typing import Any, NamedTuple

from .ir import DOUBLE, FLOAT, INT, Writer
from .maths import INFINITY

TWO_OVER_PI = int(  # its bits behind the point
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921CFE1DEB1C"
    "B129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F"
    "6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC20",
    16,
)
# The parts for a float32: 29 and 29 bits, whose products with it are exact in float64, and 53 more.  An argument uses
# the parts for its power of 2²⁴.
PARTS, STRETCH = (29, 29, 53), 24
# The parts for a float64, whose products are exact as the sum of two float64, and their powers of 2¹⁴⁷.
WIDE_PARTS, WIDE_STRETCH, WIDE_FIRST = (53,) * 6, 147, 201
SCALE = 200  # the power of 2 of the later parts, which would be denormal
GRIDS = 1.5 * 2.0**28, 1.5 * 2.0**-22  # a sum with these is rounded to multiples of 2⁻²⁴ and 2⁻⁷⁴
HALF_PI = 1.5707963267948966, 6.123233995736766e-17  # in two parts
SMALL_ANGLE = 0.7853981633974483  # π/4: sines of smaller arguments need no turning


class Series(NamedTuple):
    """Coefficients in powers of t², highest power first, for |t| ≤ π/4 (sine, cosine) and |t| ≤ tan(π/8) (atan)."""

    sine: tuple[float, ...]  # (sin t - t) / t³
    cosine: tuple[float, ...]  # (cos t - 1 + t²/2) / t⁴
    atan: tuple[float, ...]  # (atan t - t) / t³
    eighth: tuple[float, float]  # π/4 in two parts


SERIES = {
    FLOAT: Series(
        sine=(-1.95140834e-4, 8.3321547e-3, -1.66666552e-1),
        cosine=(2.44348448e-5, -1.38873374e-3, 4.16666456e-2),
        atan=(-6.079868972e-2, 0.10594727099, -0.1424369961, 0.1999848336, -0.33333316445),
        eighth=(0.7853981852531433, -2.1855694143368964e-08),
    ),
    DOUBLE: Series(
        sine=(
            1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
            -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01,
        ),
        cosine=(
            -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
            2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02,
        ),
        atan=(
            0.015188918935265843, -0.033468946488933324, 0.045033440360882616, -0.05218362947256244,
            0.05877017050582825, -0.06666226484158505, 0.07692282758188852, -0.09090908145543988, 0.11111111088244868,
            -0.1428571428538998, 0.19999999999997695, -0.33333333333333326,
        ),
        eighth=(SMALL_ANGLE, 3.061616997868383e-17),
    ),
}


def sin(w: Writer, x: str) -> str | None:
    """The sine or cosine of the rest of x after whole quarter turns, with the sign of the quarter."""
    if w.dtype == DOUBLE and not w.fused:
        return None
    rest, tail, quarter = (_turned if w.dtype == FLOAT else _turned_wide)(w, x)
    return w.select(w.eq(x, 0.0), x, _of_quarter(w, rest, tail, quarter))  # -0.0 stays -0.0


def cos(w: Writer, x: str) -> str | None:
    """The sine, a quarter turn ahead."""
    if w.dtype == DOUBLE and not w.fused:
        return None
    rest, tail, quarter = (_turned if w.dtype == FLOAT else _turned_wide)(w, x)
    return _of_quarter(w, rest, tail, w.let("add", (quarter, 1), INT))


def _of_quarter(w: Writer, rest: str, tail: Any, quarter: str) -> str:
    sine, cosine = _sine_and_cosine(w, rest, tail)
    value = w.select(w.eq(w.let("and", (quarter, 1), INT), 0), sine, cosine)
    return w.select(w.eq(w.let("and", (quarter, 2), INT), 0), value, w.neg(value))


def _sine_and_cosine(w: Writer, rest: str, tail: Any) -> tuple[str, str]:
    """The sine and the cosine of the sum of `rest`, at most π/4, and a small tail, None for 0."""
    series, square = SERIES[w.dtype], w.mul(rest, rest)
    if tail is None:
        sine = w.mul_add(w.mul(w.polynomial(square, series.sine), square), rest, rest)
        cosine = w.mul(w.polynomial(square, series.cosine), w.mul(square, square))
        return sine, w.add(w.sub_mul(cosine, square, 0.5), 1.0)
    half = w.mul(square, 0.5)
    near = w.sub(1.0, half)  # the cosine, which is the slope of the sine
    sine = w.add(rest, w.add(w.mul(w.mul(w.polynomial(square, series.sine), square), rest), w.mul(tail, near)))
    cosine = w.sub(w.mul(w.polynomial(square, series.cosine), w.mul(square, square)), w.mul(rest, tail))
    return sine, w.add(near, w.add(w.sub(w.sub(1.0, near), half), cosine))


def _turned(w: Writer, x: str) -> tuple[str, None, str]:
    """The rest of x, a float32, after n quarter turns, at most π/4, and n.  x · 2/π modulo 4 is accurate to 2⁻⁵³."""
    wide = w.of(DOUBLE)
    size, exact = w.abs(x), wide.cast(x)
    parts = _selected(w, wide, size, PARTS, STRETCH, STRETCH)
    first, second, third = [wide.mul(exact, part) for part in parts]
    first, second = [_without_turns(wide, product) for product in (first, second)]
    n = wide.rint(wide.add(first, second))
    rest = wide.add(wide.add(wide.sub(first, n), second), third)
    return w.cast(wide.mul(rest, pi / 2)), None, w.let("whole", (n,), INT)


def _turned_wide(w: Writer, x: str) -> tuple[str, str, str]:
    """The rest of x, a float64, after n quarter turns, as a sum of two float64, and n.

    x · 2/π modulo 4 is accurate to 2⁻¹¹⁷, because it may be within 2⁻⁶² of a whole number.  Each product with a part is
    a sum of two float64, and all of them are split at the same two places.  So the sums on the left are exact.
    """
    size, terms = w.abs(x), []
    scaled = w.select(w.lt(size, 2.0**WIDE_FIRST), x, w.mul(x, 2.0**-SCALE))
    for part in _selected(w, w, size, WIDE_PARTS, WIDE_STRETCH, WIDE_FIRST, SCALE):
        product = w.mul(scaled, part)
        terms += [product, w.fma(scaled, part, w.neg(product))]
    coarse: list[str] = []
    fine: list[str] = []
    last: list[str] = terms[9:11]  # so small that they are not split
    for number, term in enumerate(terms[:9]):
        term = _without_turns(w, term) if number < 7 else term
        coarse.append(w.sub(w.add(term, GRIDS[0]), GRIDS[0]))
        term = w.sub(term, coarse[-1])
        fine.append(w.sub(w.add(term, GRIDS[1]), GRIDS[1]))
        last.append(w.sub(term, fine[-1]))
    turns, parts, least = [reduce(w.add, listed) for listed in (coarse, fine, last)]
    n = w.rint(w.add(turns, parts))
    high, low = _two_sum(w, w.sub(turns, n), parts)
    low = w.add(low, least)
    rest = w.mul(high, HALF_PI[0])
    tail = w.add(w.fma(high, HALF_PI[0], w.neg(rest)), w.add(w.mul(high, HALF_PI[1]), w.mul(low, HALF_PI[0])))
    small = w.lt(size, SMALL_ANGLE)
    return w.select(small, x, rest), w.select(small, 0.0, tail), w.let("whole", (w.select(small, 0.0, n),), INT)


def _two_sum(w: Writer, x: str, y: str) -> tuple[str, str]:
    """A sum and its rounding error."""
    total = w.add(x, y)
    share = w.sub(total, x)
    return total, w.add(w.sub(x, w.sub(total, share)), w.sub(y, share))


def _without_turns(w: Writer, quarters: str) -> str:
    """A number of quarter turns, without the whole turns."""
    return w.sub(quarters, w.mul(w.rint(w.mul(quarters, 0.25)), 4.0))


def _selected(
    w: Writer, wide: Writer, size: str, lengths: tuple[int, ...], stretch: int, first: int, scale: int = 0
) -> list[Any]:
    """The parts of 2/π for an argument: those of its power of two, `first` + `stretch` · n.  Later parts are scaled."""
    parts: list[Any] = list(_parts_of_two_over_pi(0, lengths))
    largest = w.layout.bias + 1
    for start in range(0, largest - first + 1, stretch):
        small = w.lt(size, 2.0 ** (start + first))
        later = _parts_of_two_over_pi(start + first - w.layout.mantissa - 2, lengths, scale)
        parts = [wide.select(small, old, new) for old, new in zip(parts, later)]
    return parts


def _parts_of_two_over_pi(start: int, lengths: tuple[int, ...], scale: int = 0) -> list[float]:
    """Parts of 2/π of these lengths in bits, from a bit on, times a power of 2.

    >>> import math
    >>> sum(_parts_of_two_over_pi(0, PARTS)) * math.pi
    2.0
    """
    start, parts = max(start, 0), []
    for length in lengths:
        bits = TWO_OVER_PI >> (TWO_OVER_PI.bit_length() - start - length) & ((1 << length) - 1)
        start += length
        parts.append(ldexp(bits, scale - start))
    return parts


# Angles of points -----------------------------------------------------------------------------------------------------

TURNED_FROM = 0.4142135623730951  # tan(π/8): the angle of a larger ratio is computed from π/4 on


def atan2(w: Writer, height: str, width: str) -> str:
    """The angle of the ratio of the shorter side to the longer side, moved to the right eighth of the circle."""
    series, (eighth, more) = SERIES[w.dtype], SERIES[w.dtype].eighth
    tall, wide = w.abs(height), w.abs(width)
    steep = w.lt(wide, tall)
    short, long = w.select(steep, wide, tall), w.select(steep, tall, wide)
    huge = w.lt(2.0 ** (w.layout.bias - 1), long)  # then the sum of the sides may be infinite
    short, long = [w.select(huge, w.mul(side, 0.25), side) for side in (short, long)]
    turned = w.logic("or", w.lt(w.mul(long, TURNED_FROM), short), w.eq(short, INFINITY))
    ratio = w.div(w.select(turned, w.sub(short, long), short), w.select(turned, w.add(short, long), long))
    ratio = w.select(w.eq(short, long), 0.0, ratio)  # also for two zeros and two infinities
    square = w.mul(ratio, ratio)
    angle = w.mul_add(w.mul(w.polynomial(square, series.atan), square), ratio, ratio)
    angle = w.select(turned, w.add(w.add(angle, more), eighth), angle)
    behind = w.lt(w.copysign(1.0, width), 0.0)  # -0.0, too
    angle = w.select(w.logic("xor", steep, behind), w.neg(angle), angle)
    for part in (more, eighth):
        angle = w.add(angle, w.select(steep, 2 * part, w.select(behind, 4 * part, 0.0)))
    return w.copysign(angle, height)
