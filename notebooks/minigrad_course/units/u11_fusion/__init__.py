"""Unit 11: optimising graphs, and fusion.  Rules of algebra, a pass that merges, kernels by hand, changed programs."""

from . import demo, equations, kernels, league, merging  # which add their tasks to the unit
from .about import UNIT
