"""Runs a kernel where there is no machine code: its nodes one after the other, with the array library.

The memory is that of the kernel in machine code, so both have the same plan.  The values between the nodes take memory
of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...core.node import Node
from ...core.replay import evaluate_nodes
from ...devices.registry import DEVICES
from ..loops.operations import OPERATIONS, REDUCTIONS, identity
from ..nodes.graph import Graph


class ByNodes:
    """A kernel that takes the address of its table, as machine code does.  Its first part computes all units.

    Some of what the group loads is `unread`: where a gather can only pick one element, its positions do not matter.
    """

    def __init__(self, lowered: Any) -> None:
        self.arguments, self.parameters = lowered.arguments, lowered.kernel.parameters
        overwritten = {source: output for output, source in lowered.group.inplace.items()}
        numbered = [(number, each.node) for number, each in enumerate(self.arguments) if each.node is not None]
        roles = [parameter.role for parameter in self.parameters]
        self.read = {number: node for number, node in numbered if roles[number] in ("in", "inout")}
        self.written = {n: overwritten.get(node, node) for n, node in numbered if roles[n] != "in"}
        self.unread = [node for node in lowered.group.loads if node not in self.read.values()]

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The nodes from what is read to what is written, in order."""
        return Graph([*self.read.values(), *self.unread], [*self.written.values()]).nodes

    def __call__(self, table: int) -> None:
        count, wanted = len(self.arguments), {*self.written.values()}
        addresses = (ctypes.c_void_p * (count + 2)).from_address(table)
        if addresses[count]:  # another part
            return
        values: dict[Node, Any] = {node: np.zeros(node.shape, node.dtype) for node in self.unread}
        for number, node in self.read.items():
            memory, reduction = self.memory(number, addresses), self.arguments[number].reduction
            if reduction:
                memory = OPERATIONS[REDUCTIONS[reduction]].numpy.reduce(memory, axis=0).astype(node.dtype)
            values[node] = memory
        with np.errstate(all="ignore"):
            for _ in evaluate_nodes(self.nodes, values, _computed, wanted):
                pass
        views = [node for node in wanted if node.op is not None and node.op.kind == "view"]
        values |= {node: values[node].copy() for node in views}  # of what is overwritten, perhaps
        for number, node in self.written.items():
            memory, reduction = self.memory(number, addresses), self.arguments[number].reduction
            if reduction:  # the first part is all of it
                memory[1:] = identity(reduction, memory.dtype)
                memory = memory[0, ...]
            memory[...] = values[node]

    def memory(self, number: int, addresses: Any) -> Any:
        """The value of a node, or the parts of a reduction along a first dimension."""
        (node, _, offset, reduction), parameter = self.arguments[number], self.parameters[number]
        assert node is not None
        shape = (parameter.size // node.size, *node.shape) if reduction else node.shape
        size = parameter.dtype.itemsize
        raw = (ctypes.c_uint8 * (prod(shape) * size)).from_address(addresses[number] - offset * size)
        return np.frombuffer(raw, parameter.dtype).reshape(shape)


def _computed(node: Node, given: list[Any]) -> Any:
    if node.op is None:
        return node.array()  # type: ignore[attr-defined]
    try:
        return EAGER.compute(node.op, given, node.attrs, DEVICES["cpu"])
    except IndexError:  # the plan has a check of all positions, which raises the error of eager mode
        return np.zeros(node.shape, node.dtype)
