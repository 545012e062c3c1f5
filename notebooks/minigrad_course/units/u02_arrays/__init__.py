"""Unit 02: numerical linear algebra and arrays.  Calls into the library, shared memory, versions, views by strides."""

from . import demo, exercise, stepping  # which add their tasks to the unit
from .about import UNIT
