"""Graphs as plain data for JSON, and back: each node is the name of its primitive, its inputs and its attributes.

Nothing in a file is trusted.  A node refers only to nodes before it, the table of forms checks its attributes, and
`infer` finds its shape and dtype, as it does in a trace.  A graph inside an attribute is the function of a branch or of
a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import P
from ...support.words import shown
from ..functions.function import Function
from ..nodes.graph import Graph, Source, node_like
from .codec import ProgramError, decoded, encoded
from .forms import FORMS, check_node, is_shape

NESTED = 8  # the most graphs inside each other


# Writing ------------------------------------------------------------------------------------------------------------


def graph_as_data(graph: Graph, store: Callable[[Node], dict[str, Any]]) -> dict[str, Any]:
    """A graph as plain data; `store(node)` keeps the array of a node without an operation, and says where it is."""
    at = {node: number for number, node in enumerate((*graph.inputs, *graph.nodes))}
    return {
        "inputs": [_kind(node) for node in graph.inputs],
        "nodes": [_kind(n) | store(n) if n.op is None else _node(n, at, store) for n in graph.nodes],
        "outputs": [at[node] for node in graph.outputs],
    }


def _kind(node: Node) -> dict[str, Any]:
    return {"shape": list(node.shape), "dtype": node.dtype.name, "device": node.device.name}


def _node(node: Node, at: dict[Node, int], store: Callable[[Node], dict[str, Any]]) -> dict[str, Any]:
    assert node.op is not None

    def attribute(name: str, value: Any) -> Any:
        if isinstance(value, Function):
            return {"graph": graph_as_data(value.graph, store)}
        return encoded(value, f"{name} of {node.name}")

    return {
        "op": node.op.name,
        "inputs": [{"at": at[i]} if isinstance(i, Node) else encoded(i) for i in node.inputs],
        "attrs": {name: attribute(name, value) for name, value in node.attrs.items()},
    }


# Reading ------------------------------------------------------------------------------------------------------------


class GraphReader:
    """Makes the graphs of a file.  `arrays` reads the array with a number; each is read once, in order."""

    def __init__(self, arrays: Callable[[int], bytes]) -> None:
        self.arrays = arrays
        self.constants: dict[str, Source] = {}  # by name
        self.functions: list[Function] = []  # of branches and loops, inner ones first
        self.primitives = {op.name: op for op in P if op.name in FORMS or (op.kind == "elementwise" and not op.effect)}
        self.likes: dict[Any, Source] = {}  # a node to make others like it, by device

    def graph(self, data: dict[str, Any], depth: int = 0) -> Graph:
        """The graph of plain data."""
        if depth > NESTED:
            raise ProgramError(f"load: more than {NESTED} branches and loops inside each other")
        inputs = [_source("tensor", entry) for entry in data["inputs"]]
        nodes: list[Node] = [*inputs]
        for entry in data["nodes"]:
            nodes.append(self._constant(entry) if "array" in entry else self._node(entry, nodes, depth))
        outputs = [_at(nodes, place) for place in data["outputs"]]
        if any(isinstance(node.dtype, tuple) for node in outputs):
            raise ProgramError("load: a result is not a tensor")
        return Graph(inputs, outputs)

    def _constant(self, entry: dict[str, Any]) -> Source:
        source, name = _source("constant", entry), entry["name"]
        if entry["array"] != len(self.constants) or name in self.constants:
            raise ProgramError("load: an array is used twice, or not in order")
        self.constants[check_name(name)] = source
        raw, dtype = np.frombuffer(self.arrays(entry["array"]), np.uint8), source.dtype
        if raw.size != source.nbytes or (dtype == dtypes.bool and raw.size and raw.max() > 1):
            raise ProgramError(f"load: the {raw.size} bytes of {name!r} do not make an array of {dtype} {source.shape}")
        source.held = np.array(raw.view(dtype.newbyteorder("<")).reshape(source.shape), dtype)
        source.lasting = entry["lasting"] is True
        return source

    def _node(self, entry: dict[str, Any], nodes: list[Node], depth: int) -> Node:
        op = self.primitives.get(entry["op"])
        if op is None:
            raise ProgramError(f"load: there is no primitive {shown(entry['op'])} that a saved program may have")
        inputs = tuple([_at(nodes, i["at"]) if isinstance(i, dict) and "at" in i else decoded(i)
                        for i in entry["inputs"]])
        attrs = {name: self._attribute(value, depth) for name, value in entry["attrs"].items()}
        check_node(op, inputs, attrs)
        device = attrs.get("device") or next(i.device for i in inputs if isinstance(i, Node))
        if device not in self.likes:
            self.likes[device] = _plain("result", (), None, device)
        node = node_like(op, inputs, attrs, like=self.likes[device])
        for shape in node.shape if isinstance(node.dtype, tuple) else (node.shape,):
            if not is_shape(shape):
                raise ProgramError(f"load: the result of {op.name} is too large: {shown(shape)}")
        return node

    def _attribute(self, value: Any, depth: int) -> Any:
        if value.__class__ is not dict or value.keys() != {"graph"}:
            return decoded(value)
        function = Function(self.graph(value["graph"], depth + 1))
        self.functions.append(function)
        return function


def _at(nodes: list[Node], place: Any) -> Node:
    if place.__class__ is not int or not 0 <= place < len(nodes):
        raise ProgramError(f"load: there is no node {shown(place)} yet")
    return nodes[place]


def _source(kind: str, entry: dict[str, Any]) -> Source:
    shape, dtype, device = tuple(entry["shape"]), dtypes.ALL[entry["dtype"]], decoded({"device": entry["device"]})
    if not is_shape(shape) or not device.hosted:
        raise ProgramError(f"load: {shown(shape)} on {device} is not the shape and the device of a tensor on a CPU")
    return _plain(kind, shape, dtype, device)


def _plain(kind: str, shape: tuple[int, ...], dtype: Any, device: Any) -> Source:
    """A source that names no line of code."""
    source = Source(kind, None, shape, dtype, device, Mode())
    source.code, source.offset = None, 0
    return source


def check_name(name: Any) -> str:
    """A name from a file, which is printed: it must have no control characters."""
    if name.__class__ is not str or not name.isprintable() or len(name) > 1000:
        raise ProgramError(f"load: {shown(name)} is not a name")
    return name

