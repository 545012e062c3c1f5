"""Graph mode and the compiler: from a recorded graph to a fused program.

What most programs do not need is behind doors: saved programs, users' kernels, the target of GPUs, and the modules that
look at a program are loaded when they are used.
"""

from typing import Any

from ..arguments.public import public
from . import control  # tracing records branches and loops by it
from .graph_mode import graph
from .jitted import GuardWarning, Jitted, RetraceWarning, jit, trace
from .nodes.graph import VIEWS
from .running.profiler import profile
from .running.targets import Target, register_target

__all__ = ["GuardWarning", "Jitted", "RetraceWarning", "Target", "graph", "jit", "profile", "register_target", "trace"]

VIEWS |= {
    "cost": "minigrad.compile.look.cost", "values": "minigrad.compile.look.values",
    **dict.fromkeys(("predicted", "offloading", "placed"), "minigrad.compile.look.placement"),
}


def _of_gpus(device: Any) -> Target:
    from .running.gpu import cuda_target

    return cuda_target(device)


register_target("cuda", _of_gpus)
public([name for name in __all__ if name != "Target"], globals(), eager=("jit", "trace"))
