"""Unit 07: forward mode, and memory.  A rule for tangents, Jacobians both ways, checkpoints within a budget."""

from . import forward, memory, plans  # which add their tasks to the unit
from .about import UNIT
