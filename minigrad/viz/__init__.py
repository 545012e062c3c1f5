"""Seeing a computation: pictures of graphs, and backward passes to step through.

What can be seen, by the question that it answers:

    what is computed of what, and what are its gradients?   graph, step, expand
    where does it run, and what takes the time?             dispatch, stack, timeline, ring
    what does one operation do, what is kept for its way back?   bench, tape
    how does a training go?                                 training, Dashboard
"""

from .benches import bench
from .dashboard import Dashboard
from .dispatches import dispatch
from .expansion import expand
from .flipbook import Flipbook
from .graphs import graph, shown
from .picture import Picture
from .rings import ring
from .stacks import stack
from .stepper import Stepper, step
from .tapes import tape
from .timelines import timeline
from .trainings import training

__all__ = [
    "graph", "step", "expand", "dispatch", "stack", "timeline", "ring", "bench", "tape", "training", "Dashboard",
    "Flipbook", "Picture", "Stepper", "shown",
]  # fmt: skip
