"""Watches a trace for what the walk over names does not find: code found at run time, clocks, and random numbers.

If the code may call other packages, or computes names, the trace runs under a profile function, which Python calls at
each call.  That slows the trace down, so other traces are not watched.
"""

from __future__ import annotations

import datetime
import dis
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from ...support.errors import TraceError
from ...support.origin import is_foreign_file, is_foreign_module, is_our_file
from ...support.source import show
from .tracer import Tracer

# Functions by their modules: those of `os` lie in `posix`, or in `nt` on Windows.
READINGS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
CLOCKS = {("time", name) for name in (*READINGS, *[f"{name}_ns" for name in READINGS], "localtime", "gmtime", "ctime")}
CLOCKS |= {("posix", "times"), ("nt", "times")}
SYSTEM = {("posix", "urandom"), ("nt", "urandom"), ("posix", "getrandom"), ("_uuid", "generate_time_safe")}
DAYS = (datetime.datetime, datetime.date)
TORCH = (
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson binomial "
    "dropout alpha_dropout feature_dropout native_dropout normal_ uniform_ random_ bernoulli_ exponential_ geometric_ "
    "log_normal_ cauchy_ dropout_ rrelu rrelu_ seed"
).split()


class Watch:
    """Collects code that a trace calls and the walk did not find, and refuses clocks and foreign randomness."""

    def __init__(self, tracer: Tracer, known: set[CodeType]) -> None:
        self.tracer, self.known = tracer, known
        self.codes: dict[CodeType, dict[str, Any]] = {}  # users' code that was not known, and its globals

    def __call__(self, frame: FrameType, event: str, what: Any) -> None:
        """The profile function: Python calls it for Python functions ("call") and others ("c_call")."""
        if event == "call":
            code = frame.f_code
            if code not in self.known and code not in self.codes and is_users(frame):
                self.codes[code] = frame.f_globals
        elif event == "c_call":
            source = _unrepeated(frame, what)
            if source is not None:
                self._refuse(frame, source)

    def _refuse(self, frame: FrameType, source: str) -> None:
        at: FrameType | None = frame
        while at is not None and not is_users(at):
            if at.f_code.co_filename == tempfile.__file__:  # random names of files do not matter
                return
            at = at.f_back
        line = show((at.f_code, at.f_lasti)) if at is not None else "an unknown line"
        self.tracer.missed = self.tracer.missed or TraceError(
            f"jit: the function reads {source} at {line}",
            expect="a trace runs the Python code once: each call would use this same value",
            hint="mg.random draws new numbers in each run; read other values outside and pass them as arguments",
        )


@contextmanager
def watched(tracer: Tracer, known: set[CodeType]) -> Iterator[dict[CodeType, dict[str, Any]]]:
    """Watch the calls in this block, unless another profiler is active."""
    watch = Watch(tracer, known)
    if sys.getprofile() is not None:
        yield watch.codes
        return
    sys.setprofile(watch)
    try:
        yield watch.codes
    finally:
        sys.setprofile(None)


def is_users(frame: FrameType) -> bool:
    """Whether a frame runs users' code."""
    filename = frame.f_code.co_filename
    if filename.startswith("<") and not filename.startswith("<frozen"):
        return not is_foreign_module(frame.f_globals.get("__name__"))
    return not (is_our_file(filename) or is_foreign_file(filename))


def _unrepeated(frame: FrameType, function: Any) -> str | None:
    """The result of a builtin function that differs between calls, in words; None for other functions."""
    name, owner = function.__name__, getattr(function, "__self__", None)
    if (function.__module__, name) in SYSTEM:
        return None if _seeds_the_old_way(frame) else "the system's randomness"
    if isinstance(owner, random.Random):
        if name == "seed" and frame.f_code is random.Random.seed.__code__:
            return "a generator that is seeded by the system" if frame.f_locals.get("a") is None else None
        return "random numbers from Python" if owner is GLOBAL else None
    if name in TORCH and _lies_in_torch(function, owner):
        return f"random numbers from torch ({name})"
    clock = (function.__module__, name) in CLOCKS or (name in ("now", "today", "utcnow") and owner in DAYS)
    if clock and is_users(frame):
        return f"a clock ({name})"
    return None


def _seeds_the_old_way(frame: FrameType | None) -> bool:
    """Whether this is `np.random.RandomState(seed)`, which first reads the system's randomness, then sets the seed."""
    while frame is not None and frame.f_code.co_filename == random.__file__:
        frame = frame.f_back
    if frame is None or "RandomState" not in frame.f_code.co_names:
        return False
    return any(step.arg for step in dis.get_instructions(frame.f_code) if step.offset == frame.f_lasti)


GLOBAL = random.random.__self__  # type: ignore[attr-defined]  # the generator of `random.random()`


def _lies_in_torch(function: Any, owner: Any) -> bool:
    home = function.__module__ or getattr(getattr(function, "__objclass__", owner), "__module__", "")
    return f"{home or type(owner).__module__}.".startswith("torch.")
