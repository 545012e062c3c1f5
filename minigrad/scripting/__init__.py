"""`mg.script`: Python's own control flow over tensors, by rewriting the source.

A function goes through these files in this order: `scripted.py` finds its source, `classify.py` says which statements
a tensor might decide, `lowering.py` does away with early exits, `liveness.py`, `assigned.py` and `blocks.py` find the
variables of each block, and `rewriting.py` makes functions of the blocks.  When it runs, `dispatch.py` decides, and
`recorded.py` makes nodes.
"""

from ..arguments.public import public
from .scripted import script

__all__ = ["script"]

public(__all__, globals(), eager=("script",))
