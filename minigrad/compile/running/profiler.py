"""`profile`: records when each step of a program runs, and in which thread."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

from ...support.context import Block, setting
from ...support.files import write_whole
from ...support.table import as_table
from ..fusion.count import Count
from .steps import RUNNING, Named, Run, as_steps

AROUND: ContextVar[str] = ContextVar("minigrad loops", default="")  # the names of the loops around a step


class Event(NamedTuple):
    """One step of a program: its name, its thread, its times in seconds since the profile began, and its cost.

    A check costs nothing.  The steps of a loop have events of their own, whose names begin with that of the loop.  So
    the loop itself costs only the copies of the carries that it keeps for a gradient.
    """

    name: str
    thread: str
    begin: float
    end: float
    cost: Count = Count()

    @property
    def launches(self) -> int:
        """How many kernels and library calls it is: 1, or 0 for a check and for a loop."""
        return self.cost.launches


class profile(Block):
    """Record each kernel and library call of the programs that run in this block, with its times and its thread.

    >>> f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    >>> with mg.profile() as run:
    ...     y = f(mg.ones((4, 4)))
    >>> [event.name for event in run.events]
    ['matmul_1', 'kernel_1']
    >>> run
    <profile of 2 launches in 1 threads>
    """

    variable = RUNNING
    apart = True  # each step is a call; else those that run in one call without a profile are one event

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.start = perf_counter()

    def value(self) -> profile:
        return weakref.proxy(self)  # only the block keeps it alive: see `Block.__del__`

    @property
    def launches(self) -> int:
        """How many kernels and library calls ran."""
        return sum([event.launches for event in self.events])

    def note(self, name: str, begin: float, end: float, cost: Count) -> None:
        """Record a step that ran in this thread."""
        times = begin - self.start, end - self.start
        self.events.append(Event(AROUND.get() + name, threading.current_thread().name, *times, cost))

    def ended(self, program: Any, results: Sequence[Any]) -> None:
        """A program ran in this thread, and returns these arrays: a subclass may look at them."""

    def copied(self, array: Any, function: str) -> None:
        """A function that ran as a program copied an input for its gradient: a subclass may look at the copy."""

    def trace(self) -> dict[str, Any]:
        """The events in the format of trace viewers (chrome://tracing, ui.perfetto.dev)."""
        return trace_of(self.events)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this trace to a file."""
        write_whole(path, json.dumps(self.trace()))

    def __repr__(self) -> str:
        return f"<profile of {self.launches} launches in {len({event.thread for event in self.events})} threads>"

    def __str__(self) -> str:
        taken: dict[str, list[float]] = {}
        for event in self.events:
            taken.setdefault(event.name, []).append(event.end - event.begin)
        rows = []
        for name, times in sorted(taken.items(), key=lambda item: -sum(item[1])):
            total = sum(times) * 1e6
            rows.append((name, str(len(times)), f"{total:.1f}", f"{total / len(times):.1f}"))
        return as_table(("step", "calls", "total µs", "each µs"), rows, left=1)


def trace_of(events: Sequence[Event]) -> dict[str, Any]:
    """Events in the format of trace viewers."""
    threads = {name: i for i, name in enumerate(dict.fromkeys(event.thread for event in events))}
    shared = {"pid": os.getpid(), "cat": "minigrad"}
    rows: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": shared["pid"], "tid": i, "args": {"name": name}}
        for name, i in threads.items()
    ]
    for name, thread, begin, end, cost in events:
        times = {"ts": begin * 1e6, "dur": (end - begin) * 1e6}  # in microseconds
        rows.append({"ph": "X", "name": name, "tid": threads[thread], "args": {"bytes": cost.bytes}} | shared | times)
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def timed(name: str, run: Callable[[Any], object], cost: Callable[[], Count]) -> Callable[[Any], object]:
    """A step that is recorded each time it runs."""

    def step(starts: Any) -> None:
        with nullcontext() if cost().launches else inside(name):
            begin = perf_counter()
            run(starts)
            end = perf_counter()  # at once: all else that is done here takes as long as a small kernel
        note(name, begin, cost(), end)

    return step


def as_timed_steps(levels: Sequence[Sequence[Named]]) -> Iterator[Run]:
    """A function for each level, which runs all its calls, and notes each in the active profile.

    Each is made when its turn comes: noting takes the same time before each.
    """
    for level in levels:
        yield from as_steps([[each._replace(run=timed(*each)) for each in level]])


def inside(name: str) -> setting:
    """In this block, the names of steps that are recorded begin with this one."""
    return setting(AROUND, f"{AROUND.get()}{name}/")


def note(name: str, begin: float, cost: Count, end: float) -> None:
    """Record a step in the active profile, if there is one."""
    noting = RUNNING.get()
    if noting is not None:
        noting.note(name, begin, end, cost)


def copied(array: Any, function: str) -> Any:
    """A copy of an input that a function saves for its gradient, which the active profile is given too."""
    copy = array.copy("K")
    noting = RUNNING.get()
    if noting is not None:
        noting.copied(copy, function)
    return copy
