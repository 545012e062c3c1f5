"""The layers: modules that hold parameters or a setting and call one function of `ops.functional`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..core.errors import ConversionError, ShapeError
from ..core.tensor import Tensor
from ..ops.creation import ones, zeros
from ..ops.elementwise import tanh
from ..ops.functional import dropout, embedding, gelu, layer_norm, linear, relu
from ..ops.random import DEFAULT_GENERATOR
from .module import Module


class Linear(Module):
    """x times the transpose of `weight`, plus `bias`.

    Both start uniform between ±1 / √inputs, so that the outputs are about as large as the inputs.

    >>> layer = mg.nn.Linear(2, 3)
    >>> layer, layer(mg.ones((5, 2))).shape
    (Linear(2 → 3), (5, 3))
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, dtype: Any = None, device: Any = None) -> None:
        _check_sizes("Linear", inputs=inputs, outputs=outputs)
        bound = 1 / math.sqrt(inputs) if inputs else 0.0
        options = {"low": -bound, "high": bound, "dtype": dtype, "device": device, "requires_grad": True}
        self.weight = DEFAULT_GENERATOR.uniform((outputs, inputs), **options)
        self.bias = DEFAULT_GENERATOR.uniform((outputs,), **options) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not x.shape or x.shape[-1] != self.weight.shape[1]:
            raise ShapeError(
                f"{self._name or 'Linear'}: an input of shape {x.shape} does not fit {self!r}",
                expect=f"(..., {self.weight.shape[1]})",
            )
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs} → {outputs}" + ("" if self.bias is not None else ", bias=False")


class Embedding(Module):
    """A table with a row of numbers for each of `count` things, which start standard normal.

    >>> table = mg.nn.Embedding(10, 4)
    >>> table, table(mg.asarray([[1, 2, 1]])).shape
    (Embedding(10 × 4), (1, 3, 4))
    """

    def __init__(self, count: int, size: int, dtype: Any = None, device: Any = None) -> None:
        _check_sizes("Embedding", count=count, size=size)
        self.weight = DEFAULT_GENERATOR.normal((count, size), dtype=dtype, device=device, requires_grad=True)

    def forward(self, indices: Tensor) -> Tensor:
        return embedding(self.weight, indices)

    def extra_repr(self) -> str:
        return "{} × {}".format(*self.weight.shape)


class LayerNorm(Module):
    """Each example shifted and scaled to mean 0 and variance 1, then times `weight`, plus `bias`.

    >>> norm = mg.nn.LayerNorm(2, eps=0.0)
    >>> norm, norm(mg.asarray([[1.0, 3.0]])).tolist()
    (LayerNorm(2), [[-1.0, 1.0]])
    """

    def __init__(self, size: int, eps: float = 1e-5, affine: bool = True, bias: bool = True, dtype: Any = None,
                 device: Any = None) -> None:  # fmt: skip
        _check_sizes("LayerNorm", size=size)
        self.size, self.eps = size, eps
        self.weight = ones(size, dtype, device, requires_grad=True) if affine else None
        self.bias = zeros(size, dtype, device, requires_grad=True) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not x.shape or x.shape[-1] != self.size:
            raise ShapeError(f"{self._name or 'LayerNorm'}: an input of shape {x.shape} does not fit {self!r}",
                             expect=f"(..., {self.size})")  # fmt: skip
        return layer_norm(x, self.weight, self.bias, eps=self.eps)

    def extra_repr(self) -> str:
        return f"{self.size}" + ("" if self.weight is not None else ", affine=False")


class Dropout(Module):
    """In training, zeros each element with probability `p` and scales the others up; else nothing.

    >>> mg.nn.Dropout(0.5)
    Dropout(0.5)
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ConversionError(f"Dropout: a probability is between 0 and 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"{self.p}"


class Sequential(Module):
    """Modules and functions applied one after the other.

    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    >>> model
    Sequential(
      0: Linear(2 → 3)
      1: Tanh()
      2: Linear(3 → 1)
    )
    >>> len(model), model[0].weight.shape, model(mg.ones((5, 2))).shape
    (3, (3, 2), (5, 1))
    """

    def __init__(self, *layers: Any) -> None:
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise ConversionError(f"Sequential: layer {i} is a {type(layer).__name__}, which cannot be called",
                                      hint="Sequential(*layers) where they are in a list")  # fmt: skip
            setattr(self, str(i), layer)

    def forward(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return sum(name.isdecimal() for name in vars(self))

    def __getitem__(self, index: int) -> Any:
        return getattr(self, str(range(len(self))[index]))

    def __iter__(self) -> Iterator[Any]:
        return (layer for name, layer in vars(self).items() if name.isdecimal())


class ReLU(Module):
    """`mg.relu` as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        return relu(x)


class GELU(Module):
    """`mg.gelu` as a layer.

    >>> mg.nn.GELU("tanh")
    GELU(tanh)
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else self.approximate


class Tanh(Module):
    """`mg.tanh` as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        return tanh(x)


def _check_sizes(name: str, **sizes: Any) -> None:
    for what, size in sizes.items():
        if not hasattr(size, "__index__") or size.__index__() < 0:
            raise ConversionError(f"{name}: {what} is an integer, 0 or more, not {size!r}")
