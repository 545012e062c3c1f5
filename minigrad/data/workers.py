"""Background loaders: threads that load batches while the main thread computes, each with a process if wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from ..support.forking import new_lock
from .errors import DataError

NAME = "minigrad-data"
GRACE = 5.0  # seconds in which a process may end by itself


class ItemFault(Exception):
    """An item, or a batch, could not be loaded: the error is the cause, and `reason` is its first line."""

    def __init__(self, indices: list[int], reason: str) -> None:
        super().__init__(indices, reason)
        self.indices, self.reason = indices, reason

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.indices[:4])) + (" ..." if len(self.indices) > 4 else "")
        return f"item {shown}" if len(self.indices) == 1 else f"a batch of items {shown}"


class WorkersTraceback(Exception):
    """The error of another process, as its traceback was printed there."""


def brief(error: BaseException) -> str:
    """`ValueError: the message`: the first line of an error."""
    lines = str(error).splitlines()
    return type(error).__name__ + (f": {lines[0]}" if lines else "")


class Workers:
    """Threads that load batches, each alone or through its own process.

    They start with the first task, and end when they are closed.
    """

    def __init__(self, source: Any, count: int, processes: bool) -> None:
        self.source, self.count = source, count
        self.kind = "processes" if processes else "threads"
        self._lock = new_lock()  # close() may run wherever garbage is collected
        self.forget()
        EVERYWHERE.add(self)

    def forget(self) -> None:
        """Start new ones when they are needed: a forked process has no threads, and the processes are its parent's."""
        self.helpers: list[Helper] = []
        self.threads: Any = None
        self.mine = threading.local()

    def begin(self, key: int, indices: Any) -> Callable[[], Any]:
        """Start loading a batch; the returned object waits for it."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self.threads is None:
                self.threads = ThreadPoolExecutor(self.count, NAME)
        loading: Callable[[], Any] = self.threads.submit(self._load, key, indices).result
        return loading

    def _load(self, key: int, indices: Any) -> Any:
        if self.kind == "threads":
            return self.source.load(key, indices)
        helper = getattr(self.mine, "helper", None)
        if helper is None:
            with self._lock:
                helper = self.mine.helper = Helper(len(self.helpers), self.source)
                self.helpers.append(helper)
        return helper.load(key, indices)

    def close(self) -> None:
        """End all threads.  They finish their current task; waiting tasks are dropped."""
        with self._lock:
            threads, self.threads = self.threads, None
        if threads is not None:
            mine = threading.current_thread().name.startswith(NAME)  # a thread can't wait for itself
            threads.shutdown(wait=not mine, cancel_futures=True)
        for helper in self.helpers:
            helper.close()
        self.helpers.clear()
        self.mine = threading.local()


EVERYWHERE: weakref.WeakSet[Workers] = weakref.WeakSet()


def _forget_all() -> None:
    for workers in list(EVERYWHERE):
        workers.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class Helper:
    """A process that loads batches for one thread, restarted when it has died."""

    def __init__(self, number: int, source: Any) -> None:
        self.number, self.source = number, source
        self.process: Any = None
        self.pipe: Any = None

    def load(self, key: int, indices: Any) -> Any:
        """A batch, loaded in the process."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send((key, indices))
            result, fault = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._obituary(indices) from error
        if fault is not None:
            faulty, reason, text = fault
            raise ItemFault(faulty, reason) from WorkersTraceback(f"in worker {self.number}:\n\n{text}")
        return result

    def _start(self) -> None:
        """Start a new interpreter: a fork would hold locks of threads that it does not have."""
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.source), daemon=True,
                                  name=f"{NAME}-{self.number}")
        try:
            process.start()
        except Exception as error:
            raise DataError(
                f"the dataset can't be sent to another process: {brief(error)}",
                hint="workers that are threads (processes=False), or functions with a name at the top of a module",
            ) from error
        finally:
            theirs.close()
        self.process = process

    def _obituary(self, indices: Any) -> DataError:
        """The error for a dead worker: which one, its exit code or signal, and its items."""
        process, self.process = self.process, None
        self.pipe.close()
        process.join(GRACE)
        code = process.exitcode
        ended = f"with exit code {code}"
        if code is not None and code < 0:
            ended = f"of {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"of signal {-code}"
        over = ItemFault(indices.tolist(), ended)
        hint = "the system sends SIGKILL when memory runs out: fewer workers, smaller batches"
        if code == 1:
            hint = 'see its output; a script starts workers below `if __name__ == "__main__":` only'
        return DataError(f"worker {self.number} (process {process.pid}) died {ended} over {over}", hint=hint)

    def close(self) -> None:
        """End the process: it ends when its pipe is closed."""
        if self.process is not None:
            self.pipe.close()
            self.process.join(GRACE)
            if self.process.is_alive():
                self.process.kill()
            self.process = None


def serve(pipe: Any, source: Any) -> None:
    """The loop of a worker's process: load batches until the pipe is closed."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C and ends this one
    while True:
        try:
            key, indices = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: Any = (source.load(key, indices), None)
        except ItemFault as fault:
            answer = None, (fault.indices, fault.reason, "".join(traceback.format_exception(fault.__cause__)))
        try:
            pipe.send(answer)
        except OSError:
            return
        except Exception as error:  # a batch that can't be pickled
            pipe.send((None, (indices.tolist(), brief(error), traceback.format_exc())))
