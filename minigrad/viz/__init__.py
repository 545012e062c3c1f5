"""Seeing a computation: pictures of graphs, and backward passes to step through."""

from .graphs import graph, shown
from .picture import Picture
from .stepper import Stepper, step

__all__ = ["Picture", "Stepper", "graph", "shown", "step"]
