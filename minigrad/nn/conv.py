"""Convolutions and pooling as layers; the functions are in `ops.convolution` and `ops.pooling`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops import pooling
from ..ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from ..ops.windows import Sizes, for_each
from ..support.errors import ConversionError, ShapeError
from ..support.table import counted
from .init import uniform_parameter
from .layers import check_sizes
from .module import Module


class _Convolution(Module):
    function: Callable[..., Tensor]
    count = 2  # dimensions that the kernels slide along

    def __init__(self, inputs: int, outputs: int, size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, dtype: Any = None, device: Any = None) -> None:
        name = type(self).__name__
        check_sizes(name, 1, inputs=inputs, outputs=outputs, groups=groups)
        if inputs % groups or outputs % groups:
            sizes = f"{counted(inputs, 'input')} and {counted(outputs, 'output')}"
            raise ConversionError(f"{name}: {sizes} can't be divided into {groups} groups")
        self.inputs, self.outputs, self.groups = inputs, outputs, groups
        self.size, self.stride = for_each(name, "size", size, self.count), for_each(name, "stride", stride, self.count)
        self.dilation = for_each(name, "dilation", dilation, self.count)
        self.padding = padding if isinstance(padding, str) else for_each(name, "padding", padding, self.count, 0)
        shape = self.weight_shape()
        fan_in = math.prod(shape[1:])
        self.weight = uniform_parameter(shape, fan_in, dtype, device)
        self.bias = uniform_parameter((outputs,), fan_in, dtype, device) if bias else None

    def weight_shape(self) -> Sizes:
        """The shape of the kernels."""
        return (self.outputs, self.inputs // self.groups, *self.size)

    def _check(self, x: Tensor) -> None:
        """Raise unless the input has the right dimensions and channels."""
        if x.ndim not in (self.count + 1, self.count + 2) or x.shape[-1 - self.count] != self.inputs:
            sides = "length" if self.count == 1 else "height, width"
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}",
                             expect=f"(examples, {self.inputs}, {sides})")

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return type(self).function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        words = [f"{self.inputs} → {self.outputs}", " × ".join(map(str, self.size))]
        ones, zeros = (1,) * self.count, (0,) * self.count
        for name, usual in (("stride", ones), ("padding", zeros), ("dilation", ones), ("groups", 1)):
            value = getattr(self, name)
            if value != usual:
                same = isinstance(value, tuple) and len(set(value)) == 1
                words.append(f"{name}={value[0] if same else value}")
        return ", ".join(words) + ("" if self.bias is not None else ", bias=False")


class Conv1d(_Convolution):
    """Kernels that slide along sequences (examples, inputs, length); `padding="same"` keeps their length.

    >>> layer = mg.nn.Conv1d(2, 4, 3, padding="same")
    >>> layer, layer(mg.ones((5, 2, 7))).shape
    (Conv1d(2 → 4, 3, padding=same), (5, 4, 7))
    """

    function = staticmethod(conv1d)
    count = 1


class Conv2d(_Convolution):
    """Kernels that slide over images (examples, inputs, height, width); `padding="same"` keeps their size.

    >>> layer = mg.nn.Conv2d(1, 8, 3, stride=2, padding=1)
    >>> layer, layer(mg.ones((5, 1, 28, 28))).shape
    (Conv2d(1 → 8, 3 × 3, stride=2, padding=1), (5, 8, 14, 14))
    """

    function = staticmethod(conv2d)


class _ConvolutionTranspose(_Convolution):
    def __init__(
        self, inputs: int, outputs: int, size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, dtype: Any = None, device: Any = None,
    ) -> None:
        name = type(self).__name__
        if isinstance(padding, str):
            raise ConversionError(f"{name}: padding is numbers, not {padding!r}")
        super().__init__(inputs, outputs, size, stride, padding, dilation, groups, bias, dtype, device)
        self.output_padding = for_each(name, "output_padding", output_padding, self.count, 0)

    def weight_shape(self) -> Sizes:
        return (self.inputs, self.outputs // self.groups, *self.size)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return type(self).function(x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
                                   self.groups, self.dilation)


class ConvTranspose1d(_ConvolutionTranspose):
    """The transpose of a convolution along sequences: see `ConvTranspose2d`.

    >>> layer = mg.nn.ConvTranspose1d(8, 1, 2, stride=2)
    >>> layer, layer(mg.ones((5, 8, 14))).shape
    (ConvTranspose1d(8 → 1, 2, stride=2), (5, 1, 28))
    """

    function = staticmethod(conv_transpose1d)
    count = 1


class ConvTranspose2d(_ConvolutionTranspose):
    """The transpose of a convolution: each element of an image, times a kernel, is added to a larger image.

    >>> layer = mg.nn.ConvTranspose2d(8, 1, 2, stride=2)
    >>> layer, layer(mg.ones((5, 8, 14, 14))).shape
    (ConvTranspose2d(8 → 1, 2 × 2, stride=2), (5, 1, 28, 28))
    """

    function = staticmethod(conv_transpose2d)


# Pooling ------------------------------------------------------------------------------------------------------------


class _Pool(Module):
    function: Callable[..., Tensor]
    dimensions = 2

    def __init__(self, size: Any, stride: Any = None, padding: Any = 0) -> None:
        for_each(type(self).__name__, "size", size, self.dimensions)
        self.size, self.stride, self.padding = size, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, self.size, self.stride, self.padding)

    def extra_repr(self) -> str:
        words = [str(self.size)] + ([] if self.stride is None else [f"stride={self.stride}"])
        return ", ".join(words + ([f"padding={self.padding}"] if self.padding else []))


class MaxPool1d(_Pool):
    """`mg.max_pool1d` as a layer.

    >>> mg.nn.MaxPool1d(2)(mg.asarray([[[1.0, 5.0, 2.0, 3.0]]])).tolist()
    [[[5.0, 3.0]]]
    """

    function = staticmethod(pooling.max_pool1d)
    dimensions = 1


class MaxPool2d(_Pool):
    """`mg.max_pool2d` as a layer.

    >>> mg.nn.MaxPool2d(3, stride=2, padding=1), mg.nn.MaxPool2d(2)(mg.ones((5, 8, 28, 28))).shape
    (MaxPool2d(3, stride=2, padding=1), (5, 8, 14, 14))
    """

    function = staticmethod(pooling.max_pool2d)


class AvgPool1d(_Pool):
    """`mg.avg_pool1d` as a layer.

    >>> mg.nn.AvgPool1d(2)(mg.asarray([[[1.0, 5.0, 2.0, 4.0]]])).tolist()
    [[[3.0, 3.0]]]
    """

    function = staticmethod(pooling.avg_pool1d)
    dimensions = 1


class AvgPool2d(_Pool):
    """`mg.avg_pool2d` as a layer.

    >>> mg.nn.AvgPool2d(2)(mg.ones((5, 8, 28, 28))).shape
    (5, 8, 14, 14)
    """

    function = staticmethod(pooling.avg_pool2d)


class _AdaptivePool(Module):
    function: Callable[..., Tensor]
    dimensions = 2

    def __init__(self, size: Any) -> None:
        for_each(type(self).__name__, "size", size, self.dimensions)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, self.size)

    def extra_repr(self) -> str:
        return str(self.size)


class AdaptiveAvgPool1d(_AdaptivePool):
    """`mg.adaptive_avg_pool1d` as a layer.

    >>> mg.nn.AdaptiveAvgPool1d(1)(mg.ones((5, 8, 7))).shape
    (5, 8, 1)
    """

    function = staticmethod(pooling.adaptive_avg_pool1d)
    dimensions = 1


class AdaptiveAvgPool2d(_AdaptivePool):
    """`mg.adaptive_avg_pool2d` as a layer.

    >>> mg.nn.AdaptiveAvgPool2d((1, 2))(mg.ones((5, 8, 7, 7))).shape
    (5, 8, 1, 2)
    """

    function = staticmethod(pooling.adaptive_avg_pool2d)
