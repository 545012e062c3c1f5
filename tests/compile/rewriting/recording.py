"""Records functions as graphs with their eager results, and lists the values on which algebra goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad.compile.nodes.graph import Graph
from minigrad.core.emit import constant
from minigrad.core.node import Node
from minigrad.core.replay import recompute


def hard_values(dtype: str) -> np.ndarray:
    """Values of a dtype that reveal wrong algebra, and some ordinary ones."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind != "f":
        limits = np.iinfo(kind)
        small = [v for v in (-8, -7, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8, 100) if v >= limits.min]
        return np.array([*small, limits.min, limits.min + 1, limits.max - 1, limits.max], kind)
    limits = np.finfo(kind)
    ends = [limits.max, limits.max / 2, limits.smallest_normal, limits.smallest_subnormal, limits.eps]
    ends.append(limits.smallest_subnormal * 3)
    plain = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 0.1, 1 / 3, 7.7, 1000.5, 1 + limits.eps]
    return np.array([*plain, *ends, np.inf, *[-v for v in plain], *[-v for v in ends], -np.inf, np.nan], kind)


class Recorded:
    """A function of tensors as a graph, with the arrays that it was called with."""

    def __init__(self, function: Any, *arrays: np.ndarray) -> None:
        self.tensors = [mg.asarray(a) for a in arrays]
        with mg.record():
            results = function(*self.tensors)
        self.results = results if isinstance(results, (tuple, list)) else [results]
        self.graph = Graph([t.node or constant(t) for t in self.tensors], [r.node for r in self.results])

    def values(self, graph: Graph) -> list[np.ndarray]:
        """The outputs of a graph for the same inputs."""
        return evaluated(graph, [t.data for t in self.tensors])


def evaluated(graph: Graph, arrays: Any) -> list[np.ndarray]:
    """The outputs of a graph, with each node computed by its kernel."""
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays))
    values |= {n: n.array() if hasattr(n, "array") else n.held for n in graph.nodes if n.op is None}
    done = dict(values)
    done |= {node: value for node, _, value in recompute(graph.nodes, values)}
    return [np.array(done[node]) for node in graph.outputs]


def assert_same_bits(ours: Any, theirs: Any, message: str = "") -> None:
    """Check that shapes, dtypes and all bits are equal; any nan equals any other."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), message
        if a.dtype.kind == "f":
            bits = np.dtype(f"u{a.dtype.itemsize}")
            a, b = [np.where(np.isnan(v), np.array(np.nan, v.dtype), v).view(bits) for v in (a, b)]
        np.testing.assert_array_equal(a, b, err_msg=message)
