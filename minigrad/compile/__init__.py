"""Graph mode and the compiler: from a recorded graph to a fused program.

Most programs need only a part of this room.  Graph mode, the profiler, saved programs, users' kernels, the target of
GPUs, and the modules that show a program are loaded when they are first used.

The first call of `mg.jit(f)` goes through these functions, in this order.  A breakpoint can be set at each of them.

    jitted.py                   Jitted.__call__           no recording fits the arguments
    functions/recording.py      Recording.__init__        record the call
    tracing/reachable.py        guards_of                 what `f` can read by name
    tracing/tracer.py           Tracer.manifest           each operation of `f` becomes a node
    functions/function.py       TracedFunction.__init__   the graph, which may need a gradient
    tracing/signature.py        CheckWriter.function      the guards as one function, for later calls
    functions/recording.py      Recording.run             from here on, later calls do the same
    running/program.py          program_for               choose a target
    running/program.py          compile                   all stages up to the plan
    rewriting/passes.py         optimise                  graph to graph
    fusion/fuse.py              fuse                      graph to kernels and library calls
    lowering/lower.py           lower                     kernel to loops
    running/planning.py         planned                   steps, and places in memory
    running/program.py          Program.__call__          run the plan
    running/targets.py          compiled                  a function for each kernel, before the first run
    codegen/native.py           compile_kernel            look for the machine code of an equal kernel
    codegen/llvm.py             llvm_source               print LLVM's text
    codegen/printing.py         stages                    loops to loops: bands, vectors, positions
    running/frame.py            Frame.run                 bind the arrays, and run the steps

A second call goes from `Jitted.__call__` to `Recording.run`, `Program.__call__` and `Frame.run`.
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
