"""Unit 08: training.  The parts of a training loop, written by the student, and the files before and after it."""

from . import demo, files, initial, optimizers, resuming, steps  # which add their tasks to the unit
from .about import UNIT
