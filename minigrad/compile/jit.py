"""`jit`: trace a function once for each kind of arguments, and run the program from then on."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from ..core.errors import CompileError
from ..core.mode import current_mode
from ..core.source import Where, caller, show
from ..core.tensor import Tensor
from .arguments import hashable, kind_of, kinds_of_tensors
from .executors import EXECUTORS, no_executor
from .graph import Graph
from .groups import Partition
from .passes.log import Log
from .program import PlainProgram, Program
from .recording import Recording

STORM = 8  # traces of one function from which a warning is due


class RetraceWarning(UserWarning):
    """A jitted function is traced again and again, which takes longer than running it."""


class Traces(list[str]):
    """Why a function was traced, each time."""

    def __str__(self) -> str:
        return "\n".join(f"trace {i + 1}: {reason}" for i, reason in enumerate(self)) or "not traced yet"


class Jitted:
    """A function that is traced when it is called with arguments of a new kind, and runs as a program after that."""

    def __init__(
        self, function: Callable[..., Any], static: tuple[Any, ...] = (), disable: bool = False,
        executor: str | None = None,
    ) -> None:  # fmt: skip
        update_wrapper(self, function)
        self.function, self.static, self.executor = function, static, executor
        self.disabled = disable or os.environ.get("MINIGRAD_JIT", "").lower() in ("0", "off", "no", "false")
        self.traces = Traces()
        self.recordings: dict[Any, list[Recording]] = {}
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.disabled or current_mode().interpreter is not None:  # others see through it, operation by operation
            return self.function(*args, **kwargs)
        recording, tensors = self._recording(args, kwargs, caller(2))
        return recording.run(tensors)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self.function, '__qualname__', self.function)}, traced {len(self.traces)} times>"

    # each stage, as an object ---------------------------------------------------------------------------------------

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """What these arguments make the function compute.

        >>> print(mg.jit(lambda x: (x * x).sum()).graph(mg.ones(3)))
        tensor_1: float32 (3,)
        multiply_1: float32 (3,) = multiply(tensor_1, tensor_1)
        sum_1: float32 () = sum(multiply_1, axis=(0,), keepdims=False, dtype=None)
        return sum_1
        """
        return self._recording(args, kwargs, caller(2))[0].traced.graph

    def program(self, *args: Any, **kwargs: Any) -> Program | PlainProgram:
        """The program that runs for these arguments."""
        return self._recording(args, kwargs, caller(2))[0].traced.program

    def passes(self, *args: Any, **kwargs: Any) -> Log:
        """What the passes did to the graph.

        >>> mg.jit(lambda x: x * 1 + 0 * x).passes(mg.ones(3)).counts()["times one"]
        1
        """
        return self._compiled(args, kwargs).log

    def kernels(self, *args: Any, **kwargs: Any) -> Partition:
        """The kernels and library calls that the graph is divided into, and why.

        >>> print(mg.jit(lambda x: mg.exp(x - x.max(-1, keepdims=True)).sum(-1)).kernels(mg.ones((4, 16))))
        kernel_0 (stage 0): 4 rows of 16
          for each row: max_1, sum_1
          for each element: subtract_1, exp_1
          reads tensor_1
          writes sum_1
        """
        return self._compiled(args, kwargs).partition

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        program = self._recording(args, kwargs, caller(3))[0].traced.program
        if not isinstance(program, Program):
            raise CompileError("there are kernels of ours on CPU devices only", hint="f.graph(...) is what was traced")
        return program

    # which recording ------------------------------------------------------------------------------------------------

    def _recording(self, args: tuple[Any, ...], kwargs: dict[str, Any], where: Where) -> tuple[Recording, list[Tensor]]:
        tensors: list[Tensor] = []
        key = self._key(args, kwargs, tensors)
        reason = None
        for recording in self.recordings.get(key, ()):
            mismatch = recording.mismatch(tensors)
            if mismatch is None:
                return recording, tensors
            reason = reason or mismatch  # of the newest
        with self._lock:
            for recording in self.recordings.get(key, ()):
                if recording.mismatch(tensors) is None:
                    return recording, tensors
            reason = reason or self._news(key)
            recording = Recording(self.function, args, kwargs, tensors, self.executor)
            self.recordings.setdefault(key, []).insert(0, recording)
            self._note(reason, where)
        return recording, tensors

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
        mode = current_mode()
        names = list(kwargs)  # in the order in which the function is given them
        parts = [*args, *[kwargs[name] for name in names]]
        labels = [*range(len(args)), *names]
        kinds = tuple([hashable(x) if i in self.static else kind_of(x, tensors) for i, x in zip(labels, parts)])
        return kinds, tuple(labels), tuple(kinds_of_tensors(tensors)), mode.grad, mode.device

    def _news(self, key: Any) -> str:
        """What is new about this kind of arguments."""
        if not self.recordings:
            return "the first call"
        kinds, labels, tensors, grad, device = key
        closest = max(self.recordings, key=lambda known: _likeness(known, key))
        old_kinds, old_labels, old_tensors, old_grad, old_device = closest
        if labels != old_labels or len(tensors) != len(old_tensors):
            return "other arguments were given"
        for label, new, old in zip(labels, kinds, old_kinds):
            if new != old:
                return f"argument {label} was {old} and is {new}"
        for new, old in zip(tensors, old_tensors):
            for what, before, now in zip(("shape", "dtype", "device", "gradient", "memory"), old, new):
                if before != now:
                    return f"the {what} of an argument was {before} and is {now}"
        return "gradients were switched on or off" if grad != old_grad else f"the device was {old_device}, is {device}"

    def _note(self, reason: str, where: Where) -> None:
        self.traces.append(reason)
        if len(self.traces) == STORM:
            listed = "\n".join(f"  {i + 1}. {r}" for i, r in enumerate(self.traces))
            warnings.warn(
                f"{self!r}, called at {show(where)}: tracing takes longer than running. Why each time:\n{listed}\n"
                "  Way out: pass what changes as a tensor, pad to a few shapes, or leave jit off this function",
                RetraceWarning, stacklevel=5,
            )  # fmt: skip


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """What a function computes for these arguments, as a graph; nothing is computed.

    >>> graph = mg.trace(lambda x, y: mg.tanh(x @ y).sum(), mg.ones((2, 3)), mg.ones((3, 4)))
    >>> graph
    <Graph of 3 nodes, 2 inputs, 1 outputs>
    >>> [node.name for node in graph.nodes]
    ['matmul', 'tanh', 'sum']
    """
    return Jitted(function).graph(*args, **kwargs)


def _likeness(known: Any, key: Any) -> tuple[int, ...]:
    """How much two kinds of arguments have in common, what counts most first."""
    return known[1] == key[1], *[sum(a == b for a, b in zip(known[i], key[i])) for i in (0, 2)]


def jit(
    function: Callable[..., Any] | None = None, *, static: Any = (), disable: bool = False, executor: str | None = None
) -> Any:
    """Make a function into a program: it is traced once for each kind of arguments, and runs compiled after that.

    Tensors that it uses without being given them are inputs too, and those that it changes are changed.  Arguments that
    are no tensors, and those named or numbered in `static`, are part of the kind.  `f.traces` says why it was traced.
    With `executor="parallel"` kernels that do not wait for each other run at the same time, with "serial" never, and by
    default where that pays; `MINIGRAD_EXECUTOR` says it for all programs.

    >>> @mg.jit
    ... def step(x):
    ...     return (x * 2 + 1).sum()
    >>> step(mg.ones(3)).item(), step(mg.zeros(3)).item(), len(step.traces)
    (9.0, 3.0, 1)
    """
    if function is None:
        return partial(jit, static=static, disable=disable, executor=executor)
    listed = static if isinstance(static, (tuple, list)) else (static,)
    if executor is not None and executor not in EXECUTORS:
        raise no_executor(executor)
    return Jitted(function, tuple(listed), disable, executor)
