"""Pictures of graphs, backward passes to step through, and what the compiler makes of a function.

The views, by the question that they answer:

    what is computed from what, and with which gradients?               graph, step
    what does one operation do, and why does its kernel run?            bench
    what does the compiler make of a function?                          fusion
    what takes the time, and what would more workers gain?              timeline
    what is in memory, and for how long?                                memory
    how does a training run go, on one worker or on many?               training, Dashboard, cluster

For a jitted function, a view shows the program of the last call with such arguments.  If the gradient of that program
ran too, `view.gradient` is the view of the gradient's program, shown below the first one under a heading.

A view's module is imported when the view is first used, so that the first picture does not wait for the other views.
"""

import sys
from importlib import import_module
from typing import Any

from ..arguments.public import public
from ..support.errors import MissingNameError

# The module of each name.  Type checkers read `__init__.pyi`.
_LATER = {
    "graph": "graphs",
    "step": "stepper",
    "bench": "benches",
    "fusion": "fused",
    "timeline": "timelines",
    "memory": "memories",
    "training": "trainings",
    "Dashboard": "dashboard",
    "cluster": "clusters",
    "Picture": "graphs",
    "Stepper": "stepper",
    "Fusion": "fused",
    "Flipbook": "flipbook",
    "Timeline": "timelines",
    "shown": "graphs",
}
# The views that others replace, with the call that shows the same now.
_REPLACED = {
    "expand": "mg.viz.graph(mg.softmax, x): open the box of the function",
    "dispatch": "mg.viz.bench(f, x): which kernels run, and why",
    "stack": "mg.viz.bench(f, x): the levels from a line to its kernel",
    "ring": "mg.viz.cluster(4): the messages of an all-reduce",
    "scaling": "mg.viz.cluster(step, machine): the model of a step on many workers",
    "beside": "mg.viz.fusion(f, x): its stages",
    "compare": "mg.viz.fusion(f, x); for times, mg.viz.timeline(f, x)",
    "tape": "mg.viz.memory(f, x): what the backward pass keeps",
    "profile": "mg.viz.timeline(f, x): when each step runs, and how long",
    "roofline": "mg.viz.timeline(f, x): the share of the machine's limit",
    "schedule": "mg.viz.timeline(f, x, workers=2): the model, in dashed lanes",
    "placement": "mg.viz.timeline(f, x, devices=[...]): the model, in dashed lanes",
}
__all__ = [*_LATER]


def __getattr__(name: str) -> Any:
    if name in _REPLACED:
        raise MissingNameError(f"there is no view mg.viz.{name} any more", hint=_REPLACED[name])
    if name not in _LATER:
        raise AttributeError(f"minigrad.viz has no {name!r}")
    import_module(f"{__name__}.{_LATER[name]}")
    # A view's module also loads the class of what the view returns, whose methods are public too.
    modules = {each: sys.modules.get(f"{__name__}.{module}") for each, module in _LATER.items()}
    fresh = {each: getattr(module, each) for each, module in modules.items()
             if hasattr(module, each) and each not in globals()}
    globals().update(fresh)
    public(fresh, globals(), eager=("graph", "cluster"))
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
