"""The frequencies of a Fourier transform, and shifts of its zero: the part of `fft` without complex numbers."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..support.errors import ConversionError
from ..support.words import shown, whole
from .composite import composed
from .creation import arange
from .declare import normal_axes
from .elementwise import astype, divide, less, where
from .joining import roll


@composed
def fftfreq(n: int, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of `n` samples at a distance `d`: those from 0 up, then the negative ones.

    >>> mg.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    count = _samples("fftfreq", n)
    place = arange(count, device=device)
    return _frequencies(where(less(place, (count + 1) // 2), place, place - count), count * d, dtype)


@composed
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of `n` real samples at a distance `d`, which are not negative.

    >>> mg.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    count = _samples("rfftfreq", n)
    return _frequencies(arange(count // 2 + 1, device=device), count * d, dtype)


def _samples(name: str, n: Any) -> int:
    count = whole(n, 1)
    if count is None:
        raise ConversionError(f"{name}: n is an integer, 1 or more, not {shown(n)}")
    return count


def _frequencies(place: Tensor, length: float, dtype: Any) -> Tensor:
    made = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    return divide(astype(place, made), length)


@composed
def fftshift(x: Tensor, axes: Any = None) -> Tensor:
    """The elements shifted by half of the size along `axes` (along all of them if None): frequency 0 is in the middle.

    >>> mg.fft.fftshift(mg.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    places = normal_axes("fftshift", axes, x.ndim)
    return roll(x, tuple([x.shape[a] // 2 for a in places]), places)


@composed
def ifftshift(x: Tensor, axes: Any = None) -> Tensor:
    """The elements shifted back: the inverse of `fftshift`.

    >>> mg.fft.ifftshift(mg.fft.fftshift(mg.arange(5))).tolist()
    [0, 1, 2, 3, 4]
    """
    places = normal_axes("ifftshift", axes, x.ndim)
    return roll(x, tuple([-(x.shape[a] // 2) for a in places]), places)
