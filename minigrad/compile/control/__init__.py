"""Branches and loops as nodes, with their gradients."""

from ..tracing.tracer import Tracer
from . import recorded, rules
from .closed import Closed

# A tracer records branches and loops, and closed functions have gradients, without imports of these modules.
Tracer.flow = recorded
Closed.rules = rules
