"""Unit 03: devices and dispatch.  A dispatcher, a coarse kernel, a chip of the student's own, and its costs."""

from . import demo, exercise  # which add their tasks to the unit
from .about import UNIT
