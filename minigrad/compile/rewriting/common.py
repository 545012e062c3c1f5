"""The pass `common`: nodes that compute the same from the same inputs become one node."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import Primitive
from ...devices.registry import Device
from ..nodes.graph import Graph, remade
from .equation import COMMUTE
from .rules import Note, rewritten


def common(graph: Graph, note: Note) -> Graph:
    """Merges nodes that compute the same from the same inputs."""
    known: dict[Any, Node] = {}

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        now = remade(node, inputs)
        key = recipe(now)
        if key is None:
            return now
        first = known.setdefault(key, now)
        if first is not now:
            note("same recipe", node, first)
        return first

    return rewritten(graph, replace)


def recipe(node: Node) -> Any:
    """A key that is equal for nodes that compute the same; None for nodes that cannot be compared.

    The attributes of a random draw include its key and block, so only equal draws have equal keys.
    """
    if node.op is None or node.effect is not None:
        return None
    inputs = [x if x.__class__ not in NUMBER_BITS else comparable(x) for x in node.inputs]
    if node.op.name in COMMUTE:
        inputs.sort(key=_rank)
    attrs = comparable(node.attrs) if node.attrs else ()
    try:
        key = (node.op, tuple(inputs), attrs, node.dtype, node.device)
        hash(key)
    except TypeError:
        return None
    return key


def _rank(x: Any) -> int:
    return x.serial if isinstance(x, Node) else 0


NUMBER_BITS: dict[type, Any] = {bool: bool, int: int, float: struct.Struct("<d").pack, complex: repr}
PLAIN = (str, bytes, type(None), type(...), type, np.dtype, Device, Primitive)  # equal ones mean the same
COMPARED = 4096  # bytes: arrays are compared up to this size


class Incomparable(Exception):
    """A value cannot be compared with another one: a large array, or an object."""


def comparable(value: Any, objects: bool = True) -> Any:
    """An attribute as a key: 1, 1.0 and True differ, and so do 0.0 and -0.0; a nan is equal to itself.

    Without `objects`, arrays are compared by their elements, and any other object is `Incomparable`.

    >>> comparable(slice(0, 2)), comparable((1, True))
    (('slice', (('int', 0), ('int', 2), None)), (('int', 1), ('bool', True)))
    """
    kind = value.__class__
    bits = NUMBER_BITS.get(kind)
    if bits is not None:
        return kind.__name__, bits(value)
    if isinstance(value, (tuple, list)):
        return tuple([comparable(v, objects) for v in value])
    if kind is slice:
        return "slice", comparable((value.start, value.stop, value.step), objects)
    if kind is dict:
        return tuple([(k, comparable(v, objects)) for k, v in value.items()])
    if objects or isinstance(value, PLAIN):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= COMPARED and not value.dtype.hasobject:
        return kind.__name__, value.shape, value.dtype, value.tobytes()
    raise Incomparable(repr(value))
