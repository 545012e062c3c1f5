"""`mg.script`: Python control flow that depends on tensors, by rewriting the source of a function.

A function passes through these files in order.  `scripted.py` finds the source.  `classify.py` finds the statements
that a tensor may decide.  `lowering.py` replaces early exits by flags.  `liveness.py`, `assigned.py` and `blocks.py`
find the variables of each block, and `rewriting.py` turns the blocks into functions.  At run time, `dispatch.py`
decides whether Python runs a block, or `recorded.py` records it as a node.
"""

from ..arguments.public import public
from .scripted import script

__all__ = ["script"]

public(__all__, globals(), eager=("script",))
