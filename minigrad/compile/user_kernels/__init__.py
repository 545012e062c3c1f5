"""Users' kernels, and the patterns of operations that they replace."""

from ...arguments.public import public
from .own import kernel

__all__ = ["kernel"]

public(__all__, globals(), eager=__all__)
