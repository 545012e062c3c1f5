"""Sorting on NumPy: stable like NumPy's stable sort, at the speed of its other sorts.  nans are the largest numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .threads import BLOCK, in_blocks

WORTH_BOUNDING = 1 << 10  # elements of which few are wanted; fewer are sorted sooner
WORTH_PACKING = 256  # elements
MANY = 64  # elements of a row, of which dropping half costs less than a partition of all


def positions_in_order(x: Any, axis: int, descending: bool, count: int | None = None) -> Any:
    """A stable `argsort` along an axis, or its first `count` positions.

    >>> x = np.array([2.0, -1.0, 2.0, np.nan])
    >>> positions_in_order(x, 0, False).tolist(), positions_in_order(x, 0, True, 2).tolist()
    ([1, 0, 2, 3], [3, 0])
    """
    size = x.shape[axis]
    if count is not None and x.size >= WORTH_BOUNDING and 0 < 8 * count <= size:
        return _first_positions(x, axis, descending, count)
    if size < WORTH_PACKING:
        order = _plain_argsort(x, axis, descending)
    elif can_pack(x, size):
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
    kind: Any = "stable" if x.dtype.itemsize == 1 else None  # for bytes, NumPy's stable sort counts
    flat = rows.reshape(-1, size := max(1, rows.shape[-1]))
    in_blocks(lambda start, stop: flat[start:stop].sort(-1, kind), len(flat), max(1, BLOCK // size))
    if descending:
        rows = rows[..., ::-1]
    if x.dtype.kind == "f" and np.signbit(zeros := given[given == 0]).any():
        rows[rows == 0] = zeros  # zeros of both signs are equal, so they keep their order
    return np.ascontiguousarray(np.moveaxis(rows, -1, axis))


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
    return np.moveaxis((keys & 0xFFFFFFFF).astype(np.intp, copy=False), -1, axis)


def _first_positions(x: Any, axis: int, descending: bool, count: int) -> Any:
    """The first `count` positions, in order: few elements of each row are sorted."""
    turned = np.moveaxis(x, axis, -1)
    rows = np.ascontiguousarray(turned).reshape(-1, turned.shape[-1])
    if x.dtype == np.float16:
        rows = rows.astype(np.float32)
    size = rows.shape[1]
    step = max(1, BLOCK // size)  # rows that stay in the cache
    found = {}

    def choose(start: int, stop: int) -> None:
        found[start] = start * size + _up_to_a_bound(rows[start:stop], descending, count)

    in_blocks(choose, len(rows), step)
    at = np.concatenate([found[start] for start in sorted(found)])
    row = (at // size).astype(np.int32)
    order = positions_in_order(rows.reshape(-1).take(at), 0, descending)
    if len(rows) > 1:
        order = order.take(packed_argsort(row.take(order), 0, False))
    first = np.searchsorted(row, np.arange(len(rows)))[:, None]
    places = at.take(order.take(first + np.arange(count))) % size
    return np.moveaxis(places.reshape(*turned.shape[:-1], count), -1, axis)


def _up_to_a_bound(rows: Any, descending: bool, count: int) -> Any:
    """Flat positions, in order, that include those of the first `count` elements of each row, and few others."""
    bound = _bound(rows, descending, count)
    chosen = ~(rows < bound) if descending else rows <= bound
    if (bound != bound).any():  # a nan, before which are all numbers, or none
        chosen = np.where(bound != bound, (rows != rows) | (not descending), chosen)
    at = np.flatnonzero(chosen)
    return at if len(at) <= 2 * len(rows) * count else _without_later_equals(at, rows, bound, count)


def _bound(rows: Any, descending: bool, count: int) -> Any:
    """For each row, a bound: at least `count` elements are not after it, and not many more.

    Of each pair of elements the later one is dropped, as long as many are left.
    """
    first = np.maximum if descending else np.fmin  # a nan is the largest
    while rows.shape[1] >= max(MANY, 8 * count):
        half = rows.shape[1] // 2
        rows = first(rows[:, :half], rows[:, half : 2 * half])
    last = rows.shape[1] - count if descending else count - 1
    return np.partition(rows, last, 1)[:, last : last + 1]


def _without_later_equals(at: Any, rows: Any, bound: Any, count: int) -> Any:
    """The flat positions `at`, without those of the later elements that equal the bound and are not needed."""
    row = at // rows.shape[1]
    values, bounds = rows.reshape(-1).take(at), bound.reshape(-1).take(row)
    equal = (values == bounds) | ((values != values) & (bounds != bounds))
    wanted = count - np.bincount(row[~equal], minlength=len(rows))
    number = np.cumsum(equal)  # of the equal elements, over all rows
    before = np.concatenate([[0], number])[np.searchsorted(row, np.arange(len(rows)))]
    return at[~equal | (number - before[row] <= wanted[row])]


def can_pack(x: Any, size: int) -> bool:
    """Whether 64 bits have room for an element's order and for one of `size` positions: see `packed_argsort`.

    >>> can_pack(np.array([5, 1 << 41]), 1 << 20), can_pack(np.array([5.0]), 1)
    (True, False)
    """
    if x.dtype.itemsize <= 4 or not x.size:
        return True
    return x.dtype.kind in "iu" and int(x.max()) - int(x.min()) < 1 << (63 - size.bit_length())


def packed_argsort(x: Any, axis: int, descending: bool) -> Any:
    """A stable `argsort` where `can_pack`: each element becomes an integer in front of its position, in 64 bits.

    NumPy sorts such integers many times as fast as it sorts positions.

    >>> packed_argsort(np.array([2.0, -1.0, 2.0, np.nan, -0.0, 0.0], np.float32), 0, False).tolist()
    [1, 4, 5, 0, 2, 3]
    >>> packed_argsort(np.array([2, -1, 2], np.int8), 0, True).tolist()
    [0, 2, 1]
    """
    turned, size = np.moveaxis(x, axis, -1), x.shape[axis]
    rows = np.ascontiguousarray(turned).reshape(x.size // max(1, size), size)
    out, shift = np.empty(rows.shape, np.int64), size.bit_length()
    least = x.min().astype(np.int64) if x.dtype.itemsize > 4 and x.size else 0

    def sort(start: int, stop: int) -> None:
        keys = out[start:stop]
        if x.dtype.kind == "f":
            given = rows[start:stop].astype(np.float32)
            bits = (given + 0.0).view(np.int32)  # the sum makes a zero of a negative zero
            bits[np.isnan(given)] = 0x7FFFFFFF  # nans are the largest
            keys[...] = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # in the order of the numbers
        else:
            keys[...] = rows[start:stop].astype(np.int64)
            keys -= least
        if descending:
            np.negative(keys, keys)
        keys <<= shift
        keys |= np.arange(size)
        keys.sort()
        keys &= (1 << shift) - 1

    in_blocks(sort, len(rows), max(1, BLOCK // max(1, size)))
    return np.moveaxis(out.reshape(turned.shape).astype(np.intp, copy=False), -1, axis)
