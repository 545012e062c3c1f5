"""Unit 05: gradient functions.  Rules of arrays, a gradient check, five rules of which one is wrong."""

from . import demo, exercise, measuring  # which add their tasks to the unit
from .about import UNIT
