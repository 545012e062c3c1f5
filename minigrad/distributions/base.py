"""`Distribution`: what all distributions have."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import NUMBERS, Tensor, as_tensor
from ..ops.creation import broadcast_arrays
from ..support.errors import ConversionError
from ..support.words import shown


class Distribution:
    """Independent random variables, one for each element of the parameters, which broadcast together.

    `sample(shape)` draws that many for each, without a gradient; where the parameters shift and stretch fixed noise,
    `rsample(shape)` draws with one.  `log_prob(value)` is the logarithm of a density or of a probability.

    >>> normal = mg.distributions.Normal(mg.zeros(3), 1.0)
    >>> normal, normal.sample(2).shape
    (Normal(loc: (3,), scale: (3,)), (2, 3))
    """

    parameters: dict[str, Tensor]  # by name, in one shape

    def _set(self, **given: Any) -> None:
        """Store the parameters as tensors of floats that have one shape."""
        first = next((each for each in given.values() if each.__class__ is Tensor), None)
        tensors = [_floats(type(self).__name__, name, each, first) for name, each in given.items()]
        self.parameters = dict(zip(given, broadcast_arrays(*tensors)))
        vars(self).update(self.parameters)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return next(iter(self.parameters.values())).shape

    def _like(self) -> dict[str, Any]:
        """The dtype and the device of samples."""
        first = next(iter(self.parameters.values()))
        return {"dtype": first.dtype, "device": first.device}

    def _sizes(self, shape: Any) -> tuple[int, ...]:
        """The shape of `shape` samples."""
        return (*(shape if isinstance(shape, (tuple, list)) else (shape,)), *self.shape)

    def sample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        """Samples without a gradient."""
        return self.rsample(shape).detach()  # type: ignore[no-any-return, attr-defined]

    def rsample(self, shape: int | tuple[int, ...] = ()) -> Tensor:
        """Samples with a gradient for the parameters."""
        raise ConversionError(
            f"{type(self).__name__}: a sample is one of several values, so it has no gradient",
            hint="sample(), and the gradient of log_prob(value) times a reward",
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or of the density, of each value."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob method")

    def entropy(self) -> Tensor:
        """The expected value of -log_prob."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy method")

    def __repr__(self) -> str:
        words = [f"{name}: {each.shape}" for name, each in self.parameters.items()]
        return f"{type(self).__name__}({', '.join(words)})"


def _floats(owner: str, name: str, given: Any, like: Tensor | None) -> Tensor:
    if given.__class__ is not Tensor and given.__class__ not in NUMBERS:
        raise ConversionError(f"{owner}: {name} is a tensor or a number, not {shown(given)}")
    dtype = dtypes.default_float if like is None or like.dtype.kind != "f" else like.dtype
    tensor = as_tensor(given, None if like is None else like.device)
    return tensor if tensor.dtype.kind == "f" and given.__class__ is Tensor else tensor.astype(dtype)  # type: ignore[attr-defined, no-any-return]


def of_probabilities(owner: str, probs: Any, logits: Any) -> None:
    """Refuse both or none of probabilities and logits."""
    if (probs is None) == (logits is None):
        raise ConversionError(f"{owner}: it takes probs or logits, and not both")
