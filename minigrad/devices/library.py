"""The base of the groups of kernels: an array library, and kernels that are functions of it.

A group is a class with one method per primitive, named like the primitive.  A method's
inputs are raw arrays (or Python numbers), attributes of the primitive are keywords.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Kernel = Callable[..., Any]
WIDE = np.intp(0).itemsize == 8  # an address has 64 bits; in a browser it has 32


class KernelGroup:
    """Kernels of one theme.  `Kernels` inherits from all of these groups.

    `xp` is the array library, and `empty(shape, dtype)` returns the device's memory for
    a result.  Public methods are kernels; helper methods begin with an underscore.
    """

    xp: Any = np

    def __init__(self, device: Any) -> None:
        self.device = device
        self.xp = self.xp  # Python finds an object's own attributes faster
        self.empty: Kernel = device.empty


def positions(kernel: Kernel) -> Kernel:
    """A kernel whose result is positions, which are int64.  NumPy's have as many bits as an address."""
    return kernel if WIDE else lambda *values, **attrs: kernel(*values, **attrs).astype(np.int64)


class Library:
    """A kernel that is simply a function of the array library.

    >>> class Powers(KernelGroup):
    ...     pow = Library("power")
    >>> Powers(mg.as_device("cpu")).pow is np.power
    True
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, group: KernelGroup | None, owner: type) -> Any:
        return self if group is None else getattr(group.xp, self.name)
