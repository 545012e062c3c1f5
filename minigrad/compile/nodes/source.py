"""Sources: the nodes where the values of a graph come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.clock import tick
from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import NO_RULES
from ...devices.special import cast
from ...support.source import caller


class Source(Node):
    """Where a value comes from that nothing in the graph computes: `kind` says what, `held` is what is known of it."""

    __slots__ = ("held", "kind")
    held: Any
    kind: str  # "tensor": held outside; "constant": this array; "array": a copy of this one; "cotangent": of output

    def __init__(self, kind: str, held: Any, shape: tuple[int, ...], dtype: Any, device: Any, mode: Mode) -> None:
        self.op, self.inputs, self.attrs, self.plan, self.saved = None, (), {}, NO_RULES, None
        self.shape, self.dtype, self.device, self.mode = shape, dtype, device, mode
        self.serial = tick()
        self.code, self.offset = caller(2)
        self.kind, self.held = kind, held

    @property
    def name(self) -> str:
        return self.kind

    def array(self) -> Any:
        """The array of a constant.  What is the user's is copied now: it may have changed."""
        if self.kind == "array":
            held = self.held if self.held.dtype == self.dtype else cast(np, self.held, self.dtype)
            return self.device.from_numpy(np.array(held, dtype=self.dtype, order="C"))
        return self.held
