"""Unit 01: why frameworks.  A gradient by hand, three kinds of systems in a few lines each, the layers of one line."""

from . import demo, exercise  # which add their tasks to the unit
from .about import UNIT
