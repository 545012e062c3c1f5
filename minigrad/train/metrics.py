"""Metrics: numbers about many batches, added up on the device of the batches.

The sums are tensors that are written in place, so `add` works in a jitted step without a new trace, and without waiting
for a GPU.  Only `value` reads a number.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.mode import no_grad
from ..core.tensor import Tensor, as_tensor
from ..nn.state import like
from ..ops import reduce
from ..ops.creation import arange, full
from ..ops.elementwise import where
from ..ops.functional import one_hot
from ..ops.view import expand_dims
from ..support.errors import ConversionError, ShapeError


class Metric:
    """A sum and a count.  A subclass defines `add`, which calls `take`.

    >>> class Largest(mg.train.Metric):
    ...     def add(self, x):
    ...         self.take(x.max())
    >>> largest = Largest()
    >>> largest.add(mg.asarray([1.0, 3.0]))
    >>> largest.add(mg.asarray([2.0, 5.0]))
    >>> largest.value
    4.0
    """

    def __init__(self, device: Any = None) -> None:
        self.total, self.count = (full((), 0.0, dtypes.float64, device) for _ in range(2))

    def add(self, *seen: Any) -> None:
        """Add a batch; subclasses define this."""
        raise NotImplementedError(f"{type(self).__name__} has no add method")

    def take(self, amount: Any, count: Any = 1) -> None:
        """Add to the sum and to the count."""
        with no_grad():
            self.total += like(amount.detach(), self.total) if isinstance(amount, Tensor) else float(amount)
            self.count += like(count, self.count) if isinstance(count, Tensor) else float(count)

    @property
    def value(self) -> float:
        """The sum divided by the count, as a number."""
        count = self.count.item()
        if not count:
            raise ConversionError(f"{type(self).__name__}: there is no value before anything is added", hint="add(...)")
        return float(self.total.item()) / float(count)

    def reset(self) -> None:
        """Start again, at the beginning of an epoch."""
        with no_grad():
            self.total *= 0.0
            self.count *= 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'{self.value:.4g}' if self.count.item() else 'nothing yet'})"


class Mean(Metric):
    """The mean of numbers, or of the means of batches of `count` examples.

    >>> mean = mg.train.Mean()
    >>> mean.add(mg.asarray(2.0), count=3)
    >>> mean.add(6.0)
    >>> mean
    Mean(3)
    """

    def add(self, value: Any, count: Any = 1) -> None:
        """Add the mean of `count` examples, a number or a tensor of one element."""
        if isinstance(value, Tensor) and value.size != 1:
            raise ShapeError(f"{type(self).__name__}: add takes one number, not a tensor of shape {value.shape}",
                             hint="x.mean(), count=x.size")
        one = value.reshape(()) if isinstance(value, Tensor) else value  # type: ignore[attr-defined]
        self.take(one * count, count)


class Perplexity(Mean):
    """e to the mean of the losses: a choice among this many equally likely tokens is as uncertain as the model.

    >>> perplexity = mg.train.Perplexity()
    >>> perplexity.add(mg.log(mg.asarray(8.0)))
    >>> round(perplexity.value, 4)
    8.0
    """

    @property
    def value(self) -> float:
        mean = super().value
        return math.exp(mean) if mean < 700 else math.inf


class Accuracy(Metric):
    """The share of targets that are the class with the largest logit, or among the `top` largest.

    The classes are the last dimension of the logits; targets that are `ignore_index` are left out.

    >>> accuracy = mg.train.Accuracy()
    >>> accuracy.add(mg.asarray([[1.0, 2.0], [4.0, 3.0]]), mg.asarray([1, 1]))
    >>> accuracy.value
    0.5
    """

    def __init__(self, top: int = 1, ignore_index: int | None = None, device: Any = None) -> None:
        super().__init__(device)
        self.top, self.ignore_index = top, ignore_index

    def add(self, logits: Tensor, targets: Any) -> None:
        """Add the logits of a batch, with the numbers of its classes."""
        targets = as_tensor(targets, logits.device)
        if not logits.ndim or logits.shape[:-1] != targets.shape:
            raise ShapeError("Accuracy: there is a target for each row of logits", actual=f"targets {targets.shape}",
                             expect=f"targets {logits.shape[:-1]}, for logits {logits.shape}")
        with no_grad():
            counted = targets != self.ignore_index if self.ignore_index is not None else targets == targets
            right = _rank(logits, where(counted, targets, 0)) < self.top
            self.take(reduce.sum(right & counted), reduce.sum(counted))


def _rank(logits: Tensor, targets: Tensor) -> Tensor:
    """The number of classes before the target: with a larger logit, a nan, or the same logit and a smaller number."""
    classes = arange(logits.shape[-1], device=logits.device)
    own = reduce.sum(where(one_hot(targets, logits.shape[-1], bool), logits, 0.0), axis=-1, keepdims=True)
    later = (logits == own) & (classes >= expand_dims(targets, -1))
    return reduce.sum(~((logits < own) | later), axis=-1)
