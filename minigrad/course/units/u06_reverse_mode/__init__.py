"""Unit 06: reverse mode.  The order, the walk, what is kept, outputs of several numbers, and three broken engines."""

from . import demo, exercise  # which add their tasks to the unit
from .about import UNIT
