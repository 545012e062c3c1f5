"""Every primitive written in NumPy, in float64 and int64: the registry's tests compare with these.

No function here calls minigrad, except that the steps of a `put` are named by minigrad's view primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

REFERENCES: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negative": np.negative,
    "pow": np.power, "floor_divide": np.floor_divide, "remainder": np.mod, "abs": np.abs, "maximum": np.maximum,
    "minimum": np.minimum, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "atan2": np.arctan2, "floor": np.floor, "round": np.round, "less": np.less, "less_equal": np.less_equal,
    "equal": np.equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_invert": np.invert, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "where": np.where, "bitcast": lambda x, dtype: x.view(dtype),
    "reshape": lambda x, shape: np.reshape(x, shape),
    "permute_dims": lambda x, axes: np.transpose(x, axes),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "slice": lambda x, index: x[index],
    "sum": lambda x, axis, keepdims, dtype: np.sum(x, axis=axis, keepdims=keepdims),
    "prod": lambda x, axis, keepdims, dtype: np.prod(x, axis=axis, keepdims=keepdims),
    "max": lambda x, axis, keepdims: np.max(x, axis=axis, keepdims=keepdims),
    "min": lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims),
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "argmin": lambda x, axis: np.argmin(x, axis=axis),
    "cumulative_sum": lambda x, axis, dtype: np.cumsum(x, axis=axis),
    "cumulative_prod": lambda x, axis, dtype: np.cumprod(x, axis=axis),
    "gather": lambda x, *indices: x[indices],
    "concat": lambda *xs, axis: np.concatenate(xs, axis=axis),
    "matmul": np.matmul,
    "solve": np.linalg.solve,
    "cholesky": np.linalg.cholesky,
    "eigh": lambda x: np.concatenate([(found := np.linalg.eigh(x))[0][..., None, :], found[1]], axis=-2),
    "svd": lambda x: np.concatenate(
        [(found := np.linalg.svd(x, full_matrices=False))[1][..., None, :], found[0], np.swapaxes(found[2], -1, -2)], -2
    ),
    "qr": lambda x, complete: np.concatenate(
        [(found := np.linalg.qr(x, "complete" if complete else "reduced"))[0], np.swapaxes(found[1], -1, -2)], axis=-2
    ),
    "pinv": lambda x, rtol: np.linalg.pinv(x, rtol[..., 0, 0]),
    "slogdet": lambda x: np.stack(np.linalg.slogdet(x), axis=-1),
    "full": lambda shape, value, dtype, device: np.full(shape, value),
    "arange": lambda start, step, count, dtype, device: np.array([start + i * step for i in range(count)]),
}

VIEWS = ("reshape", "permute_dims", "broadcast_to", "slice", "windows")


def reference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: add a reference of several lines, under its own name."""
    REFERENCES[function.__name__] = function
    return function


@reference
def astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def scattered(combine: Any, base: Any, value: Any, *indices: Any) -> Any:
    out = base.copy()
    spread = np.broadcast_to(value, out[indices].shape)
    places = np.broadcast_arrays(*indices)
    for at in np.ndindex(places[0].shape):
        place = tuple(int(p[at]) for p in places)
        out[place] = combine(out[place], spread[at])
    return out


@reference
def scatter_add(base: Any, value: Any, *indices: Any) -> Any:
    return scattered(np.add, base, value, *indices)


@reference
def scatter_max(base: Any, value: Any, *indices: Any) -> Any:
    return scattered(np.maximum, base, value, *indices)


@reference
def put(base: Any, value: Any, *indices: Any, chain: Any) -> Any:
    out = base.copy()
    seen = out
    for op, attrs in chain:
        seen = REFERENCES[op.name](seen, **attrs)
    if indices:
        seen[indices] = value
    else:
        seen[...] = value
    return out


@reference
def place(x: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


def _places(axis: Any, stride: Any, dilation: Any, counts: Any, size: Any) -> Any:
    """For each window and each position in it, the index of the element in the whole array, along `axis`."""
    for window in np.ndindex(*[counts[a] for a in axis]):
        for within in np.ndindex(*size):
            yield window, within, [w * s + i * d for w, i, s, d in zip(window, within, stride, dilation)]


def _at(ndim: int, axis: Any, places: Any) -> Any:
    index: list[Any] = [slice(None)] * ndim
    for a, place in zip(axis, places):
        index[a] = place
    return tuple(index)


@reference
def windows(x: Any, axis: Any, size: Any, stride: Any, dilation: Any) -> Any:
    counts = list(x.shape)
    for a, k, s, d in zip(axis, size, stride, dilation):
        counts[a] = len(range(0, x.shape[a] - (k - 1) * d, s))
    out = np.zeros((*counts, *size), x.dtype)
    for window, within, place in _places(axis, stride, dilation, counts, size):
        out[(*_at(x.ndim, axis, window), *within)] = x[_at(x.ndim, axis, place)]
    return out


@reference
def overlap_add(x: Any, axis: Any, stride: Any, dilation: Any, shape: Any) -> Any:
    out = np.zeros(shape, x.dtype)
    for window, within, place in _places(axis, stride, dilation, x.shape, x.shape[out.ndim :]):
        out[_at(out.ndim, axis, place)] += x[(*_at(out.ndim, axis, window), *within)]
    return out


@reference
def argsort(x: Any, axis: int, descending: bool, count: int | None = None) -> Any:
    """By Python's stable sort; a nan counts as larger than any number, as in NumPy."""

    def order(row: Any) -> Any:
        return np.array(sorted(range(len(row)), key=lambda i: (np.isnan(row[i]), row[i]), reverse=descending), np.int64)

    found = np.apply_along_axis(order, axis, x) if x.size else np.zeros(x.shape, np.int64)
    return found if count is None else np.take(found, range(count), axis)


@reference
def sort(x: Any, axis: int, descending: bool) -> Any:
    return np.take_along_axis(x, argsort(x, axis, descending), axis)
