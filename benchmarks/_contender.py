"""A contender in a process of its own: it builds its work, shows its values, and times it when its turn comes.

Contenders in one process would disturb each other: the threads of a matrix product spin for a while after it.
`Contender` is the end of the pipe in the main process, and `Worker` is the end in the process of the contender.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import minigrad as mg

if TYPE_CHECKING:
    from _harness import Case, Options

SAMPLE = 1000  # numbers of a result that are compared


class Failed(Exception):
    """The work of a contender raised an error; the message is its traceback."""


class Contender:
    """A new process for a contender.  `contender("time", 10)` runs `Worker.time(10)` there and returns its result."""

    def __init__(self, name: str, cases: Callable[..., list[Case]], opts: Options, **environment: str) -> None:
        self.name = name
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        with _environment(_settings(opts) | environment):
            self.process = spawn.Process(target=_serve, args=(theirs, name, cases, opts))
            self.process.start()
        theirs.close()  # so that the pipe ends when the process does

    def __call__(self, order: str, *given: Any) -> Any:
        try:
            self.pipe.send((order, *given))
            error, answer = self.pipe.recv()
        except (EOFError, OSError):
            error, answer = f"its process ended with code {self.process.exitcode}", None
        if error is not None:
            raise Failed(error)
        return answer

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()  # the process ends when it reads the next order
        self.process.join(10)
        self.process.kill()


class Worker:
    """Builds and times the work of one contender, in its own process."""

    def __init__(self, name: str, cases: Callable[..., list[Case]], opts: Options) -> None:
        self.name, self.device = name, opts.device
        self.clock = time.process_time if opts.processor else time.perf_counter
        self.library = opts.library(package(name))
        self.cases = {case.name: case for case in cases(opts)}
        self.work: Any = None
        # Those that this process may use; only Linux tells them.
        self.cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

    def build(self, case: str | None) -> None:
        """Make the work of a case; None drops the work, and its memory."""
        self.work = None
        if case is not None:
            self.work = self.cases[case].build(self.name)
        self.finish()

    def values(self, calls: int) -> list[Any]:
        """A sample of the results of the first calls."""
        return [_sampled(self.work()) for _ in range(calls)]

    def call(self) -> tuple[float, float]:
        """The seconds of one call, by the clock and of the processors."""
        start = time.perf_counter(), time.process_time()
        self.finish(self.work())
        return time.perf_counter() - start[0], time.process_time() - start[1]

    def count(self, least: float) -> int:
        """The number of calls that takes at least this many seconds, after a few calls that may compile."""
        self.time(3)
        count = 1
        while self.time(count) * count < least:
            count *= 2
        return count

    def time(self, count: int, pause: float = 0.0, turn: int | None = None) -> float:
        """The mean seconds of some calls, after a pause and calls that wake the caches and the threads.

        With a number of the `turn`, they run on one core, which is another one in the next turn.
        """
        if self.cores:
            os.sched_setaffinity(0, self.cores if turn is None else [self.cores[turn % len(self.cores)]])
        time.sleep(pause)
        work, last = self.work, None
        for _ in range(1 + count // 8):
            last = work()
        self.finish(last)
        start = self.clock()
        for _ in range(count):
            last = work()
        self.finish(last)
        return (self.clock() - start) / count

    def finish(self, last: Any = None) -> None:
        """Wait for all work in queues: jax and GPUs continue after a call has returned."""
        if self.name.startswith("jax"):
            self.library.block_until_ready(last)
        elif self.device != "cpu" and self.name.startswith("torch"):
            self.library.cuda.synchronize()
        elif self.device != "cpu":
            mg.as_device(self.device).synchronize()


def package(contender: str) -> str:
    """The library of a contender.

    >>> package("torch.compile"), package("onnxruntime"), package("eager")
    ('torch', 'onnxruntime', 'minigrad')
    """
    peers = ("torch", "jax", "onnxruntime", "numpy")
    return next((name for name in peers if contender.startswith(name)), "minigrad")


def difference(expected: Any, found: Any, tolerance: float) -> str | None:
    """How two lists of samples differ, in words, or None."""
    if len(expected) != len(found):
        return f"{len(found)} results instead of {len(expected)}"
    for call, (theirs, ours) in enumerate(zip(found, expected)):
        if [shape for shape, _ in theirs] != [shape for shape, _ in ours]:
            return f"shapes {[shape for shape, _ in theirs]} instead of {[shape for shape, _ in ours]}"
        for (_, a), (_, b) in zip(theirs, ours):
            off = np.abs(a - b).max(initial=0.0)
            if not off <= tolerance * max(np.abs(b).max(initial=0.0), 1e-3):  # not `>`, which is false for nan
                return f"call {call + 1}: off by {off:.3g}, {a[:3]} instead of {b[:3]}"
    return None


def _sampled(result: Any) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """The shapes of all arrays in a result, and some of their numbers."""
    if result is None:
        return []
    if isinstance(result, (tuple, list)):
        return [sample for part in result for sample in _sampled(part)]
    if isinstance(result, mg.Tensor):
        result = result.numpy_copy()
    elif hasattr(result, "detach"):
        result = result.detach().cpu()
    array = np.asarray(result)
    flat = array.ravel()
    return [(array.shape, flat[:: max(1, flat.size // SAMPLE)].astype(np.float64))]


def _serve(pipe: Any, name: str, cases: Callable[..., list[Case]], opts: Options) -> None:
    """Carry out orders until the pipe ends."""
    with mg.device(opts.device):
        worker: Worker | None = None
        while True:
            try:
                order, *given = pipe.recv()
            except (EOFError, OSError, KeyboardInterrupt):
                return
            try:
                worker = worker or Worker(name, cases, opts)
                answer = None, getattr(worker, order)(*given)
            except Exception:
                answer = traceback.format_exc(), None
            pipe.send(answer)


RESTRICTIONS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "ATEN_CPU_CAPABILITY", "NPY_DISABLE_CPU_FEATURES")


def _settings(opts: Options) -> dict[str, str | None]:
    """The environment variables of a contender: the libraries read them only once, when they are imported.

    Variables that keep a library from the processor's widest instructions are unset.
    """
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # the last is read by jax
    settings = dict.fromkeys(RESTRICTIONS) | dict.fromkeys(threads, str(opts.threads))
    settings["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    return settings | ({"JAX_PLATFORMS": "cpu"} if opts.device == "cpu" else {})


@contextmanager
def _environment(settings: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for processes that start in this block; None unsets one."""
    before = {name: os.environ.get(name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(before)


def _set(settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
