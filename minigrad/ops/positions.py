"""Rotary positions: attention itself does not depend on the order of a sequence."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.tensor import FloatTensor, Tensor, as_tensor
from ..support.errors import ConversionError, ShapeError
from .composite import composed
from .creation import arange
from .elementwise import astype, cos, exp, sin
from .joining import concat
from .view import expand_dims

__all__ = ["rotary_embedding"]


@composed
def rotary_embedding(x: FloatTensor, positions: Any = None, base: float = 10000.0) -> Tensor:
    """Queries or keys (..., length, size) turned by their positions, so that their products depend on the distance.

    Number k of the first half and number k of the second are turned together, by position / base^(2k / size).  Without
    `positions` they are 0, 1, 2 ...; for a single new token, pass its own.

    >>> mg.rotary_embedding(mg.asarray([[1.0, 0.0], [1.0, 0.0]])).tolist()
    [[1.0, 0.0], [0.540..., 0.841...]]
    """
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ShapeError(
            f"rotary_embedding: an input of shape {x.shape} has no rows that can be cut into halves",
            expect="(..., length, size), size even",
        )
    half = x.shape[-1] // 2
    wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    places = arange(x.shape[-2], device=x.device) if positions is None else as_tensor(positions, x.device)
    if not base > 0:
        raise ConversionError(f"rotary_embedding: base is a number above 0, not {base}")
    speeds = exp(arange(half, dtype=wide, device=x.device) * (-math.log(base) / max(half, 1)))
    angles = expand_dims(astype(places, wide), -1) * speeds
    turn_cos, turn_sin = astype(cos(angles), x.dtype), astype(sin(angles), x.dtype)
    first, second = x[..., :half], x[..., half:]
    return concat([first * turn_cos - second * turn_sin, first * turn_sin + second * turn_cos], axis=-1)
