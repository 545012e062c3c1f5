"""Unit 12: parallelism and offloading.  Launches, schedules for several workers, parts of a graph on another device."""

from . import demo, exercise, placing, schedules  # which add their tasks to the unit
from .about import UNIT
