"""The pass `common`: nodes that compute the same from the same inputs become one node."""

from __future__ import annotations

import struct
from typing import Any

from ...core.node import Node
from ...core.primitive import Primitive
from ..nodes.graph import Graph, remade
from .match import COMMUTE
from .rules import Note, rewritten


def common(graph: Graph, note: Note, without: frozenset[str] = frozenset()) -> Graph:
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


NUMBER_BITS: dict[type, Any] = {bool: bool, int: int, float: struct.Struct("<d").pack}


def comparable(value: Any) -> Any:
    """An attribute as a key: 1, 1.0 and True differ, and so do 0.0 and -0.0; a nan is equal to itself.

    >>> comparable(slice(0, 2)), comparable((1, True))
    (('slice', 0, 2, None), (('int', 1), ('bool', True)))
    """
    bits = NUMBER_BITS.get(value.__class__)
    if bits is not None:
        return value.__class__.__name__, bits(value)
    if value.__class__ is tuple or value.__class__ is list:
        return tuple([comparable(v) for v in value])
    if value.__class__ is slice:
        return "slice", value.start, value.stop, value.step
    if value.__class__ is dict:
        return tuple([(k, comparable(v)) for k, v in value.items()])
    return value if not isinstance(value, Primitive) else value.name
