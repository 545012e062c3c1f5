"""Graph mode and the compiler: from a recorded graph to a fused program."""

from .jit import Jitted, RetraceWarning, jit, trace
from .graph_mode import graph
from .loaded import LoadedProgram, load_program
from .own import kernel
from .plain import ProgramError
from .profiler import profile
from .scripting import script

__all__ = [
    "Jitted", "LoadedProgram", "ProgramError", "RetraceWarning", "graph", "jit", "kernel", "load_program", "profile",
    "script", "trace",
]  # fmt: skip
