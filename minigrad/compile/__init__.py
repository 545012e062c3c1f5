"""Graph mode and the compiler: from a recorded graph to a fused program."""

from .jit import Jitted, RetraceWarning, jit, trace
from .lazy import graph
from .own import kernel
from .profiler import profile

__all__ = ["Jitted", "RetraceWarning", "graph", "jit", "kernel", "profile", "trace"]
