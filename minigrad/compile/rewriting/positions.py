"""Passes that compare positions: kernels compute them from the numbers of their loops, and nothing is loaded.

`pick_rows` picks one element of each row inside a loop over the row.  `gather(x, [0, 1, 2, …], t)` is the element in
column t[i] of each row i, as in a loss over classes.  A library call would need all of x in memory.  A kernel that
loops over the rows anyway can sum the elements whose column is t[i].  The gradient, a `scatter_add` into zeros, is the
value where the column is t[i], and 0 elsewhere.  If t[i] is not a column, the sum is nan and the gradient is 0, so the
pass adds a check to the graph, which every run makes.

`positions` computes large masks where they are read.  A causal mask is `arange(n)[:, None] < arange(n)`.  It is the
same for all matrices of a stack, so each kernel that uses it would load it from memory, queries × keys numbers.  In the
shape of the reader, the same kernel computes it.  `fusion.blocks` finds the diagonal only in such a kernel: without
this pass, a causal attention computes the later columns too.
"""

from __future__ import annotations

from math import nan
from typing import Any

from ...core import dtypes
from ...core.node import Node
from ...core.tensor import NUMBERS
from ..nodes.graph import Check, Graph, Replacing, reapplied, remade
from ..nodes.thresholds import LARGE_MATRIX
from ..nodes.view import FILLED, is_filled
from .rules import Note, rewritten

Known = dict[tuple[Node, int], tuple[Node, Node]]  # (integers, number of columns) -> the result of `_hits`
FUSED = ("elementwise", "reduce", "view")  # the kinds of primitives whose results are worth keeping out of memory


def pick_rows(graph: Graph, note: Note) -> Graph:
    """Picks elements of rows by comparing positions, which a loop over the row can do."""
    checks: list[Check] = []
    known: Known = {}

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        now = remade(node, inputs)
        name, rule = RULES.get(now.name, ("", None))
        picked = None if rule is None else rule(now, known)
        if picked is None:
            return now
        note(name, node, picked)
        checks.append(Check(inputs[-1], inputs[0].shape[1], node))
        return picked

    return rewritten(graph, replace).checking(checks)


def _counts_rows(x: Node, indices: tuple[Any, ...]) -> bool:
    """Whether the indices are 0, 1, 2, … for the rows of a matrix, and integers for its columns."""
    if len(indices) != 2 or len(x.shape) != 2 or not x.size or x.dtype.kind != "f":
        return False
    rows, columns = indices
    counted = rows.name == "arange" and (rows.attrs["start"], rows.attrs["step"]) == (0, 1)
    return counted and rows.shape == columns.shape == x.shape[:1]


def picked(node: Node, known: Known) -> Node | None:
    """A `gather` as the sum over each row of the elements in the picked column."""
    x, *indices = node.inputs
    if not _counts_rows(x, tuple(indices)) or x.op is None or x.op.kind not in FUSED or is_filled(x):
        return None
    column, hit = _hits(x, indices[1], node, known)
    made = Replacing(node)
    total = made.sum(made.where(hit, x, 0.0), axis=(1,), keepdims=False, dtype=None)
    last = made.less(column, x.shape[1])
    return made.where(made.bitwise_and(made.less_equal(0, column), last), total, nan)


def placed(node: Node, known: Known) -> Node | None:
    """A `scatter_add` into zeros as the value in the picked column, and 0 elsewhere."""
    base, value, *indices = node.inputs
    zeros = isinstance(base, Node) and base.name == "full" and base.attrs["value"] == 0
    if not zeros or not _counts_rows(base, tuple(indices)):
        return None
    made = Replacing(node)
    if value.__class__ not in NUMBERS:
        if value.shape not in ((), (1,), base.shape[:1]):
            return None
        value = made.reshape(value, shape=(value.size, 1))
    _, hit = _hits(base, indices[1], node, known)
    return made.where(hit, value, made.full(**base.attrs | {"shape": ()}))


def _hits(x: Node, column: Node, like: Node, known: Known) -> tuple[Node, Node]:
    """The picked column of each row, counted from the front, and for each element of x whether it lies there."""
    (rows, columns), made = x.shape, Replacing(like)
    key = column, columns
    if key in known:
        return known[key]
    if column.dtype != dtypes.int64:
        column = made.astype(column, dtype=dtypes.int64)
    back = made.add(column, columns)
    column = made.where(made.less(column, 0), back, column)
    counted = made.arange(start=0, step=1, count=columns, dtype=dtypes.int64, device=x.device)
    known[key] = column, made.equal(made.reshape(column, shape=(rows, 1)), counted)
    return known[key]


RULES = {"gather": ("picked by comparing", picked), "scatter_add": ("placed by comparing", placed)}


# Masks ----------------------------------------------------------------------------------------------------------------


def positions(graph: Graph, note: Note) -> Graph:
    """Computes large masks of positions where they are read."""
    counted = {node for node in graph.nodes if node.op is not None and node.op.name in FILLED}
    for node in graph.nodes:
        if node.op is not None and node.op.kind in ("elementwise", "view") and node.inputs:
            if all(not isinstance(x, Node) or x in counted for x in node.inputs):
                counted.add(node)
    large = [node for node in counted if node.size >= LARGE_MATRIX]
    masks = {node for node in large if node.op is not None and node.op.kind == "elementwise"}
    if not masks:
        return graph
    wide: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def widened(node: Node, shape: tuple[int, ...]) -> Node:
        """The same values in a larger shape."""
        key = node, shape
        if key not in wide:
            if node.op is not None and node.op.kind == "elementwise":
                inputs = tuple([widened(x, shape) if isinstance(x, Node) else x for x in node.inputs])
                wide[key] = reapplied(node, inputs)
            else:
                wide[key] = Replacing(node).broadcast_to(node, shape=shape)
        return wide[key]

    def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
        if node.op is None or node.op.kind != "elementwise" or node in counted:
            return remade(node, inputs)
        smaller = [x in masks and x.shape != node.shape for x in node.inputs]
        if not any(smaller):
            return remade(node, inputs)
        given = tuple([widened(x, node.shape) if small else x for x, small in zip(inputs, smaller)])
        now = remade(node, given)
        note("mask of positions", node, now)
        return now

    return rewritten(graph, replace)
