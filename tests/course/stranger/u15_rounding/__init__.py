"""Unit 15: rounding to a grid of steps"""

from . import exercise  # which adds its tasks to the unit
from .about import UNIT
