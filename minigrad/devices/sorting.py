"""Sorting on NumPy: stable like NumPy's stable sort, at the speed of its other sorts.  nans are the largest numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .special import WORTH_PACKING, packed_argsort


def positions_in_order(x: Any, axis: int, descending: bool, count: int | None = None) -> Any:
    """A stable `argsort` along an axis, or its first `count` positions.

    >>> x = np.array([2.0, -1.0, 2.0, np.nan])
    >>> positions_in_order(x, 0, False).tolist(), positions_in_order(x, 0, True, 2).tolist()
    ([1, 0, 2, 3], [3, 0])
    """
    size = x.shape[axis]
    if count is not None and x.size >= WORTH_PACKING and 0 < 8 * count <= size:
        return _first_positions(x, axis, descending, count)
    if size < WORTH_PACKING:
        order = _plain_argsort(x, axis, descending)
    elif x.dtype.itemsize <= 4:
        order = packed_argsort(x, axis, descending)
    elif descending:  # reversed twice, so that ties keep their order
        order = size - 1 - np.flip(_with_ties_in_order(np.flip(x, axis), axis), axis)
    else:
        order = _with_ties_in_order(x, axis)
    return order if count is None else np.take(order, range(count), axis)


def sorted_values(x: Any, axis: int, descending: bool) -> Any:
    """The values along an axis in order.

    >>> sorted_values(np.array([2, 1, 3]), 0, descending=True).tolist()
    [3, 2, 1]
    """
    given = np.moveaxis(x, axis, -1)
    rows = given.copy(order="C")
    rows.sort(-1, kind="stable" if x.dtype.itemsize == 1 else None)  # for bytes, NumPy's stable sort counts
    if descending:
        rows = rows[..., ::-1]
    if x.dtype.kind == "f" and _has_both_zeros(x):  # they are equal, so they keep their order
        rows[rows == 0] = given[given == 0]
    return np.ascontiguousarray(np.moveaxis(rows, -1, axis))


def _has_both_zeros(x: Any) -> bool:
    zeros = x == 0
    if not zeros.any():
        return False
    negative = np.count_nonzero(np.signbit(x[zeros]))
    return bool(0 < negative < np.count_nonzero(zeros))


def _plain_argsort(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _with_ties_in_order(x: Any, axis: int) -> Any:
    """An `argsort` that does not keep the order of equal elements, then a sort of the positions of each tie."""
    order = np.argsort(x, axis)
    rows = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
    new = rows[..., 1:] != rows[..., :-1]
    if x.dtype.kind == "f":
        new &= rows[..., :-1] == rows[..., :-1]  # behind a nan are only nans
    if new.all():
        return order
    groups = np.zeros(rows.shape, np.int64)
    np.cumsum(new, -1, out=groups[..., 1:])
    keys = groups << 32 | np.moveaxis(order, axis, -1)
    keys.sort(axis=-1)
    return np.moveaxis(keys & 0xFFFFFFFF, -1, axis)


def _first_positions(x: Any, axis: int, descending: bool, count: int) -> Any:
    """The positions of all elements beyond the last one that counts, and of the first of its equals; then in order."""
    turned = np.moveaxis(x, axis, -1)
    size = turned.shape[-1]
    rows = turned.reshape(-1, size)
    if x.dtype == np.float16:
        rows = rows.astype(np.float32)
    last = size - count if descending else count - 1
    bound = np.partition(rows, last, -1)[:, last : last + 1]
    chosen = ~(rows < bound) if descending else rows <= bound
    if np.count_nonzero(chosen) != len(rows) * count or (bound != bound).any():
        tied = np.count_nonzero(chosen, -1) != count  # with the last one, or that is a nan
        chosen[tied] = _without_later_equals(rows[tied], bound[tied], descending, count)
    places = (np.flatnonzero(chosen) % size).reshape(-1, count)
    order = _plain_argsort(np.take_along_axis(rows, places, -1), -1, descending)
    places = np.take_along_axis(places, order, -1)
    return np.moveaxis(places.reshape(*turned.shape[:-1], count), -1, axis)


def _without_later_equals(rows: Any, bound: Any, descending: bool, count: int) -> Any:
    nans = rows != rows
    beyond = (rows > bound) | (nans & (bound == bound)) if descending else (rows < bound) | (~nans & (bound != bound))
    equal = (rows == bound) | (nans & (bound != bound))
    wanted = count - np.count_nonzero(beyond, -1, keepdims=True)
    return beyond | (equal & (np.cumsum(equal, -1) <= wanted))
