"""Graph mode and the compiler: from a recorded graph to a fused program."""

from ..core.arguments import public
from .graph_mode import graph
from .jit import GuardWarning, Jitted, RetraceWarning, jit, trace
from .loaded import LoadedProgram, load_program
from .own import kernel
from .plain import ProgramError
from .profiler import profile
from .scripting import script

__all__ = [
    "GuardWarning", "Jitted", "LoadedProgram", "ProgramError", "RetraceWarning", "graph", "jit", "kernel",
    "load_program", "profile", "script", "trace",
]  # fmt: skip

public(
    [name for name in __all__ if name not in ("Jitted", "LoadedProgram")], globals(),
    eager=("jit", "kernel", "script", "trace"),
)  # fmt: skip
