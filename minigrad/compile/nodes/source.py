"""Sources: nodes whose values come from outside the graph."""

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
    """A node whose value comes from outside: `held` is a tensor, an array or a number of an output, as `kind` says.

    A `lasting` value rarely differs between runs, so that programs keep what they compute from it alone.
    """

    __slots__ = ("held", "kind", "lasting")
    held: Any
    lasting: bool
    kind: str  # "tensor": of a call; "constant": this array; "array": a copy of it; "cotangent": of this output

    def __init__(self, kind: str, held: Any, shape: tuple[int, ...], dtype: Any, device: Any, mode: Mode) -> None:
        self.op, self.inputs, self.attrs, self.plan, self.saved = None, (), {}, NO_RULES, None
        self.shape, self.dtype, self.device, self.mode = shape, dtype, device, mode
        self.serial = tick()
        self.code, self.offset = caller(2)
        self.kind, self.held, self.lasting = kind, held, False

    @property
    def name(self) -> str:
        return self.kind

    def array(self) -> Any:
        """The array of a constant.  A user's array is copied now, because it may have changed."""
        if self.kind == "array":
            held = self.held if self.held.dtype == self.dtype else cast(np, self.held, self.dtype)
            return self.device.from_numpy(np.array(held, dtype=self.dtype, order="C"))
        return self.held
