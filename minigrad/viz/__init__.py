"""Seeing a computation: pictures of graphs, and backward passes to step through."""

from .bench import bench
from .dispatch import dispatch
from .flipbook import Flipbook
from .graphs import graph, shown
from .picture import Picture
from .ring import ring
from .stack import stack
from .stepper import Stepper, step

from .tape import tape
from .timeline import timeline

__all__ = ["Picture", "Stepper", "graph", "shown", "step"]
