"""Unit 06: reverse mode.  The order, the backward pass, kept values, seeds, and three broken engines."""

from . import demo, exercise  # which add their tasks to the unit
from .about import UNIT
