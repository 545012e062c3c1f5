"""A time limit on code that may never end."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

AGAIN = 0.5  # seconds: `except:` in a loop may swallow the first


class TimeIsUp(BaseException):
    """Raised in code that took too long; not an `Exception`, so that `except Exception` does not stop it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` in what takes longer.

    A signal does it, which ends sleeping too.  Where there are none (on Windows, in a thread), another thread leaves
    the exception for this one to find at its next instruction of Python.

    >>> with at_most(10):
    ...     print("in time")
    in time
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    by_signal = hasattr(signal, "setitimer") and in_main_thread
    with _by_signal(seconds) if by_signal else _by_thread(seconds):
        yield


@contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    leave = ctypes.pythonapi.PyThreadState_SetAsyncExc
    target = ctypes.c_ulong(threading.get_ident())
    done = threading.Event()
    late = threading.Event()
    at_work = threading.Lock()  # nothing is left for a thread that has finished meanwhile

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            with at_work:
                if not done.is_set():
                    late.set()
                    leave(target, ctypes.py_object(TimeIsUp))
            wait = AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        while not done.is_set():  # the exception may come here too
            with suppress(TimeIsUp), at_work:
                done.set()
        if late.is_set():
            _take_the_last(leave, target)
        watcher.join()


def _take_the_last(leave: Any, target: Any) -> None:
    """Raise the exception here that may still wait for this thread.

    Taking it back, by leaving None, would keep Python 3.11 looking for it for ever, and then a profiler never gets past
    the first call.
    """
    with suppress(TimeIsUp):
        leave(target, ctypes.py_object(TimeIsUp))
        while True:
            pass
