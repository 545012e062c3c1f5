"""Activations as layers: functions of `ops.functional` that a `Sequential` can hold by name."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import full
from ..ops.elementwise import sigmoid, tanh, where
from ..ops.functional import elu, gelu, leaky_relu, log_softmax, relu, silu, softmax, softplus
from ..ops.view import reshape
from ..support.errors import ConversionError, ShapeError
from ..support.words import shown
from .layers import check_sizes
from .module import Module


class ReLU(Module):
    """`mg.relu` as a layer.

    >>> mg.nn.ReLU()(mg.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self) -> None:
        """No options: `inplace=` gets its hint."""

    def forward(self, x: Tensor) -> Tensor:
        return relu(x)


class LeakyReLU(Module):
    """`mg.leaky_relu` as a layer.

    >>> mg.nn.LeakyReLU(0.5)(mg.asarray([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        return leaky_relu(x, self.slope)

    def extra_repr(self) -> str:
        return f"{self.slope}"


class PReLU(Module):
    """x where it is positive, and a learned slope times x elsewhere; `count` slopes are for the channels, axis 1.

    >>> mg.nn.PReLU(), mg.nn.PReLU(3)(mg.asarray([[-4.0, 2.0, -8.0]])).tolist()
    (PReLU(1), [[-1.0, 2.0, -2.0]])
    """

    def __init__(self, count: int = 1, start: float = 0.25, dtype: Any = None, device: Any = None) -> None:
        check_sizes("PReLU", 1, count=count)
        self.weight = full(count, start, dtype, device, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        count = self.weight.shape[0]
        if count > 1 and (x.ndim < 2 or x.shape[1] != count):
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=f"(examples, {count}, ...)")
        return where(x > 0.0, x, x * reshape(self.weight, (-1, *[1] * max(x.ndim - 2, 0))))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}"


class ELU(Module):
    """`mg.elu` as a layer.

    >>> mg.nn.ELU()(mg.asarray([-1000.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"{self.alpha}"


class GELU(Module):
    """`mg.gelu` as a layer.

    >>> mg.nn.GELU("tanh")
    GELU(tanh)
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ConversionError(f"GELU: approximate is 'none' or 'tanh', not {shown(approximate)}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else self.approximate


class Sigmoid(Module):
    """`mg.sigmoid` as a layer.

    >>> mg.nn.Sigmoid()(mg.zeros(1)).tolist()
    [0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        return sigmoid(x)


class SiLU(Module):
    """`mg.silu` as a layer.

    >>> mg.nn.SiLU()(mg.zeros(1)).tolist()
    [0.0]
    """

    def __init__(self) -> None:
        """No options: `inplace=` gets its hint."""

    def forward(self, x: Tensor) -> Tensor:
        return silu(x)


class Softplus(Module):
    """`mg.softplus` as a layer.

    >>> mg.nn.Softplus()(mg.asarray([1000.0])).tolist()
    [1000.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return softplus(x)


class Tanh(Module):
    """`mg.tanh` as a layer.

    >>> mg.nn.Tanh()(mg.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tanh(x)


class Softmax(Module):
    """`mg.softmax` as a layer.

    >>> mg.nn.Softmax()(mg.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x, self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """`mg.log_softmax` as a layer.

    >>> mg.nn.LogSoftmax()(mg.asarray([0.0, 200.0])).tolist()
    [-200.0, 0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return log_softmax(x, self.axis)
