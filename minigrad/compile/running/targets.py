"""Targets: how programs differ between devices.  All targets share the stages up to the loops of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ...core.node import Node
from ..fusion.loop_shape import Chunking
from .backends import chosen, compiled
from .frame import Frame, Layout
from .plan import Launch, Plan
from .products import products_of

# The rules and the passes for what loops compute faster than libraries, if they have vectors.
LOOPS = ("windows as product", "join by position", "channels_last", "packed")


@dataclass(frozen=True)
class Target:
    """The parts of the compiler that depend on the device.

    `chunking` divides reductions whose partial results are combined.  `compiled` makes a function for each launch, by
    the number of its step.  `frame` makes a frame.  Only with `threads` may the steps of a level run at the same time,
    and kernels run in blocks together with products.  `products` finds the matrix products that run in machine code, by
    the number of the step.
    """

    chunking: Chunking
    compiled: Callable[[Mapping[int, Launch], str | None], dict[int, Any]]
    frame: Callable[[Layout, dict[int, Any]], Frame]
    threads: bool
    products: Callable[[Plan, str | None], dict[int, Any]] = lambda plan, backend: {}
    without: tuple[str, ...] = ()  # the passes and rules that do not pay here

    def on_backend(self, backend: str | None) -> Target:
        """This target where `backend` runs the kernels: NumPy has no vectors, so libraries compute all products, and
        browsers have no libraries, so loops compute them.
        """
        name = chosen(backend)
        if name == "wasm":
            return replace(self, chunking=replace(self.chunking, lanes=4, registers=16, products=True))
        if name == "llvm":
            return self
        return replace(self, chunking=replace(self.chunking, lanes=0), without=(*self.without, *LOOPS))


def _has_wide_vectors() -> bool:
    """Whether vectors have 512 bits, judged by NumPy, because loading LLVM takes longer."""
    features = getattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "__cpu_features__", {})
    return bool(features.get("AVX512F"))


WIDE = Chunking(lanes=16, registers=32)
HOST = Target(
    WIDE if _has_wide_vectors() else Chunking(), compiled, Frame, threads=True, products=products_of
)
_MAKERS: dict[str, Callable[[Any], Target]] = {}  # kind of device -> function that makes its target


def register_target(kind: str, make: Callable[[Any], Target]) -> None:
    """Compile programs for devices of this kind: `make(device)` returns the target of one of them.

    Devices with NumPy's arrays and kernels use the target of the CPU.  Programs on other devices, or on several
    devices, run node by node with the devices' kernels.
    """
    _MAKERS[kind] = cache(make)


def target_of(nodes: Iterable[Node]) -> Target | None:
    """The target that fits the devices of all nodes, or None."""
    devices = {node.device for node in nodes}
    if len(devices) == 1:
        (device,) = devices
        if device.kind in _MAKERS:
            return _MAKERS[device.kind](device)
    return HOST if all(device.is_standard for device in devices) else None
