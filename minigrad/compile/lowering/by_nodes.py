"""Runs a kernel where there is no machine code: its nodes one after the other, with the array library.

The memory is that of the kernel in machine code, so both have the same plan.  The values between the nodes take memory
of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.emit import EAGER
from ...core.node import Node
from ...core.replay import evaluate_nodes
from ...devices.registry import DEVICES
from ..loops.ir import Parameter
from ..loops.operations import OPERATIONS, REDUCTIONS
from ..loops.scalar import identity
from ..nodes.graph import Graph


class Region(NamedTuple):
    """A parameter of a kernel with a node: its memory has a value, an element of it, or parts of a reduction."""

    number: int
    parameter: Parameter
    node: Node
    offset: int  # of the element that the pointer points to
    reduction: str = ""  # of parts

    def memory(self, addresses: Any) -> Any:
        """The value, or the parts along a first dimension."""
        parameter, element = self.parameter, self.parameter.dtype.itemsize
        shape = (parameter.size // self.node.size, *self.node.shape) if self.reduction else self.node.shape
        raw = (ctypes.c_uint8 * (prod(shape) * element)).from_address(addresses[self.number] - self.offset * element)
        return np.frombuffer(raw, parameter.dtype).reshape(shape)

    def read(self, addresses: Any) -> Any:
        """The value of the node."""
        memory = self.memory(addresses)
        if not self.reduction:
            return memory
        return OPERATIONS[REDUCTIONS[self.reduction]].numpy.reduce(memory, axis=0).astype(self.node.dtype)

    def write(self, addresses: Any, value: Any) -> None:
        """Store a value; the first part of a reduction is all of it."""
        memory = self.memory(addresses)
        if self.reduction:
            memory[1:] = identity(self.reduction, memory.dtype)
            memory = memory[0, ...]
        memory[...] = value


class ByNodes:
    """A kernel that takes the address of its table, as machine code does.  Its first part computes all units."""

    def __init__(self, size: int, read: Sequence[Region], written: Sequence[Region]) -> None:
        self.size, self.read, self.written = size, read, written

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The nodes from what is read to what is written, in order."""
        return Graph([region.node for region in self.read], [region.node for region in self.written]).nodes

    def __call__(self, table: int) -> None:
        addresses = (ctypes.c_void_p * (self.size + 2)).from_address(table)
        if addresses[self.size]:  # another part
            return
        values: dict[Node, Any] = {region.node: region.read(addresses) for region in self.read}
        wanted = [region.node for region in self.written]
        with np.errstate(all="ignore"):
            for _ in evaluate_nodes(self.nodes, values, _computed, {*wanted}):
                pass
        views = [node for node in wanted if node.op is not None and node.op.kind == "view"]
        values |= {node: values[node].copy() for node in views}  # of what is overwritten, perhaps
        for region in self.written:
            region.write(addresses, values[region.node])


def _computed(node: Node, given: list[Any]) -> Any:
    if node.op is None:
        return node.array()  # type: ignore[attr-defined]
    return EAGER.compute(node.op, given, node.attrs, DEVICES["cpu"])
