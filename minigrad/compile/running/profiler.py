"""`profile`: records when each step of a program runs, and in which thread."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

from ...support.context import Block, switched_variable
from ...support.table import as_table

RUNNING: ContextVar[profile | None] = switched_variable("minigrad profile", None)


class Event(NamedTuple):
    """One step of a program: its name, its thread, and its times in seconds since the profile began."""

    name: str
    thread: str
    begin: float
    end: float


class profile(Block):
    """Record each kernel and library call of the programs that run in this block, with its times and its thread.

    >>> f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    >>> with mg.profile() as run:
    ...     y = f(mg.ones((4, 4)))
    >>> [event.name for event in run.events]
    ['matmul_1', 'kernel_1']
    >>> run
    <profile of 2 steps in 1 threads>
    """

    variable = RUNNING

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.start = perf_counter()

    def value(self) -> profile:
        return weakref.proxy(self)  # only the block keeps it alive: see `Block.__del__`

    def note(self, name: str, begin: float, end: float) -> None:
        """Record a step that ran in this thread."""
        self.events.append(Event(name, threading.current_thread().name, begin - self.start, end - self.start))

    def trace(self) -> dict[str, Any]:
        """The events in the format of trace viewers (chrome://tracing, ui.perfetto.dev)."""
        threads = {name: i for i, name in enumerate(dict.fromkeys(event.thread for event in self.events))}
        shared = {"pid": os.getpid(), "cat": "minigrad"}
        rows: list[dict[str, Any]] = [
            {"ph": "M", "name": "thread_name", "pid": shared["pid"], "tid": i, "args": {"name": name}}
            for name, i in threads.items()
        ]
        for name, thread, begin, end in self.events:
            times = {"ts": begin * 1e6, "dur": (end - begin) * 1e6}  # in microseconds
            rows.append({"ph": "X", "name": name, "tid": threads[thread]} | shared | times)
        return {"traceEvents": rows, "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this trace to a file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)

    def __repr__(self) -> str:
        return f"<profile of {len(self.events)} steps in {len({event.thread for event in self.events})} threads>"

    def __str__(self) -> str:
        taken: dict[str, list[float]] = {}
        for event in self.events:
            taken.setdefault(event.name, []).append(event.end - event.begin)
        rows = []
        for name, times in sorted(taken.items(), key=lambda item: -sum(item[1])):
            total = sum(times) * 1e6
            rows.append((name, str(len(times)), f"{total:.1f}", f"{total / len(times):.1f}"))
        return as_table(("step", "calls", "total µs", "each µs"), rows, left=1)


def timed(name: str, run: Callable[[Any], object]) -> Callable[[Any], object]:
    """A step that is recorded each time it runs."""

    def step(starts: Any) -> None:
        begin = perf_counter()
        try:
            run(starts)
        finally:
            noting = RUNNING.get()
            if noting is not None:
                noting.note(name, begin, perf_counter())

    return step
