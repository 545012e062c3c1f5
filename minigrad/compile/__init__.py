"""Graph mode and the compiler: from a recorded graph to a fused program.

Guests are imported when they are first used: graph mode, the profiler, saved programs, users' kernels, and GPUs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..arguments.public import public
from ..core.absent import missing
from .jitted import GuardWarning, Jitted, RetraceWarning, jit, trace
from .running.targets import Target, register_target

if TYPE_CHECKING:
    from .graph_mode import graph
    from .running.profiler import profile
    from .save.codec import ProgramError
    from .save.read import LoadedProgram, load_program
    from .user_kernels.kernel import kernel

__all__ = [
    "GuardWarning", "Jitted", "LoadedProgram", "ProgramError", "RetraceWarning", "Target", "graph", "jit",
    "kernel", "load_program", "profile", "register_target", "trace",
]
_GUESTS = {
    "LoadedProgram": ".save.read", "ProgramError": ".save.codec", "graph": ".graph_mode",
    "kernel": ".user_kernels.kernel", "load_program": ".save.read", "profile": ".running.profiler",
}


def __getattr__(name: str) -> Any:
    if name not in _GUESTS:
        missing(__name__, name)
    globals()[name] = getattr(import_module(_GUESTS[name], __name__), name)
    if name != "LoadedProgram":
        public([name], globals(), eager=("kernel",))
    return globals()[name]


def _gpu(device: Any) -> Target:
    from .running.gpu import cuda_target

    return cuda_target(device)


register_target("cuda", _gpu)
public([name for name in __all__ if name not in (*_GUESTS, "Target")], globals(), eager=("jit", "trace"))
