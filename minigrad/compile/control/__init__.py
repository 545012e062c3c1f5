"""Branches and loops as nodes, with their gradients."""

from ..functions.function import Function
from ..tracing.tracer import Tracer
from . import recorded, rules

# A tracer records branches and loops, and their functions have gradients, without imports of these modules.
Tracer.flow = recorded
Function.rules = rules
