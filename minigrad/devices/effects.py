"""Kernels with side effects: printing values, stopping in the debugger, and the collectives of a distributed run.

They run in eager code and in programs.  The arguments of the first two are wrapped in tensors again, so that a format
can use every attribute of a tensor: `{x.shape}`, `{x[0]:.3f}`.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.mode import Mode, switch
from ..core.tensor import wrap
from ..support.context import setting, switched_variable
from ..support.errors import ConversionError, MinigradError
from ..support.host import IN_BROWSER
from .library import Kernel, KernelGroup

HELD: ContextVar[list[str] | None] = switched_variable("minigrad held back", None)
Name = Any  # of a value: the number of an argument, or the name that it was given by


@contextmanager
def held_back() -> Iterator[list[str]]:
    """A block that repeats a computation: its output goes into the list, and it does not stop in the debugger."""
    held: list[str] = []
    with setting(HELD, held):
        yield held


class Stop:
    """A line of user code at which the debugger stops, and the values of its names."""

    def __init__(self, filename: str, line: int, function: str, names: dict[str, Any]) -> None:
        self.filename, self.line, self.function, self.names = filename, line, function, names

    def __repr__(self) -> str:
        return f"{self.filename}:{self.line}"

    def here(self, values: dict[str, Any]) -> None:
        """Call Python's breakpoint hook in a frame that is at this line, and whose variables are these values.

        The frame is a new one: when a program runs, the frame that made the node no longer exists.
        """
        if IN_BROWSER and sys.breakpointhook is sys.__breakpointhook__:
            raise ConversionError("breakpoint: Python's debugger reads from a terminal, and a browser has none",
                                  hint="mg.print(x)")
        first = self.line - (sys.version_info < (3, 13))  # pdb used to stop at the next line; now it stops at once
        text = "\n" * (first - 1) + "__stop__()" + ("\nNone" if first else "; None")
        code = compile(text, self.filename, "exec").replace(co_name=self.function, co_qualname=self.function)
        exec(code, self.names | {"__stop__": sys.breakpointhook}, values)


def _collective(what: str, name: str | None = None, **how: Any) -> Kernel:
    """The kernel of a collective.  The communicator has an engine for the arrays of each device."""

    def kernel(self: KernelGroup, x: Any, *others: Any, comm: Any, **attrs: Any) -> Any:
        return comm.compute(what, x, self.empty, **how, **attrs)

    kernel.__name__ = name or what
    return kernel


class EffectKernels(KernelGroup):
    """`print` and `breakpoint`, whose results nothing reads, and the collectives."""

    def print(
        self, *arrays: Any, message: str, names: Sequence[Name],
        others: dict[Name, Any], batch: tuple[int, ...], device: Any,
    ) -> Any:
        if 0 not in batch:
            with switch(Mode(grad=False)):
                tensors = [wrap(array, device) for array in arrays]
                text = _text(message, others | dict(zip(names, tensors)))
            held = HELD.get()
            (builtins.print if held is None else held.append)(f"{_whose(batch)}{text}")
        return self.xp.zeros((), bool)

    def breakpoint(
        self, *arrays: Any, stop: Stop, names: Sequence[str], conditional: bool,
        batch: tuple[int, ...], device: Any,
    ) -> Any:
        stops = 0 not in batch and HELD.get() is None
        if stops and (not conditional or arrays[0].any()):
            with switch(Mode()):
                copies = [wrap(array.copy(), device) for array in arrays[conditional:]]
                stop.here(dict(zip(names, copies)))
        return self.xp.zeros((), bool)

    allreduce = _collective("allreduce", op="sum")
    allreduce_max = _collective("allreduce", "allreduce_max", op="max")
    broadcast = _collective("broadcast")
    allgather = _collective("allgather")
    reduce_scatter = _collective("reduce_scatter")
    start_allreduce = _collective("start_allreduce")
    wait = _collective("wait")


def _whose(batch: tuple[int, ...]) -> str:
    return f"vmap of {' × '.join(map(str, batch))}: " if batch else ""


def _text(message: str, values: dict[Name, Any]) -> str:
    """The message with the values in its fields."""
    positional = [values[i] for i in range(sum(name.__class__ is int for name in values))]
    named = {name: value for name, value in values.items() if name.__class__ is str}
    try:
        return message.format(*positional, **named)
    except MinigradError:
        raise
    except Exception as error:
        raise ConversionError(f"print: {message!r} cannot be filled in: {error}") from error
