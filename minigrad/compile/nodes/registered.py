"""Kernels of `register_kernel` in programs: a node that has one becomes a library call.

Its operation then has another name, so that no rule changes it and no loop computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...core.node import Node
from ...core.primitive import Primitive
from ...devices.registry import REGISTRATIONS
from ...support.errors import DtypeError, ShapeError
from .graph import Graph, node_like, remade


class Registered:
    """The kernel that a device has for an operation: when it runs, that is the one which was registered last."""

    def __init__(self, op: Primitive) -> None:
        self.op = op
        self.primitive = Primitive(f"own_{op.name}", "own", op.inputs, self._infer, promotes=())

    def __repr__(self) -> str:
        return f"<kernel of {self.op.name}>"

    def _infer(self, *inputs: Any, kernel: Registered, **attrs: Any) -> Any:
        return self.op.infer(*inputs, **attrs)

    def attrs_of(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The attributes of the operation, among those of a node."""
        return {name: value for name, value in attrs.items() if name != "kernel"}

    def run(self, node: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        """The result for these arrays, in memory of its own."""
        given = [read_only(array) for array in arrays]
        found = EAGER.compute(self.op, given, self.attrs_of(attrs), node.device)
        name = f"the kernel that is registered for {self.op.name}"
        if found.__class__ is not tuple:
            return checked(name, found, node.shape, node.dtype, arrays)
        return tuple([checked(name, *each, arrays) for each in zip(found, node.shape, node.dtype)])


@cache
def _registered(op: Primitive) -> Registered:
    return Registered(op)


def with_registered(graph: Graph) -> Graph:
    """The graph with library calls in place of the operations whose kernels users have registered."""

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        op = node.op
        if op is None or op.kind == "structural" or not has_registered([node]):
            return remade(node, inputs)
        kernel = _registered(op)
        return node_like(kernel.primitive, inputs, {"kernel": kernel, **node.attrs}, like=node)

    return graph.rebuilt(replace) if has_registered(graph.nodes) else graph


def has_registered(nodes: Sequence[Node], among: Sequence[Any] = REGISTRATIONS) -> bool:
    """Whether one of these registrations is for one of the nodes."""
    return any(each.op is node.op and each.concerns(node.device) for each in among for node in nodes)


def checked(name: str, result: Any, shape: tuple[int, ...], dtype: Any, arrays: Sequence[Any]) -> Any:
    """The result of a user's kernel, if other kernels can read it; a copy if it shares the memory of its inputs."""
    if result.shape != shape:
        raise ShapeError(
            f"{name} returned a shape that is not that of its operation", expect=shape, actual=result.shape
        )
    if result.dtype != dtype:
        raise DtypeError(
            f"{name} returned a dtype that is not that of its operation", expect=dtype, actual=result.dtype,
            hint=f"result.astype({str(dtype)!r})",
        )
    if not isinstance(result, (np.ndarray, np.generic)):
        return result.copy()
    result = np.asarray(result)
    shared = not result.flags.writeable or any(np.may_share_memory(result, array) for array in arrays)
    return result.copy() if shared else result


def read_only(array: Any) -> Any:
    """The array, which a user's kernel cannot write to."""
    if array.__class__ is not np.ndarray:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
