"""Reads rows of an array at positions, and adds rows to an array, or takes maxima with them, at positions.

NumPy's `take` copies rows twice as fast as an index does.  Its `add.at` is fast on flat arrays only, and machine code
is ten times as fast: the compiler has a function for it, which is loaded with the first large sum or maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .compiled import native
from .library import WIDE
from .threads import BLOCK, THREADS, in_blocks

MANY = 1 << 16  # elements: from here on, the pool has memory for the result
WORTH_SHARING = 1 << 20  # elements that several threads copy or combine
WORTH_COMPILING = 1 << 15  # elements that machine code combines
WORTH_FLATTENING = 1 << 11  # elements from which `add.at` works on flat arrays
FEWEST_COLUMNS = 16  # of a thread's part of all rows: a cache line
PART = 1 << 14  # elements that `add.at` adds at a time

Combine = Callable[[Any, Any, Any, int, int], None]  # (rows of the result, positions, given rows, columns from, to)


def gather(x: Any, indices: tuple[Any, ...], empty: Callable[..., Any]) -> Any:
    """The elements of an array at positions of its leading dimensions; `empty` returns memory for many.

    >>> gather(np.array([[1.0, 2.0], [3.0, 4.0]]), (np.array([1, -1, 0]),), np.empty).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    if not x.size or not x.flags.c_contiguous:
        return x[indices]
    if len(indices) == 1 and indices[0].size * x.size < MANY * len(x):
        return x.take(indices[0], 0) if WIDE else x[indices]  # `take` refuses positions wider than an address
    row = x.shape[len(indices) :]
    shape = np.broadcast_shapes(*[index.shape for index in indices]) + row
    if math.prod(shape) < MANY:
        return x[indices]
    places = row_numbers(x.shape[: len(indices)], indices)
    out = empty(shape, x.dtype)
    table, flat, rows = x.reshape(-1, *row), places.reshape(-1), out.reshape(-1, *row)

    def copy(start: int, stop: int) -> None:
        table.take(flat[start:stop], 0, rows[start:stop], "wrap")  # the mode "raise" would copy twice

    if out.size < WORTH_SHARING:
        copy(0, len(flat))
    else:
        in_blocks(copy, len(flat), max(1, BLOCK * len(flat) // out.size))
    return out


def scatter_add(base: Any, value: Any, *indices: Any) -> Any:
    """A copy of `base` with `value` added at `indices` of its leading dimensions, one after the other.

    >>> scatter_add(np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0, 1, 0]))
    array([[6., 8.],
           [3., 4.]])
    """
    return _combined("sum", np.add, base, value, indices)


def scatter_max(base: Any, value: Any, *indices: Any) -> Any:
    """A copy of `base` with the maxima of its elements at `indices` of its leading dimensions and of `value`.

    >>> scatter_max(np.zeros((2, 2)), np.array([[1.0, 9.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0, 1, 0]))
    array([[5., 9.],
           [3., 4.]])
    """
    return _combined("max", np.maximum, base, value, indices)


def _combined(name: str, function: np.ufunc, base: Any, value: Any, indices: tuple[Any, ...]) -> Any:
    out = base.copy(order="C")
    shape = np.broadcast_shapes(*[index.shape for index in indices]) + base.shape[len(indices) :]
    many = math.prod(shape)
    worth = many >= WORTH_COMPILING and base.dtype.kind in "iuf" and base.dtype.itemsize > 2
    compiled = native() if worth else None
    if compiled is None and (np.size(value) < WORTH_FLATTENING or (len(indices) == 1 and base.ndim == 1)):
        function.at(out, indices, value)
        return out
    own = tuple([index.astype(np.intp) for index in indices])  # no other thread changes them after they are checked
    places = row_numbers(base.shape[: len(indices)], own).reshape(-1)
    width = max(1, math.prod(base.shape[len(indices) :]))
    rows, flat = np.broadcast_to(value, shape).reshape(-1, width), out.reshape(-1)
    if compiled is not None:
        _in_columns(partial(compiled.combine_rows, name), flat, places, np.ascontiguousarray(rows, base.dtype), width)
    else:
        _on_flat(function, flat, places, rows, width)
    return out


def _in_columns(combine: Combine, out: Any, places: Any, rows: Any, width: int) -> None:
    """Each thread has some columns: the order of the sums is the same for any number of threads."""
    parts = max(1, min(THREADS.count, width // FEWEST_COLUMNS)) if rows.size >= WORTH_SHARING else 1
    columns = -(-width // (parts * FEWEST_COLUMNS)) * FEWEST_COLUMNS if parts > 1 else width
    places = np.ascontiguousarray(places)
    in_blocks(lambda start, stop: combine(out, places, rows, start, stop), width, columns)


def _on_flat(function: np.ufunc, out: Any, places: Any, rows: Any, width: int) -> None:
    starts, within = places.reshape(-1, 1) * width, np.arange(width)
    step = max(1, PART // width)
    for first in range(0, len(starts), step):
        at = starts[first : first + step] + within
        function.at(out, at.reshape(-1), rows[first : first + step].reshape(-1))


def row_numbers(shape: tuple[int, ...], indices: tuple[Any, ...]) -> Any:
    """The row number of each position of the index arrays, with all rows of the dimensions `shape` counted in order.

    >>> row_numbers((2, 3), (np.array([0, 1]), np.array([-1, 0])))
    array([2, 3])
    """
    number: Any = None
    for size, index in zip(shape, indices):
        index = index.astype(np.intp, copy=False)
        if index.size and index.view(np.uintp).max() >= size:  # negative positions are large there
            if not (-size <= index.min() and index.max() < size):
                raise IndexError(f"an index is out of range for a dimension of size {size}")
            index = np.where(index < 0, index + size, index)
        number = index if number is None else number * size + index
    return np.zeros((), np.intp) if number is None else number
