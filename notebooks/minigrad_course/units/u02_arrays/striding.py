"""`views`: a student's shapes and strides in the place of the library's transposed, broadcast and windowed arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minigrad.core.clock import buffer_of
from minigrad.core.emit import Eager
from minigrad.core.mode import current_mode, switch
from minigrad.devices.registry import CPU, register_kernel

from ...feedback import Misused, at_its_line, written
from ...swapping import Swapped
from .strides import read_by

Sizes = tuple[int, ...]


def sizes(value: Any) -> Sizes | None:
    """Whole numbers as a tuple; None for anything else."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = (value,)
    if not isinstance(value, tuple | list) or not all(isinstance(each, int | np.integer) for each in value):
        return None
    return tuple([int(each) for each in value])


def view_of(array: Any, shape: Sizes, strides: Sizes, name: str) -> Any:
    """A view of an array's buffer; NumPy checks that it reads nothing outside.

    >>> view_of(np.arange(6.0).reshape(2, 3), (3, 2), (1, 3), "transposed").tolist()
    [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    """
    root = buffer_of(array)
    steps = tuple([stride * array.itemsize for stride in strides])
    try:
        first = array.ctypes.data - root.ctypes.data
        return np.ndarray(shape, array.dtype, root.ravel(order="K"), first, steps)
    except ValueError:
        far = max(read_by(shape, strides), default=0)
        problem = f"shape {shape} with strides {strides} reads element {far}, beyond the end of the buffer"
        hint = "the largest index of each axis times its stride, added: is it in the array?"
        raise Misused(name, problem, hint) from None


@contextmanager
def views(transposed: Any, broadcasted: Any, windowed: Any) -> Iterator[Swapped]:
    """Let three functions make the library's views: their strides are what every operation after them reads."""
    mine = Swapped("transposed, broadcasted and windowed")
    own = {"permute_dims": _permuted(transposed, mine), "broadcast_to": _broadcast(broadcasted, mine),
           "windows": _windows(windowed, mine)}
    registered = [register_kernel(op, "cpu:*", kernel) for op, kernel in own.items()]
    try:
        with switch(interpreter=current_mode().interpreter or Eager()):
            yield mine
    finally:
        for each in registered:
            each.undo()


def _called(function: Callable[..., Any], mine: Swapped, *args: Any) -> Any:
    """The result of a student's function; an error in it is shown at its line."""
    mine.calls += 1
    name = getattr(function, "__name__", "your function")
    with at_its_line(name, f"{name}({', '.join(map(str, args))})"):
        return function(*args)


def _checked(found: Any, shape: Sizes, name: str) -> Sizes:
    """The strides of a result (shape, strides) that has the right shape."""
    parts = found if isinstance(found, tuple | list) and len(found) == 2 else (None, None)
    own, strides = sizes(parts[0]), sizes(parts[1])
    if own != shape or strides is None or len(strides) != len(shape):
        hint = "two tuples of whole numbers: return shape, strides"
        raise Misused(name, f"returned {written(found)} for a view of shape {shape}", hint)
    return strides


def _elements(x: Any) -> Sizes:
    return tuple([stride // x.itemsize for stride in x.strides])


def _permuted(function: Any, mine: Swapped) -> Callable[..., Any]:
    def permute_dims(x: Any, axes: Sizes) -> Any:
        shape = tuple([x.shape[axis] for axis in axes])
        found = _called(function, mine, x.shape, _elements(x), axes)
        return view_of(x, shape, _checked(found, shape, "transposed"), "transposed")

    return permute_dims


def _broadcast(function: Any, mine: Swapped) -> Callable[..., Any]:
    def broadcast_to(x: Any, shape: Sizes) -> Any:
        found = _called(function, mine, x.shape, _elements(x), shape)
        out = view_of(x, shape, _checked((shape, found), shape, "broadcasted"), "broadcasted")
        out.flags.writeable = False
        return out

    return broadcast_to


def _windows(function: Any, mine: Swapped) -> Callable[..., Any]:
    def windows(x: Any, axis: Sizes, size: Sizes, stride: Sizes, dilation: Sizes) -> Any:
        if set(dilation) != {1}:  # gaps within a window are not in the exercise
            return CPU.own_kernels["windows"](x, axis=axis, size=size, stride=stride, dilation=dilation)
        shape, strides = x.shape, _elements(x)
        for a, extent, step in zip(axis, size, stride):
            there = (*shape[:a], (shape[a] - extent) // step + 1, *shape[a + 1 :], extent)
            strides = _checked(_called(function, mine, shape, strides, a, extent, step), there, "windowed")
            shape = there
        out = view_of(x, shape, strides, "windowed")
        out.flags.writeable = False
        return out

    return windows
