"""Distributions of floats."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..ops.elementary import logical_and
from ..ops.elementwise import erf, log, where
from ..ops.random import DEFAULT_GENERATOR
from ..ops.special import erfinv
from .base import Distribution

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Normal(Distribution):
    """Normal numbers with mean `loc` and standard deviation `scale`.

    >>> normal = mg.distributions.Normal(0.0, mg.asarray([1.0, 2.0]))
    >>> normal.log_prob(mg.asarray(0.0)).tolist(), normal.entropy().tolist()
    ([-0.918..., -1.612...], [1.418..., 2.112...])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any) -> None:
        self._set(loc=loc, scale=scale)
        self.mean, self.variance = self.loc, self.scale * self.scale

    def rsample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        noise = DEFAULT_GENERATOR.normal(self._sizes(shape), **self._like())
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        off = (value - self.loc) / self.scale
        return -0.5 * off * off - log(self.scale) - HALF_LOG_TWO_PI

    def entropy(self) -> Tensor:
        return log(self.scale) + (HALF_LOG_TWO_PI + 0.5)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller number.

        >>> mg.distributions.Normal(0.0, 1.0).cdf(mg.asarray([0.0])).tolist()
        [0.5]
        """
        return 0.5 + 0.5 * erf((value - self.loc) / (self.scale * math.sqrt(2)))

    def icdf(self, share: Tensor) -> Tensor:
        """The number below which a share of all numbers is: the inverse of `cdf`.

        >>> mg.distributions.Normal(3.0, 1.0).icdf(mg.asarray([0.5])).tolist()
        [3.0]
        """
        return self.loc + self.scale * math.sqrt(2) * erfinv(2 * share - 1)


class Uniform(Distribution):
    """Numbers from `low` up to, not including, `high`, all equally likely.

    >>> uniform = mg.distributions.Uniform(0.0, 2.0)
    >>> uniform.log_prob(mg.asarray([1.0, 2.0])).tolist(), uniform.entropy().item()
    ([-0.693..., -inf], 0.693...)
    """

    low: Tensor
    high: Tensor

    def __init__(self, low: Any, high: Any) -> None:
        self._set(low=low, high=high)
        self.width = self.high - self.low
        self.mean, self.variance = (self.low + self.high) / 2, self.width * self.width / 12

    def rsample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        return self.low + self.width * DEFAULT_GENERATOR.uniform(self._sizes(shape), **self._like())

    def log_prob(self, value: Tensor) -> Tensor:
        inside = logical_and(value >= self.low, value < self.high)
        return where(inside, -log(self.width), -math.inf)

    def entropy(self) -> Tensor:
        return log(self.width)
