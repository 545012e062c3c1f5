"""Unit 10: graph mode.  The second call, what a trace bakes in, guards, scripts, and tools to debug a graph."""

from . import demo, exercise, only_graph  # which add their tasks to the unit
from .about import UNIT
