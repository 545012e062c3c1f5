"""Unit 00: one number, five contributions, and the gradient rule of a product."""

from . import demo, exercise  # which add their tasks to the unit
from .about import UNIT
