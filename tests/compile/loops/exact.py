"""Functions of float64 with 50 digits, computed by Python's decimal numbers on every machine alike."""

import math
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from minigrad.devices.special import erf

DIGITS = 50
SMALL = 1e-9  # from here on, four terms of a series are exact enough
NUMPY = {"erf": erf, "atan2": np.arctan2, "pow": np.power}


def units_off(op, result, *given):
    """The error of a result in units of its last place.

    Infinities, nans and zeros, and the results for them, must be those of NumPy.
    """
    with np.errstate(all="ignore"):
        known = float((NUMPY.get(op) or getattr(np, op))(*[np.full(2, x) for x in given])[0])
    if not math.isfinite(known) or known == 0 or 0 in given or not all(map(math.isfinite, given)):
        same = result == known and math.copysign(1, result) == math.copysign(1, known)
        return 0.0 if same or (math.isnan(result) and math.isnan(known)) else math.inf
    if not math.isfinite(result):
        return math.inf
    with localcontext() as context:
        context.prec = DIGITS
        true = EXACT[op](*[Decimal(float(x)) for x in given])
        return float(abs(Decimal(float(result)) - true) / Decimal(math.ulp(float(true))))


@cache
def pi(digits):
    """π by Machin's formula."""
    with localcontext() as context:
        context.prec = digits + 10
        return 4 * (4 * _series_of_atan(Decimal(1) / 5) - _series_of_atan(Decimal(1) / 239))


def _series_of_atan(t):
    return _summed(lambda k: (-1) ** k * t ** (2 * k + 1) / (2 * k + 1))


def _summed(term):
    total, k = Decimal(0), 0
    while True:
        before, total, k = total, total + term(k), k + 1
        if total == before:
            return total


def _expm1(x):
    return x + x * x / 2 + x**3 / 6 + x**4 / 24 + x**5 / 120 if abs(x) < SMALL else x.exp() - 1


def _log1p(x):
    return x - x * x / 2 + x**3 / 3 - x**4 / 4 + x**5 / 5 if abs(x) < SMALL else (1 + x).ln()


def _tanh(x):
    t = _expm1(2 * min(abs(x), Decimal(100)))
    return (t / (t + 2)).copy_sign(x)


def _erf(x):
    if abs(x) > 6:
        return Decimal(1).copy_sign(x)
    return 2 / pi(DIGITS).sqrt() * _summed(lambda k: (-1) ** k * x ** (2 * k + 1) / (math.factorial(k) * (2 * k + 1)))


def _sine(x, ahead=0):
    with localcontext() as context:
        context.prec = DIGITS + 30 + max(0, x.adjusted())
        quarter = pi(context.prec) / 2
        turns = (x / quarter).to_integral_value()
        rest = x - turns * quarter
    odd = (int(turns) + ahead) % 4
    start = odd % 2
    value = _summed(lambda k: (-1) ** k * rest ** (2 * k + 1 - start) / math.factorial(2 * k + 1 - start))
    return -value if odd > 1 else value


def _atan2(y, x):
    t = min(abs(x), abs(y)) / max(abs(x), abs(y))
    for _ in range(3):
        t = t / (1 + (1 + t * t).sqrt())
    angle = 8 * _series_of_atan(t)
    angle = pi(DIGITS) / 2 - angle if abs(y) > abs(x) else angle
    return (pi(DIGITS) - angle if x < 0 else angle).copy_sign(y)


def _pow(x, y):
    sign = -1 if x < 0 and int(y) % 2 else 1
    return sign * (y * abs(x).ln()).exp()


EXACT = {
    "exp": Decimal.exp, "expm1": _expm1, "log": Decimal.ln, "log1p": _log1p, "tanh": _tanh, "erf": _erf, "sin": _sine,
    "cos": lambda x: _sine(x, 1), "atan2": _atan2, "pow": _pow,
}
