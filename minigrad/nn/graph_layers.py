"""Layers on graphs: each node aggregates messages from its in-neighbours, by mean or attention.

A graph is its edges, integers (2, edges): from row 0 to row 1.  Every node also gets its own message, unless `loops` is
False.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor, as_tensor
from ..ops.creation import arange, ones, zeros
from ..ops.declare import as_integers
from ..ops.elementwise import maximum, power, where
from ..ops.functional import _check_range, leaky_relu
from ..ops.joining import concat
from ..ops.reduce import mean, sum
from ..ops.segments import segment_softmax, segment_sum
from ..ops.view import expand_dims, reshape
from ..support.errors import ShapeError
from ..support.table import counted
from .init import xavier_uniform_
from .layers import Dropout, Linear, check_sizes
from .module import Module


class GraphConv(Module):
    """A graph convolution (GCN): each node gets the sum of its in-neighbours' features times `lin.weight`, plus `bias`.

    An edge has the factor 1 / √(degree of its start · degree of its end), times its weight if `weights` are given.

    >>> layer, edges = mg.nn.GraphConv(2, 3), mg.asarray([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> layer(mg.ones((3, 2)), edges).shape, list(layer.state_dict())
    ((3, 3), ['bias', 'lin.weight'])
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, loops: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        check_sizes("GraphConv", inputs=inputs, outputs=outputs)
        self.loops = loops
        self.lin = _linear(inputs, outputs, dtype, device)
        self.bias = zeros(outputs, dtype, device, requires_grad=True) if bias else None

    def forward(self, x: Tensor, edges: Any, weights: Tensor | None = None) -> Tensor:
        """The new features of the nodes, from their features x (nodes, inputs)."""
        x, starts, ends = _checked(self, x, edges, self.lin.weight.shape[1])
        nodes = x.shape[0]
        weights = ones(starts.shape, x.dtype, x.device) if weights is None else weights
        if weights.shape != starts.shape:
            raise ShapeError(f"weights of shape {weights.shape} for {starts.shape[0]} edges")
        if self.loops:
            starts, ends = _with_loops(starts, ends, nodes)
            weights = concat([weights, ones((nodes,), weights.dtype, x.device)])
        degree = segment_sum(weights, ends, nodes)
        scale = where(degree > 0.0, power(maximum(degree, 1e-12), -0.5), 0.0)
        messages = self.lin(x)[starts] * expand_dims(weights * scale[starts] * scale[ends], -1)
        out = segment_sum(messages, ends, nodes)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        outputs, inputs = self.lin.weight.shape
        return f"{inputs} → {outputs}"


class GAT(Module):
    """Graph attention: each node gets a mean of its in-neighbours' features, weighted by attention.

    Each of the `heads` gives `outputs` features; they are concatenated, or averaged if `concatenate` is False.

    >>> layer, edges = mg.nn.GAT(2, 3, heads=4), mg.asarray([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> layer(mg.ones((3, 2)), edges).shape, list(layer.state_dict())
    ((3, 12), ['att_src', 'att_dst', 'bias', 'lin.weight'])
    """

    def __init__(self, inputs: int, outputs: int, heads: int = 1, concatenate: bool = True, slope: float = 0.2,
                 dropout: float = 0.0, bias: bool = True, loops: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        check_sizes("GAT", inputs=inputs, outputs=outputs)
        check_sizes("GAT", 1, heads=heads)
        self.outputs, self.heads, self.concatenate, self.slope, self.loops = outputs, heads, concatenate, slope, loops
        self.lin = _linear(inputs, heads * outputs, dtype, device)
        shape = (1, heads, outputs)
        self.att_src, self.att_dst = (
            xavier_uniform_(zeros(shape, dtype, device, requires_grad=True)) for _ in range(2)
        )
        width = heads * outputs if concatenate else outputs
        self.bias = zeros(width, dtype, device, requires_grad=True) if bias else None
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """The new features of the nodes, from their features x (nodes, inputs)."""
        x, starts, ends = _checked(self, x, edges, self.lin.weight.shape[1])
        nodes = x.shape[0]
        if self.loops:
            starts, ends = _with_loops(starts, ends, nodes)
        features = reshape(self.lin(x), (nodes, self.heads, self.outputs))
        scores = sum(features * self.att_src, axis=-1)[starts] + sum(features * self.att_dst, axis=-1)[ends]
        weights = self.dropout(segment_softmax(leaky_relu(scores, self.slope), ends, nodes))
        out = segment_sum(features[starts] * expand_dims(weights, -1), ends, nodes)
        out = reshape(out, (nodes, self.heads * self.outputs)) if self.concatenate else mean(out, axis=1)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        words = f"{self.lin.weight.shape[1]} → {self.outputs}, {self.heads} heads"
        return words + ("" if self.concatenate else ", their mean")


def _linear(inputs: int, outputs: int, dtype: Any, device: Any) -> Linear:
    layer = Linear(inputs, outputs, False, dtype, device)
    xavier_uniform_(layer.weight)
    return layer


def _checked(layer: Module, x: Tensor, edges: Any, inputs: int) -> tuple[Tensor, Tensor, Tensor]:
    edges = as_tensor(np.asarray(edges) if isinstance(edges, (list, tuple)) else edges, x.device)
    if x.ndim != 2 or x.shape[1] != inputs:
        raise ShapeError(f"an input of shape {x.shape} does not fit {layer!r}", expect=f"(nodes, {inputs})")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise ShapeError(f"edges of shape {edges.shape} are not pairs of nodes",
                         expect="(2, edges): from row 0 to row 1")
    starts = _check_range("an edge from node", as_integers("edges", "nodes", edges[0]), x.shape[0], _count(x))
    ends = _check_range("an edge to node", as_integers("edges", "nodes", edges[1]), x.shape[0], _count(x))
    return x, starts, ends


def _count(x: Tensor) -> str:
    return f"with {counted(x.shape[0], 'node')}"


def _with_loops(starts: Tensor, ends: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    own = arange(nodes, dtype=starts.dtype, device=starts.device)
    return concat([starts, own]), concat([ends, own])
