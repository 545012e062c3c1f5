"""Graph mode and the compiler: from a recorded graph to a fused program.

Most programs need only a part of this room.  Graph mode, the profiler, saved programs, users' kernels, the target of
GPUs, and the modules that show a program are loaded when they are first used.
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

__all__ = ["GuardWarning", "Jitted", "RetraceWarning", "Target", "graph", "jit", "profile", "register_target", "trace"]
_GUESTS = {"graph": ".graph_mode", "profile": ".running.profiler"}


def __getattr__(name: str) -> Any:
    if name not in _GUESTS:
        missing(__name__, name)
    globals()[name] = getattr(import_module(_GUESTS[name], __name__), name)
    public([name], globals())
    return globals()[name]


def _of_gpus(device: Any) -> Target:
    from .running.gpu import cuda_target

    return cuda_target(device)


register_target("cuda", _of_gpus)
public([name for name in __all__ if name not in (*_GUESTS, "Target")], globals(), eager=("jit", "trace"))
