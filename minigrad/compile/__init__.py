"""Graph mode and the compiler: from a recorded graph to a fused program."""

from ..arguments.public import public
from . import control  # tracing records branches and loops by it
from .graph_mode import graph
from .jitted import GuardWarning, Jitted, RetraceWarning, jit, trace
from .running import gpu  # registers the target of GPUs
from .running.profiler import profile
from .running.targets import Target, register_target
from .save.codec import ProgramError
from .save.read import LoadedProgram, load_program
from .user_kernels.kernel import kernel

__all__ = [
    "GuardWarning", "Jitted", "LoadedProgram", "ProgramError", "RetraceWarning", "Target", "graph", "jit",
    "kernel", "load_program", "profile", "register_target", "trace",
]

public(
    [name for name in __all__ if name not in ("LoadedProgram", "Target")], globals(),
    eager=("jit", "kernel", "trace"),
)
