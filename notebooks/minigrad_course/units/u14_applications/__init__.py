"""Unit 14: one abstraction, many applications.  Four programs with a missing piece each, one line, a report."""

from . import demo, pieces, report  # which add their tasks to the unit
from .about import UNIT
