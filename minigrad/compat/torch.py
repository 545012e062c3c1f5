"""PyTorch's names over minigrad: `rooms` fills this module and those below it, `torch.nn`, `torch.optim` and the rest."""

from . import rooms as _rooms
