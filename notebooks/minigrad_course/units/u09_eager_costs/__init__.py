"""Unit 09: what eager costs.  Bytes of each operation, kernels fused by hand, and thousands of operators."""

from . import demo, exercise, rows  # which add their tasks to the unit
from .about import UNIT
from .gpt import train_gpt
from .in_registers import registers

__all__ = ["UNIT", "registers", "train_gpt"]
