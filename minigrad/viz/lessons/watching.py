"""Record the kernels that run: their arguments, the functions that called them, and the times.

While kernels are recorded, a function that notes each call replaces each kernel in the tables of the devices.  All code
before that is the same as always.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import CodeType
from typing import Any

import numpy as np

from ...arguments.public import __file__ as TAKES_IN  # its frames are between a call and its function
from ...core.mode import current_mode
from ...core.primitive import P, Primitive
from ...core.programs import eager_programs
from ...devices.registry import DEVICES, REGISTRATIONS, Device
from ...support.errors import MinigradError
from ...support.source import HOME, in_library
from ..exhibit import check_function

Frame = tuple[CodeType, int]  # a function, and the current line
# Files whose frames do not belong to a call: the check of arguments, and the views that watch the call.
LEFT_OUT = (TAKES_IN, os.path.join(HOME, "core", "programs.py"), os.path.join(HOME, "viz", ""))


@dataclass
class Call:
    """A kernel that ran: its arguments, its result, the calling functions (the outermost first), and the times."""

    op: Primitive
    device: Device
    kernel: Callable[..., Any]
    values: tuple[Any, ...]
    attrs: dict[str, Any]
    result: Any
    frames: list[Frame]
    shared: bool  # whether the device provided the memory of the result, and may have used several threads
    begin: float
    end: float
    scope: tuple[str, ...] = ()  # the modules whose forward pass was running

    @property
    def registered(self) -> bool:
        """Whether the kernel was registered by `register_kernel`."""
        return any(registration.put_in(self.kernel) for registration in REGISTRATIONS)

    @property
    def moves(self) -> bool:
        """Whether it reads and writes memory.  A view does only if it has to copy: a transposed array, for example."""
        if self.op.kind != "view":
            return True
        arrays = (self.result, *self.values)
        return all(isinstance(each, np.ndarray) for each in arrays) and not np.may_share_memory(*arrays)

    @property
    def read(self) -> int:
        """The bytes of the arrays that it was given.  An array that is given twice counts once, a number not at all."""
        return _bytes_of(self.values)

    @property
    def written(self) -> int:
        """The bytes of the arrays that it returned."""
        return _bytes_of(self.result)


def _bytes_of(values: Any) -> int:
    return sum({id(array): int(array.nbytes) for array in _arrays(values)}.values())


def _arrays(value: Any) -> Iterator[Any]:
    if getattr(value, "shape", ()):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _arrays(each)


@eager_programs(False)
def seconds_of(function: Callable[..., Any], *args: Any) -> float:
    """The time of one call: the mean of several where the clock has too large steps for one, as in a browser."""
    calls, seconds = 1, 0.0
    while not seconds:
        begin = perf_counter()
        for _ in range(calls):
            function(*args)
        seconds, calls = (perf_counter() - begin) / calls, 10 * calls
    return seconds


def calls_of(view: str, function: Callable[..., Any], args: tuple[Any, ...], example: str, hint: str) -> list[Call]:
    """The kernels that a function runs."""
    check_function(view, function, example)
    with watching() as calls:
        function(*args)
    if not calls:
        raise MinigradError(
            f"{view}: no operation ran", expect="a function that computes with tensors", hint=hint
        )
    return calls


@contextmanager
def watching(frames: bool = True, keep: bool = True) -> Iterator[list[Call]]:
    """The kernels that this thread runs in this block, in order.

    `keep` stores the arguments and the results; `frames` stores the calling functions.

    >>> with watching() as calls:
    ...     _ = mg.tanh(mg.ones(2)) + 1
    >>> [call.op.name for call in calls]
    ['full', 'tanh', 'add']
    """
    watch = _Watch(frames, keep)
    devices = list(DEVICES.values())
    before = [(device, dict(device.kernels)) for device in devices]
    for device in devices:
        watch.stand_before(device)
    try:
        with eager_programs(False):  # so that every operation is seen
            yield watch.calls
    finally:
        watch.done = True
        for device, kernels in before:
            device.kernels.update(kernels)
            del device.elementwise


class _Watch:
    def __init__(self, frames: bool, keep: bool) -> None:
        self.calls: list[Call] = []
        self.frames, self.keep = frames, keep
        self.thread = threading.get_ident()
        self.inside = self.done = False

    def stand_before(self, device: Device) -> None:
        for op in P:
            if op.name in device.kernels:
                device.kernels[op.name] = self.noted(op, device, device.kernels[op.name])
        elementwise = device.elementwise

        def shared(kernel: Any, op: Primitive, values: list[Any], attrs: dict[str, Any]) -> Any:
            bare = getattr(kernel, "watched", kernel)
            return self.call(op, device, bare, lambda: elementwise(bare, op, values, attrs), tuple(values), attrs, True)

        device.elementwise = shared  # type: ignore[method-assign]

    def noted(self, op: Primitive, device: Device, kernel: Any) -> Any:
        def watched(*values: Any, **attrs: Any) -> Any:
            if self.done or self.inside or threading.get_ident() != self.thread:
                return kernel(*values, **attrs)
            return self.call(op, device, kernel, lambda: kernel(*values, **attrs), values, attrs, False)

        watched.__name__ = getattr(kernel, "__name__", op.name)
        watched.watched = kernel  # type: ignore[attr-defined]
        return watched

    def call(
        self, op: Primitive, device: Device, kernel: Any, run: Callable[[], Any], values: tuple[Any, ...],
        attrs: dict[str, Any], shared: bool,
    ) -> Any:
        """Run a kernel and note the call; kernels that the kernel itself calls are not noted."""
        frames = _frames_above(3) if self.frames else []
        self.inside = True
        begin = perf_counter()
        try:
            result = run()
        finally:
            end = perf_counter()
            self.inside = False
        made = result
        if not self.keep:
            values, attrs, made = (), {}, None
        scope = current_mode().scope
        self.calls.append(Call(op, device, kernel, values, attrs, made, frames, shared, begin, end, scope))
        return result


def _frames_above(depth: int) -> list[Frame]:
    """The functions from the user's line down to here: those of minigrad, and the user's function."""
    found = []
    frame = sys._getframe(depth)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(LEFT_OUT):
            found.append((frame.f_code, frame.f_lineno))
        if not in_library(frame.f_code.co_filename) or frame.f_back is None:
            break
        frame = frame.f_back
    return found[::-1]
