"""Watch the kernels that run in eager mode: their arguments, the functions that called them, and the times.

While kernels are recorded, a function that notes each call replaces each kernel in the tables of the devices.  All code
before that is the same as always.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...arguments.public import __file__ as TAKES_IN  # its frames are between a call and its function
from ...autodiff.quick_steps import quick_steps
from ...core.mode import current_mode, switch
from ...core.node import Node
from ...core.primitive import NO_RULES, P, Primitive
from ...devices.registry import DEVICES, Device
from ...support.source import HOME, Where, in_library
from ..codegen.workers import WORKERS
from ..fusion.count import Count, eager_count
from ..nodes.graph import Source
from ..nodes.view import View
from ..running.profiler import AROUND

# Files whose frames do not belong to a call: the check of arguments, replacements, and the views that watch the call.
LEFT_OUT = (
    TAKES_IN, os.path.join(HOME, "core", "override.py"), os.path.join(HOME, "core", "programs.py"),
    os.path.join(HOME, "compile", "look", ""), os.path.join(HOME, "viz", ""),
)


@dataclass
class Call:
    """A kernel that ran: its arguments, its result, the calling functions (the outermost first), and the times."""

    op: Primitive
    device: Device
    kernel: Callable[..., Any]
    values: tuple[Any, ...]
    attrs: dict[str, Any]
    result: Any
    frames: list[Where]
    shared: bool  # whether the device provided the memory of the result, and may have used several threads
    begin: float
    end: float
    scope: tuple[str, ...] = ()  # see `modules_now`
    origin: Where | None = None  # in the backward pass, the place that made the node whose gradient is computed
    compiled: bool = False  # whether machine code ran that the compiler made for eager mode

    @property
    def moves(self) -> bool:
        """Whether it reads and writes memory.  A view does only if it must copy: a transposed array, for example."""
        if self.op.kind != "view":
            return True
        arrays = (self.result, *self.values)
        return all(isinstance(each, np.ndarray) and each.size for each in arrays) and not np.may_share_memory(*arrays)

    @property
    def count(self) -> Count:
        """What it read and wrote, and its operations.  An array that it was given twice counts once, a number not."""
        if not self.moves:
            return Count()
        sources: dict[int, Source] = {}
        views: dict[Any, View] = {}
        for array in self.values:
            if hasattr(array, "dtype") and id(array) not in sources and not self.is_number(array):
                made = Source("array", array, array.shape, array.dtype, self.device, current_mode())
                strides = tuple([stride // array.itemsize for stride in array.strides])
                sources[id(array)], views[made] = made, View(made, 0, array.shape, strides)
        inputs = tuple([sources.get(id(value), value) for value in self.values])
        node = Node(self.op, inputs, self.attrs, NO_RULES, None, _described(self.result), self.device)
        views[node] = View(node, 0, (), ())  # it is its own base: it does not only view
        return eager_count(node, views)

    def is_number(self, array: Any) -> bool:
        """Whether it is the array that the device keeps for a Python number; in float32, its value is not the same."""
        return any(array is kept for kept in self.device.weak.values())


class Calls(list[Call]):
    """Calls in order, and whether eager mode would run a program in place of some of them."""

    held_back = False


def _described(result: Any) -> Any:
    """An object with the shape and the dtype of a result, or with those of several."""
    if not isinstance(result, tuple):
        return result
    return SimpleNamespace(shape=tuple([r.shape for r in result]), dtype=tuple([r.dtype for r in result]))


@contextmanager
def watching(
    frames: bool = True, keep: bool = True, programs: bool = False, into: Calls | None = None
) -> Iterator[Calls]:
    """The kernels that this thread runs in this block, in order: they are appended to `into`.

    `keep` stores the arguments and the results; `frames` stores the calling functions and the modules.  Composed
    functions run operation by operation here, unless `programs` is set: then `profile` notes the programs that run in
    their place.  A function with a gradient of its own is the kernels that it calls.

    >>> with watching() as calls:
    ...     _ = mg.tanh(mg.ones(2)) + 1
    >>> [call.op.name for call in calls]
    ['full', 'tanh', 'add']
    """
    watch = _Watch(frames, keep, Calls() if into is None else into)
    devices = list(DEVICES.values())
    before = [(device, dict(device.kernels)) for device in devices]
    for device in devices:
        watch.stand_before(device)
    WORKERS.call = watch.notice  # type: ignore[method-assign]
    try:
        with nullcontext() if programs else switch(programs=watch):
            yield watch.calls
    finally:
        watch.done = True
        del WORKERS.call
        for device, kernels in before:
            device.kernels.update(kernels)
            del device.elementwise


class _Watch:
    def __init__(self, frames: bool, keep: bool, calls: Calls) -> None:
        self.frames, self.keep, self.calls = frames, keep, calls
        self.thread = threading.get_ident()
        self.inside = self.done = False

    def __bool__(self) -> bool:
        """False, as the setting of a mode: no programs run.  It notes that a call would have run as one."""
        self.calls.held_back = True
        return False

    def stand_before(self, device: Device) -> None:
        for op in P:
            if op.name in device.kernels and op is not P.call:
                device.kernels[op.name] = self.noted(op, device, device.kernels[op.name])
        elementwise = device.elementwise

        def shared(kernel: Any, op: Primitive, values: list[Any], attrs: dict[str, Any]) -> Any:
            bare = getattr(kernel, "watched", kernel)
            return self.call(op, device, bare, lambda: elementwise(bare, op, values, attrs), tuple(values), attrs, True)

        device.elementwise = shared  # type: ignore[method-assign]

    def noted(self, op: Primitive, device: Device, kernel: Any) -> Any:
        def watched(*values: Any, **attrs: Any) -> Any:
            return self.call(op, device, kernel, lambda: kernel(*values, **attrs), values, attrs, False)

        watched.__name__ = getattr(kernel, "__name__", op.name)
        watched.watched = kernel  # type: ignore[attr-defined]
        return watched

    def notice(self, function: Callable[[int], object], address: int) -> None:
        """Call machine code in eager mode, in any thread, and note that it ran."""
        self.compiled = True
        function(address)

    def leaves(self) -> bool:
        """Whether calls are not noted now: inside a kernel or a program, and in another thread."""
        return self.done or self.inside or bool(AROUND.get()) or threading.get_ident() != self.thread

    def call(
        self, op: Primitive, device: Device, kernel: Any, run: Callable[[], Any], values: tuple[Any, ...],
        attrs: dict[str, Any], shared: bool,
    ) -> Any:
        """Run a kernel and note the call; kernels that the kernel itself calls are not noted."""
        if self.leaves():
            return run()
        frames = frames_above(3) if self.frames else []
        self.inside, self.compiled = True, False
        begin = perf_counter()
        try:
            result = run()
        finally:
            end = perf_counter()
            self.inside = False
        if isinstance(result, np.generic):
            result = device.asarray(result)  # as eager mode does: NumPy makes scalars of 0-d results
        made = result
        if not self.keep:
            values, attrs, made = (), {}, None
        scope, origin = (modules_now(), node_now()) if self.frames else ((), None)
        self.calls.append(Call(
            op, device, kernel, values, attrs, made, frames, shared, begin, end, scope,
            origin.where if origin else None, self.compiled
        ))
        return result


def modules_now() -> tuple[str, ...]:
    """The modules whose forward pass runs; in the backward pass, those of the node whose gradient is computed."""
    scope = current_mode().scope
    return scope or getattr(node_now(), "scope", scope)


def node_now() -> Node | None:
    """The node whose gradient is computed, in the backward pass."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not quick_steps.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame and frame.f_locals.get("node")


def frames_above(depth: int) -> list[Where]:
    """The functions from the user's line down to here: those of minigrad, and the user's function."""
    found = []
    frame = sys._getframe(depth)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(LEFT_OUT):
            found.append((frame.f_code, frame.f_lasti))
        if not in_library(frame.f_code.co_filename) or frame.f_back is None:
            break
        frame = frame.f_back
    return found[::-1]
