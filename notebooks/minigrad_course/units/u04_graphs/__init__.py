"""Unit 04: computational graphs.  Graphs by hand, a recorder and an order that run in the engine, equal graphs."""

from . import demo, exercise, recording  # which add their tasks to the unit
from .about import UNIT
