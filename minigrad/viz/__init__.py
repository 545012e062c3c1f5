"""Seeing a computation: pictures of graphs, backward passes to step through, and what the compiler makes of it.

What can be seen, by the question that it answers:

    what is computed of what, and what are its gradients?       graph, step, beside, expand
    what does one operation do, what is kept for its way back?  bench, tape
    what does the compiler make of it?                          fusion, memory, schedule, profile, roofline
    which kernel runs for a line, and what takes the time?      dispatch, stack, timeline
    how does a training go, on one worker or many?              training, Dashboard, ring

Of a jitted function, the views show the program of the last call for such arguments.  If its gradient ran, the view of
the gradient's program is below it, as `view.gradient`; headings say which is which.
"""

from ..arguments.public import public
from .benches import bench
from .dashboard import Dashboard
from .dispatches import dispatch
from .expansion import expand
from .flipbook import Flipbook
from .fused import Fusion, fusion
from .graphs import graph, shown
from .memories import memory
from .picture import Picture
from .profiles import profile, roofline
from .rings import ring
from .schedules import schedule
from .side_by_side import Beside, beside
from .stacks import stack
from .stepper import Stepper, step
from .tapes import tape
from .timelines import timeline
from .trainings import training

__all__ = [
    "graph", "step", "beside", "expand", "bench", "tape", "fusion", "memory", "schedule", "profile", "roofline",
    "dispatch", "stack", "timeline", "training", "ring", "Dashboard", "Beside", "Flipbook", "Fusion", "Picture",
    "Stepper", "shown",
]

public(__all__, globals(), eager=("graph", "ring", "schedule"))
