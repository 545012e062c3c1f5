"""Padding as layers: `mg.pad` around the last one or two dimensions of sequences and images."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.convolution import zeros_around
from ..ops.index import pad
from ..support.errors import ShapeError
from .module import Module


class _Pad(Module):
    """Padding of the last `count` dimensions: a number, or a pair (before, behind) for each of them."""

    mode = "constant"
    count = 2
    value = 0.0

    def __init__(self, widths: Any) -> None:
        ones = (1,) * self.count
        self.widths = zeros_around(type(self).__name__, widths, ones, ones, ones)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < self.count:
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}",
                             expect=f"{self.count} dimensions or more")
        return pad(x, ((0, 0),) * (x.ndim - self.count) + self.widths, self.value, self.mode)

    def extra_repr(self) -> str:
        widths = {width for pair in self.widths for width in pair}
        return str(widths.pop() if len(widths) == 1 else self.widths)


class ZeroPad1d(_Pad):
    """Zeros around sequences (..., length).

    >>> mg.nn.ZeroPad1d(((1, 2),))(mg.ones((1, 1, 2))).tolist()
    [[[0.0, 1.0, 1.0, 0.0, 0.0]]]
    """

    count = 1


class ZeroPad2d(_Pad):
    """Zeros around images (..., height, width): a number, or a pair (before, behind) for the height and the width.

    >>> mg.nn.ZeroPad2d(((0, 0), (1, 2))), mg.nn.ZeroPad2d(1)(mg.ones((5, 3, 8, 8))).shape
    (ZeroPad2d(((0, 0), (1, 2))), (5, 3, 10, 10))
    """


class ConstantPad1d(ZeroPad1d):
    """A value around sequences.

    >>> mg.nn.ConstantPad1d(1, 5.0)(mg.zeros(2)).tolist()
    [5.0, 0.0, 0.0, 5.0]
    """

    def __init__(self, widths: Any, value: float) -> None:
        super().__init__(widths)
        self.value = value

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.value}"


class ConstantPad2d(ConstantPad1d):
    """A value around images.

    >>> mg.nn.ConstantPad2d(1, 5.0)(mg.zeros((1, 1))).tolist()
    [[5.0, 5.0, 5.0], [5.0, 0.0, 5.0], [5.0, 5.0, 5.0]]
    """

    count = 2


class ReflectionPad1d(_Pad):
    """The mirror image of sequences around them, without their last elements.

    >>> mg.nn.ReflectionPad1d(2)(mg.asarray([1.0, 2.0, 3.0])).tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    """

    mode, count = "reflect", 1


class ReflectionPad2d(_Pad):
    """The mirror image of images around them, without their last rows and columns.

    >>> mg.nn.ReflectionPad2d(1)(mg.ones((5, 3, 8, 8))).shape
    (5, 3, 10, 10)
    """

    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last elements of sequences, repeated around them.

    >>> mg.nn.ReplicationPad1d(2)(mg.asarray([1.0, 2.0])).tolist()
    [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    """

    mode, count = "edge", 1


class ReplicationPad2d(_Pad):
    """The last rows and columns of images, repeated around them.

    >>> mg.nn.ReplicationPad2d(1)(mg.ones((5, 3, 8, 8))).shape
    (5, 3, 10, 10)
    """

    mode = "edge"


class CircularPad1d(_Pad):
    """Sequences continued from their other end.

    >>> mg.nn.CircularPad1d(1)(mg.asarray([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0, 3.0, 1.0]
    """

    mode, count = "wrap", 1


class CircularPad2d(_Pad):
    """Images continued from their other sides.

    >>> mg.nn.CircularPad2d(1)(mg.ones((5, 3, 8, 8))).shape
    (5, 3, 10, 10)
    """

    mode = "wrap"
