"""PyTorch's names over minigrad: `rooms` fills this module and those below it (`torch.nn`, `torch.optim`)."""

from . import rooms as _rooms  # noqa: F401
from .speaking import activate as _activate

_activate()
