"""Targets: what programs are made for.  Everything up to the kernels' loops and the plan of memory is common to all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..core.node import Node
from .backends import compiled
from .execution import Frame, Layout
from .groups import Group
from .loops import Chunking
from .lowering import Lowered


@dataclass(frozen=True)
class Target:
    """How a device's programs differ.

    `chunking` says how work is divided whose results are put together, `compiled` makes functions of kernels, `frame`
    what one run at a time needs.  Only with `threads` may the steps of a level run at the same time.
    """

    chunking: Chunking
    compiled: Callable[[Mapping[Group, Lowered], str | None], dict[Group, Any]]
    frame: Callable[[Layout, dict[Group, Any]], Frame]
    threads: bool


HOST = Target(Chunking(), compiled, Frame, threads=True)


def target_of(nodes: Iterable[Node]) -> Target | None:
    """The target for nodes, all of whose devices it has to serve; None where there is none."""
    devices = {node.device for node in nodes}
    if all(device.hosted for device in devices):
        return HOST
    device = devices.pop()
    return cuda_target(device) if device.kind == "cuda" and not devices else None


@cache
def cuda_target(device: Any) -> Target:
    """The target for a GPU."""
    from .cuda import CHUNKING, CudaFrame, compiled_for

    return Target(
        CHUNKING, lambda lowered, backend: compiled_for(device, lowered),
        lambda layout, functions: CudaFrame(device, layout, functions), threads=False,
    )  # fmt: skip
