"""Seeing a computation: pictures of graphs, and backward passes to step through."""

from .beside import Beside, beside
from .graphs import graph, shown
from .picture import Picture
from .stepper import Stepper, step

__all__ = ["Beside", "Picture", "Stepper", "beside", "graph", "shown", "step"]
