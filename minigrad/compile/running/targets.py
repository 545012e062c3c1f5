"""Targets: what programs are made for.  Everything up to the kernels' loops and the plan of memory is common to all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...core.node import Node
from ..fusion.loop_shape import Chunking
from .backends import compiled
from .frame import Frame, Layout
from .plan import Launch


@dataclass(frozen=True)
class Target:
    """How a device's programs differ.

    `chunking` says how work is divided whose results are put together.  `compiled` makes a function for each launch, by
    the number of its step.  `frame` makes what one run at a time needs.  Only with `threads` may the steps of a level
    run at the same time.
    """

    chunking: Chunking
    compiled: Callable[[Mapping[int, Launch], str | None], dict[int, Any]]
    frame: Callable[[Layout, dict[int, Any]], Frame]
    threads: bool


HOST = Target(Chunking(), compiled, Frame, threads=True)
_MAKERS: dict[str, Callable[[Any], Target]] = {}  # kind of device -> what makes the target of such a device


def register_target(kind: str, make: Callable[[Any], Target]) -> None:
    """Compile programs for devices of this kind: `make(device)` returns the target of one of them.

    Devices with NumPy's arrays and kernels have the target of the CPU.  Programs on any other device, and those on
    several devices, call the devices' kernels node by node.
    """
    _MAKERS[kind] = cache(make)


def target_of(nodes: Iterable[Node]) -> Target | None:
    """The target for nodes, all of whose devices it has to serve; None where there is none."""
    devices = {node.device for node in nodes}
    if len(devices) == 1:
        (device,) = devices
        if device.kind in _MAKERS:
            return _MAKERS[device.kind](device)
    return HOST if all(device.is_standard for device in devices) else None
