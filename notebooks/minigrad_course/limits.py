"""A time limit on code that may never end."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from minigrad.support.host import IN_BROWSER

AGAIN = 0.5  # seconds: `except:` in a loop may swallow the first


class TimeIsUp(BaseException):
    """Raised in code that took too long.  It is not an `Exception`, so `except Exception` does not catch it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` in a block that takes longer.

    A signal raises it, which ends `sleep` too.  Where there are no signals (on Windows, in a thread), another thread
    sets the exception, and Python raises it at the next instruction.  In a browser there are neither timers nor
    threads, and the buffer in which Python looks for interrupts is a clock.  Limits may be nested.

    >>> with at_most(10):
    ...     print("in time")
    in time
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    by_signal = hasattr(signal, "setitimer") and in_main_thread
    with _in_browser(seconds) if IN_BROWSER else _by_signal(seconds) if by_signal else _by_thread(seconds):
        yield


@contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    before, begun = signal.signal(signal.SIGALRM, _ring), time.monotonic()
    left = signal.getitimer(signal.ITIMER_REAL)[0]  # of the limit around this one; 0: there is none
    try:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, left or seconds), AGAIN)
        yield
    finally:
        rest = max(left - (time.monotonic() - begun), AGAIN) if left else 0
        signal.setitimer(signal.ITIMER_REAL, rest, AGAIN)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: Any) -> None:
    raise TimeIsUp


# Python reads element 0 of Pyodide's interrupt buffer every few instructions, as the number of a signal, and then
# writes 0 there.  The buffer is meant to be memory that another thread writes; a getter needs no other thread.
CLOCK = """(seconds, again, alarm, before) => {
  let end = performance.now() + 1000 * seconds, rang = false;
  return {
    get 0() {
      rang = performance.now() >= end;
      if (!rang) return before ? before[0] : 0;
      end = performance.now() + 1000 * again;
      return alarm;
    },
    set 0(value) { if (before && !rang) before[0] = value; },
  };
}"""


@contextmanager
def _in_browser(seconds: float) -> Iterator[None]:
    import pyodide_js
    from pyodide.code import run_js

    buffer = getattr(pyodide_js._module, "Py_EmscriptenSignalBuffer", None)  # absent until one is set
    clock = run_js(CLOCK)(seconds, AGAIN, int(signal.SIGALRM), buffer)
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        pyodide_js.setInterruptBuffer(clock)
        yield
    finally:
        pyodide_js.setInterruptBuffer(buffer)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    leave = ctypes.pythonapi.PyThreadState_SetAsyncExc
    target = ctypes.c_ulong(threading.get_ident())
    done = threading.Event()
    late = threading.Event()
    at_work = threading.Lock()  # no exception is set for a thread that has finished

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
    """Raise here the exception that may still be set for this thread.

    If it were cleared instead, Python 3.11 would look for it for ever, and a profiler would stop at the first call.
    """
    with suppress(TimeIsUp):
        leave(target, ctypes.py_object(TimeIsUp))
        while True:
            pass
