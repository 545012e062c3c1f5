"""Collating: a list of items becomes one batch of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..support.errors import ConversionError, ShapeError
from ..support.words import shown
from .dataset import host

NUMBERS = (np.ndarray, np.generic, Tensor, int, float, bool)


def collate(items: list[Any]) -> Any:
    """Items as a batch: numbers and arrays are stacked, also inside tuples, lists and dicts; text stays a list.

    >>> from minigrad.data.collate import collate
    >>> collate([(1, "one"), (2, "two")])
    (array([1, 2]), ['one', 'two'])
    """
    first = items[0]
    if isinstance(first, dict):
        if any(item.keys() != first.keys() for item in items):
            raise ConversionError("collate: the items of a batch are dicts with different keys")
        return {key: collate([item[key] for item in items]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in items):
            raise ConversionError("collate: the items of a batch are tuples of different lengths",
                                  hint="arrays of different lengths: DataLoader(..., collate=mg.data.pad)")
        return tuple([collate([item[i] for item in items]) for i in range(len(first))])
    return stacked(items) if isinstance(first, NUMBERS) else items


def stacked(items: list[Any]) -> np.ndarray[Any, Any]:
    """Stack arrays of the same shape."""
    arrays = [host(item) for item in items]
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"collate: item {i} of a batch has shape {array.shape} and the first {arrays[0].shape}",
                expect="the same shape for all, so that they can be stacked",
                hint="change them with dataset.map(...), or DataLoader(..., collate=mg.data.pad)",
            )
    return np.stack(arrays)


def pad(items: list[Any], value: float = 0) -> Any:
    """Like `collate`, for arrays of different lengths: shorter ones are padded with `value` at the end.

    >>> mg.data.pad([[1, 2, 3], [4]]).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    if not isinstance(items, (list, tuple)) or not items:
        raise ConversionError(f"pad: items are a list, not {shown(items)}")
    first = items[0]
    if isinstance(first, tuple):
        return tuple([pad([item[i] for item in items], value) for i in range(len(first))])
    arrays = [host(item) for item in items]
    if not arrays[0].ndim:
        return np.stack(arrays)
    sizes = np.max([array.shape for array in arrays], axis=0)
    out = np.full((len(arrays), *sizes), value, dtype=arrays[0].dtype)
    for row, array in zip(out, arrays):
        row[tuple(map(slice, array.shape))] = array
    return out
