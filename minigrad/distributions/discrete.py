"""Distributions of one of several values."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..ops import reduce
from ..ops.declare import as_integers
from ..ops.elementwise import exp, log, sigmoid, where
from ..ops.functional import embedding, log_softmax, softplus
from ..ops.index import take_along_axis
from ..ops.random import DEFAULT_GENERATOR
from ..ops.view import broadcast_to, expand_dims, squeeze
from ..support.errors import ShapeError
from .base import Distribution, of_probabilities


class Bernoulli(Distribution):
    """True with a probability: `probs`, or the sigmoid of `logits`.

    >>> coin = mg.distributions.Bernoulli(probs=mg.asarray([0.5, 1.0]))
    >>> coin.log_prob(mg.asarray([1.0, 1.0])).tolist(), coin.entropy().tolist()
    ([-0.693..., 0.0], [0.693..., 0.0])
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        of_probabilities("Bernoulli", probs, logits)
        self._set(**({"logits": logits} if probs is None else {"probs": probs}))
        if probs is None:
            given = self.parameters["logits"]
            self.probs, self._true, self._false = sigmoid(given), -softplus(-given), -softplus(given)
        else:
            self.probs = self.parameters["probs"]
            self._true, self._false = _log(self.probs), _log(1 - self.probs)
        self.mean, self.variance = self.probs, self.probs * (1 - self.probs)

    def sample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        drawn = DEFAULT_GENERATOR.bernoulli(self.probs.detach(), self._sizes(shape))  # type: ignore[attr-defined]
        return drawn.astype(self.probs.dtype)  # type: ignore[no-any-return, attr-defined]

    def log_prob(self, value: Tensor) -> Tensor:
        return _times(value, self._true) + _times(1 - value, self._false)

    def entropy(self) -> Tensor:
        return 0.0 - _times(self.probs, self._true) - _times(1 - self.probs, self._false)


class Categorical(Distribution):
    """One of the positions along the last axis: with probabilities `probs`, or by `logits`.

    >>> dice = mg.distributions.Categorical(logits=mg.zeros(6))
    >>> dice.log_prob(mg.asarray([0, 5])).tolist(), dice.entropy().item()
    ([-1.791..., -1.791...], 1.791...)
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        of_probabilities("Categorical", probs, logits)
        self._set(**({"logits": logits} if probs is None else {"probs": probs}))
        given = next(iter(self.parameters.values()))
        if not given.ndim or not given.shape[-1]:
            raise ShapeError(f"Categorical: there is nothing to choose from, shape {given.shape}")
        if probs is None:
            self.logits = log_softmax(given)
        else:
            self.logits = _log(given / reduce.sum(given, axis=-1, keepdims=True))
        self.probs = exp(self.logits)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.logits.shape[:-1]

    def sample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        samples = shape if isinstance(shape, (tuple, list)) else (shape,)
        return DEFAULT_GENERATOR.categorical(self.logits.detach(), tuple(samples))  # type: ignore[no-any-return, attr-defined]

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_integers("Categorical.log_prob", "value", value, self.logits)
        if self.logits.ndim == 1:
            return embedding(self.logits, value)
        value = broadcast_to(value, (*value.shape[: max(value.ndim - len(self.shape), 0)], *self.shape))
        logits = broadcast_to(self.logits, (*value.shape, self.logits.shape[-1]))
        return squeeze(take_along_axis(logits, expand_dims(value, -1), -1), -1)

    def entropy(self) -> Tensor:
        return -reduce.sum(_times(self.probs, self.logits), axis=-1)


def _times(share: Tensor, logarithm: Tensor) -> Tensor:
    """A share times a logarithm, where 0 times -inf is 0."""
    nothing = share == 0
    return where(nothing, 0.0, share * where(nothing, 0.0, logarithm))


def _log(share: Tensor) -> Tensor:
    """The logarithm of a share; at 0 it is -inf, without a gradient."""
    nothing = share == 0
    return where(nothing, -math.inf, log(where(nothing, 1.0, share)))
