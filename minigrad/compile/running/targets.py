"""Targets: how programs differ between devices; and settings: how a graph is compiled and its program runs.

All targets share the stages up to the loops of the kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.override import overridable
from ..fusion.loop_shape import Chunking
from .backends import chosen, compiled, has_machine_code
from .frame import Frame, Layout
from .plan import Launch, Plan, one_by_one
from .steps import products_of

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


@dataclass(frozen=True)
class Settings:
    """How a graph is compiled for a target, and how its program runs.

    `backend` names what runs the kernels, and `executor` which steps run at the same time; None: as the environment
    says.  `donate` names outputs, by number, that may be stored in place of an input.  `without` names passes and rules
    to leave out.  With `any_layout`, results need not be in row-major order.
    """

    target: Target = HOST
    backend: str | None = None
    executor: str | None = None
    donate: Mapping[int, int] = field(default_factory=dict)
    without: str | Collection[str] = ()
    any_layout: bool = False

    @property
    def left_out(self) -> list[str]:
        """The passes and rules to leave out, with those that do not pay on the target."""
        named = [self.without] if isinstance(self.without, str) else self.without
        return [*named, *self.target.without, *([] if self.any_layout else ["result_layouts"])]

    def resolved(self) -> Settings:
        """These settings, with the executor that the environment names, and a target that fits the backend.

        >>> Settings().resolved().executor
        'serial'
        """
        executor = self.executor or os.environ.get("MINIGRAD_EXECUTOR") or "serial"
        return replace(self, executor=executor, target=self.target.on_backend(self.backend))

    @property
    def in_blocks(self) -> bool:
        """Whether kernels may run on a part of the rows at a time, together with products: as machine code of a CPU."""
        return self.target.threads and has_machine_code(self.backend)

    @overridable
    def turns(self, plan: Plan) -> list[list[int]]:
        """The numbers of the steps in the order of a run, in lists of steps that run at the same time."""
        if self.executor is None or self.executor == "serial" or not self.target.threads:
            return one_by_one(plan)
        from .schedule import Schedule, turns

        return [[step.number for step in turn] for turn in turns(Schedule(plan), self.executor)]


USUAL = Settings()
