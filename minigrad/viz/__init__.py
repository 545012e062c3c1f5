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

from ..core.arguments import public
from .dashboard import Dashboard
from .flipbook import Flipbook
from .fused import Fusion, fusion
from .graphs import graph, shown
from .lessons.benches import bench
from .lessons.dispatches import dispatch
from .lessons.expansion import expand
from .lessons.rings import ring
from .lessons.side_by_side import Beside, beside
from .lessons.stacks import stack
from .lessons.tapes import tape
from .lessons.timelines import timeline
from .lessons.trainings import training
from .memories import memory
from .picture import Picture
from .profiles import profile, roofline
from .schedules import schedule
from .stepper import Stepper, step

__all__ = [
    "graph", "step", "beside", "expand", "bench", "tape", "fusion", "memory", "schedule", "profile", "roofline",
    "dispatch", "stack", "timeline", "training", "ring", "Dashboard", "Beside", "Flipbook", "Fusion", "Picture",
    "Stepper", "shown",
]

public(__all__, globals(), eager=("graph", "ring", "schedule"))
