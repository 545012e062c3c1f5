"""Layers that change the size of images: the functions are in `ops.resampling`."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.resampling import interpolate, pixel_shuffle
from ..support.errors import ConversionError
from .layers import check_sizes
from .module import Module


class Upsample(Module):
    """`mg.interpolate` as a layer: to a `size`, or by a `scale_factor`.

    >>> layer = mg.nn.Upsample(scale_factor=2, mode="bilinear")
    >>> layer, layer(mg.ones((5, 3, 4, 4))).shape
    (Upsample(scale_factor=2, mode=bilinear), (5, 3, 8, 8))
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool = False) -> None:
        if (size is None) == (scale_factor is None):
            raise ConversionError("Upsample: it takes a size or a scale_factor, and not both")
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, x: Tensor) -> Tensor:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        size = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{size}, mode={self.mode}" + (", align_corners=True" if self.align_corners else "")


class PixelShuffle(Module):
    """`mg.pixel_shuffle` as a layer.

    >>> mg.nn.PixelShuffle(2)(mg.ones((5, 12, 4, 4))).shape
    (5, 3, 8, 8)
    """

    def __init__(self, factor: int) -> None:
        check_sizes("PixelShuffle", 1, factor=factor)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return pixel_shuffle(x, self.factor)

    def extra_repr(self) -> str:
        return f"{self.factor}"
