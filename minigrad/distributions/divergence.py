"""The Kullback-Leibler divergence of two distributions of one kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops import reduce
from ..ops.elementary import logical_and
from ..ops.elementwise import log, where
from ..support.errors import ConversionError
from ..support.words import a_type
from .base import Distribution
from .continuous import Normal, Uniform
from .discrete import Bernoulli, Categorical, _times


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expected value under p of log p - log q.

    >>> mg.distributions.kl_divergence(mg.distributions.Normal(0.0, 1.0), mg.distributions.Normal(1.0, 1.0)).item()
    0.5
    """
    for kind, formula in FORMULAS.items():
        if isinstance(p, kind) and isinstance(q, kind):
            return formula(p, q)
    raise ConversionError(
        f"kl_divergence: there is no formula for {a_type(p)} and {a_type(q)}",
        expect="two of " + ", ".join([kind.__name__ for kind in FORMULAS]),
        hint="the mean of p.log_prob(x) - q.log_prob(x), for samples x of p",
    )


def _normal(p: Normal, q: Normal) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return 0.5 * (ratio * ratio + off * off - 1) - log(ratio)


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = logical_and(q.low <= p.low, p.high <= q.high)
    return where(inside, log(q.width / p.width), math.inf)


def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return _times(p.probs, p._true - q._true) + _times(1 - p.probs, p._false - q._false)


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return reduce.sum(_times(p.probs, p.logits - q.logits), axis=-1)


FORMULAS: dict[type, Callable[[Any, Any], Tensor]] = {
    Normal: _normal, Uniform: _uniform, Bernoulli: _bernoulli, Categorical: _categorical,
}
