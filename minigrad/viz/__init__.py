"""Seeing a computation: pictures of graphs, backward passes to step through, and what the compiler makes of it."""

from .beside import Beside, beside
from .fused import Fusion, fusion
from .graphs import graph, shown
from .picture import Picture
from .profiles import profile, roofline
from .schedules import schedule
from .stepper import Stepper, step
from .timeline import memory

__all__ = [
    "Beside", "Fusion", "Picture", "Stepper", "beside", "fusion", "graph", "memory", "profile", "roofline", "schedule",
    "shown", "step",
]  # fmt: skip
