"""Graph mode and the compiler: from a recorded graph to a fused program."""

from .jit import Jitted, RetraceWarning, jit

__all__ = ["Jitted", "RetraceWarning", "jit"]
