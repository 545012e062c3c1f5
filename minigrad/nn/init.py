"""Initialisation of parameters: functions that write into a tensor, with PyTorch's names.

`generator` is a `mg.random.Generator` or a seed; without it, the default generator is used.
"""

from __future__ import annotations

import math
from typing import Any

from ..core.dtypes import float64
from ..core.tensor import Tensor
from ..ops.creation import eye, full
from ..ops.elementwise import where
from ..ops.linalg import cholesky, solve
from ..ops.random import DEFAULT_GENERATOR, Generator
from ..ops.reduce import any
from ..ops.view import reshape
from ..support.errors import ConversionError, ShapeError
from .state import write

__all__ = [
    "constant_", "zeros_", "ones_", "eye_", "uniform_", "normal_", "trunc_normal_", "orthogonal_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "calculate_gain",
]

GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}


def constant_(tensor: Tensor, value: float) -> Tensor:
    """Write one number everywhere.

    >>> mg.nn.init.constant_(mg.zeros(2), 3.0).tolist()
    [3.0, 3.0]
    """
    return _written(tensor, full(tensor.shape, value, tensor.dtype, tensor.device))


def zeros_(tensor: Tensor) -> Tensor:
    """Write zeros.

    >>> mg.nn.init.zeros_(mg.ones(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Write ones.

    >>> mg.nn.init.ones_(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix: a layer with this weight returns its input.

    >>> mg.nn.init.eye_(mg.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: a matrix has two dimensions, and this tensor has shape {tensor.shape}")
    rows, columns = tensor.shape
    return _written(tensor, eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


def uniform_(tensor: Tensor, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Tensor:
    """Draw numbers between `low` and `high`.

    >>> bool((mg.nn.init.uniform_(mg.zeros(100), -2, -1, generator=0) < -1).all())
    True
    """
    return _written(tensor, _of(generator).uniform(low=low, high=high, **_like(tensor)))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw normal numbers.

    >>> mg.nn.init.normal_(mg.zeros(2), mean=5.0, std=0.0).tolist()
    [5.0, 5.0]
    """
    return _written(tensor, _of(generator).normal(mean=mean, std=std, **_like(tensor)))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, low: float = -2.0, high: float = 2.0,
                  generator: Any = None) -> Tensor:
    """Draw normal numbers, and draw again those that are not between `low` and `high`.

    >>> float(abs(mg.nn.init.trunc_normal_(mg.zeros(1000), generator=0)).max()) <= 2
    True
    """
    cumulated = [0.5 + 0.5 * math.erf((bound - mean) / (std * math.sqrt(2))) for bound in (low, high)]
    if cumulated[1] - cumulated[0] < 1e-3:
        raise ConversionError(
            f"trunc_normal_: hardly any number around {mean}, with deviation {std}, is between {low} and {high}"
        )
    source = _of(generator)
    drawn = source.normal(mean=mean, std=std, **_like(tensor))
    while True:
        outside = (drawn < low) | (drawn > high)
        if not bool(any(outside)):
            return _written(tensor, drawn)
        drawn = where(outside, source.normal(mean=mean, std=std, **_like(tensor)), drawn)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw uniform numbers (Glorot), scaled so that signals keep their size forwards and backwards.

    >>> float(abs(mg.nn.init.xavier_uniform_(mg.zeros((3, 3)))).max()) <= 1.0
    True
    """
    bound = gain * math.sqrt(6 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw normal numbers (Glorot), scaled so that signals keep their size forwards and backwards.

    >>> float(abs(mg.nn.init.xavier_normal_(mg.zeros((2, 3)), gain=0.0)).max())
    0.0
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans("xavier_normal_", tensor))), generator)


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Any = None) -> Tensor:
    """Draw uniform numbers (He), scaled so that signals keep their size through a ReLU with slope `a` below zero.

    >>> float(abs(mg.nn.init.kaiming_uniform_(mg.zeros((5, 6)), nonlinearity="linear")).max()) <= 0.5 ** 0.5
    True
    """
    bound = math.sqrt(3) * _kaiming("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Any = None) -> Tensor:
    """Draw normal numbers (He), scaled so that signals keep their size through a ReLU with slope `a` below zero.

    >>> mg.nn.init.kaiming_normal_(mg.zeros((2, 3))).shape
    (2, 3)
    """
    return normal_(tensor, 0.0, _kaiming("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw a matrix whose rows (or columns, if these are fewer) are orthogonal and have length `gain`.

    >>> w = mg.nn.init.orthogonal_(mg.zeros((2, 5)))
    >>> mg.round(w @ w.T + 1e-3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: a matrix has two dimensions, and this tensor has shape {tensor.shape}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    tall = _of(generator).normal((max(rows, columns), min(rows, columns)), dtype=float64, device=tensor.device)
    for _ in range(2):  # twice, because one round squares the condition number
        tall = solve(cholesky(tall.mT @ tall), tall.mT).mT  # type: ignore[attr-defined]
    drawn = tall if rows >= columns else tall.mT  # type: ignore[attr-defined]
    return _written(tensor, reshape(drawn * gain, tensor.shape))


def calculate_gain(nonlinearity: str, slope: float = 0.01) -> float:
    """The factor for the scale of weights before this activation; `slope` is that of leaky_relu.

    >>> mg.nn.init.calculate_gain("relu")
    1.414...
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ConversionError(f"calculate_gain: {nonlinearity!r} has no known gain",
                              expect=", ".join([*GAINS, "leaky_relu"]))
    return GAINS[nonlinearity]


def _kaiming(name: str, tensor: Tensor, slope: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ConversionError(f"{name}: mode is 'fan_in' or 'fan_out', not {mode!r}")
    fan_in, fan_out = _fans(name, tensor)
    return calculate_gain(nonlinearity, slope) / math.sqrt(fan_in if mode == "fan_in" else fan_out)


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """The number of inputs of each output of such a weight, and the number of outputs of each input."""
    if tensor.ndim < 2:
        raise ShapeError(f"{name}: a weight has two dimensions or more, and this tensor has shape {tensor.shape}",
                         expect="(outputs, inputs, ...)")
    kernel = math.prod(tensor.shape[2:])
    return max(tensor.shape[1] * kernel, 1), max(tensor.shape[0] * kernel, 1)


def _of(generator: Any) -> Generator:
    if generator is None:
        return DEFAULT_GENERATOR
    return generator if isinstance(generator, Generator) else Generator(generator)


def _like(tensor: Tensor) -> dict[str, Any]:
    """What random numbers for a tensor have in common with it."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _written(tensor: Tensor, value: Tensor) -> Tensor:
    write([tensor], [value])
    return tensor


def uniform_parameter(shape: tuple[int, ...], fan_in: int, dtype: Any, device: Any) -> Tensor:
    """A parameter with uniform random numbers between ±1 / √fan_in, the usual start."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return DEFAULT_GENERATOR.uniform(shape, low=-bound, high=bound, dtype=dtype, device=device, requires_grad=True)
