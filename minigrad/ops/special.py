"""Special functions of floats, composed from elementary ones: their gradients follow from the composition.

A branch that is not taken gets arguments at which it is finite, so no nan reaches its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.tensor import FloatTensor, Tensor
from .composite import composed
from .elementary import tan
from .elementwise import abs, erf, exp, log, log1p, round, sin, sqrt, where

__all__ = ["lgamma", "digamma", "erfinv"]

SHIFT = 8  # from here on, a few terms of the asymptotic series are exact to the last digit
HALF_LOG_TWO_PI, HALF_ROOT_PI = 0.5 * math.log(2 * math.pi), 0.5 * math.sqrt(math.pi)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)  # B₂, B₄, …
WINITZKI = 0.147  # with this number, his formula for the inverse of erf is off by 0.4 % at most


@composed
def lgamma(x: FloatTensor) -> Tensor:
    """The logarithm of the size of the gamma function: lgamma(n + 1) is log(n!).  Its gradient is `digamma`.

    >>> mg.lgamma(mg.asarray([1.0, 5.0, 0.0])).tolist()
    [0.0, 3.178..., inf]
    """
    infinite = abs(x) == math.inf
    beyond, x = x * x, where(infinite, 1.0, x)  # beyond: infinite with its slope
    low = x < 0.5
    positive = where(low, 1.0 - x, x)
    small = positive < SHIFT
    factors = where(small, positive, 1.0)
    product = _product([factors + k for k in range(SHIFT)])
    z = where(small, positive + SHIFT, positive)
    series = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]
    value = (z - 0.5) * log(z) - z + HALF_LOG_TWO_PI + _polynomial(1 / (z * z), series[::-1]) / z
    value = where(small, value - log(product), value)
    distance = x - round(x)  # of the nearest integer: sin(πx) is exact near it
    mirrored = math.log(math.pi) - log(abs(sin(math.pi * where(low, distance, 0.5)))) - value
    return where(infinite, beyond, where(low, mirrored, value))


@composed
def digamma(x: FloatTensor) -> Tensor:
    """The derivative of `lgamma`.

    >>> mg.digamma(mg.asarray([1.0, 2.0])).tolist()
    [-0.577..., 0.422...]
    """
    low = x < 0.5
    positive = where(low, 1.0 - where(abs(x) == math.inf, 0.0, x), x)
    small = positive < SHIFT
    z = where(small, positive + SHIFT, positive)
    series = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]
    inverse = 1 / z
    squared = inverse * inverse
    value = log(z) - 0.5 * inverse - squared * _polynomial(squared, series[::-1])
    steps = where(small, positive, 1.0)
    below = 1 / steps
    for k in range(1, SHIFT):
        below = below + 1 / (steps + k)
    value = where(small, value - below, value)
    distance = x - round(x)
    return where(low, value - math.pi / tan(math.pi * where(low, distance, 0.25)), value)


@composed
def erfinv(x: FloatTensor) -> Tensor:
    """The inverse of `erf`: the y for which erf(y) is x.

    >>> mg.erfinv(mg.asarray([0.0, 0.5, 1.0, 2.0])).tolist()
    [0.0, 0.476..., inf, nan]
    """
    inside, small = abs(x) < 1.0, abs(x) < 0.1
    safe, rest = where(inside, x, 0.0), where(inside, 0.0, x)
    far = where(small, 0.5, safe)
    w = -log1p(-far) - log1p(far)  # -log(1 - x²), also where x² is nearly 1
    middle = 2 / (math.pi * WINITZKI) - w / 2
    start = sqrt(sqrt(middle * middle + w / WINITZKI) - middle)
    y = where(small, safe * HALF_ROOT_PI, where(far < 0.0, -start, start))
    for _ in range(3):  # Halley's method triples the digits; what the gradient gets from the start is lost in rounding
        step = (erf(y) - safe) * exp(y * y) * HALF_ROOT_PI
        y = y - step / (1.0 + y * step)
    return where(inside, y, rest / sqrt(1.0 - rest * rest))  # infinite at the ends, as its slope is; nan outside


def _product(factors: Sequence[Tensor]) -> Tensor:
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return found


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The value of a polynomial; the coefficient of the highest power comes first."""
    found = x * 0.0 + coefficients[0]
    for coefficient in coefficients[1:]:
        found = found * x + coefficient
    return found
