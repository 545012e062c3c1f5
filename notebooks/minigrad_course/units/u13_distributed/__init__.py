"""Unit 13: distributed execution.  A ring all-reduce, acted out and written; it trains the digits on 4 ranks."""

from . import demo, exercise, planning  # which add their tasks to the unit
from .about import UNIT
