"""Probability distributions: samples, log-probabilities, entropies, and divergences, all differentiable.

>>> import minigrad as mg
>>> prior, guess = mg.distributions.Normal(0.0, 1.0), mg.distributions.Normal(1.0, 2.0)
>>> guess.log_prob(mg.asarray([1.0])).tolist(), mg.distributions.kl_divergence(guess, prior).item()
([-1.612...], 1.306...)
"""

from ..arguments.public import public
from .base import Distribution
from .continuous import Normal, Uniform
from .discrete import Bernoulli, Categorical
from .divergence import kl_divergence

__all__ = ["Distribution", "Normal", "Uniform", "Bernoulli", "Categorical", "kl_divergence"]

public(__all__, globals())
