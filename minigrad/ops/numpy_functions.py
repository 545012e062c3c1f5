"""NumPy's functions of tensors that are not functions of `mg`, composed of these; their parameters are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from . import contract, creation
from .creation import asarray
from .interop import COMPOSED
from .joining import concat
from .ordering import unique_all
from .view import flatten, moveaxis, reshape


def atleast_1d(*tensors: Any) -> Any:
    return _each(lambda x: x if x.ndim else reshape(x, (1,)), tensors)


def atleast_2d(*tensors: Any) -> Any:
    return _each(lambda x: x if x.ndim > 1 else reshape(x, (1, -1)), tensors)


def _each(function: Callable[[Tensor], Tensor], tensors: tuple[Any, ...]) -> Any:
    results = tuple([function(asarray(x)) for x in tensors])
    return results[0] if len(results) == 1 else results


def vstack(tensors: Any) -> Tensor:
    return concat([atleast_2d(x) for x in tensors])


def hstack(tensors: Any) -> Tensor:
    parts = [atleast_1d(x) for x in tensors]
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


def column_stack(tensors: Any) -> Tensor:
    return concat([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in map(asarray, tensors)], axis=1)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    parts = [asarray(arr), asarray(values)]
    return concat([flatten(x) for x in parts] if axis is None else parts, axis=axis or 0)


def block(arrays: Any) -> Tensor:
    """Nested lists of tensors joined: the innermost along the last axis, those around them along the one before."""
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    return _joined(arrays, -depth, max(depth, *[asarray(x).ndim for x in _innermost(arrays)]))


def _innermost(arrays: Any) -> list[Any]:
    return [x for part in arrays for x in _innermost(part)] if isinstance(arrays, list) else [arrays]


def _joined(arrays: Any, axis: int, ndim: int) -> Tensor:
    if isinstance(arrays, list):
        return concat([_joined(part, axis + 1, ndim) for part in arrays], axis=axis)
    x = asarray(arrays)
    return reshape(x, (1,) * (ndim - x.ndim) + x.shape)


def broadcast_arrays(*tensors: Any, subok: bool = False) -> Any:
    if not any(t is None for t in tensors):
        return creation.broadcast_arrays(*tensors)
    return np.broadcast_arrays(*[t.numpy() if t.__class__ is Tensor else t for t in tensors])  # matplotlib's bars


def diagonal(a: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return contract.diagonal(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def trace(a: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    return contract.trace(moveaxis(a, (axis1, axis2), (-2, -1)), offset, dtype)


def unique(ar: Tensor, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False) -> Any:
    values, *rest = unique_all(ar)
    chosen = [part for part, wanted in zip(rest, (return_index, return_inverse, return_counts)) if wanted]
    return (values, *chosen) if chosen else values


HERE = (
    atleast_1d, atleast_2d, vstack, hstack, column_stack, append, block, broadcast_arrays, diagonal, trace, unique,
)
COMPOSED.update({f.__name__: f for f in HERE})
