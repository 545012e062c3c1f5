"""Views: nodes that only read another node's memory.

A reshape, a permutation, a broadcast and a slice compute nothing.  They read the memory of another node, the *base*,
from an offset and with a stride for each dimension.  The compiler therefore needs no kernels for them: the kernels that
read a view load with its strides.  One exception: a reshape of elements that are not evenly spaced must copy, and is a
base itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ...core.node import Node
from .graph import Graph

FILLED = ("full", "arange")  # a loop computes their elements where it reads them
Dims = list[tuple[int, int]]  # (size, stride) for each dimension, outermost first


class View(NamedTuple):
    """Elements of `base`: element (i, j) lies at `offset` + i · strides[0] + j · strides[1], counted in elements."""

    base: Node
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def dims(self) -> Dims:
        """Its dimensions, joined into as few as possible."""
        return coalesced(self.shape, self.strides)

    @property
    def in_order(self) -> bool:
        """Whether it reads all of its base, in the order in memory."""
        return in_order(self.base.size, self.offset, self.shape, self.strides)

    @property
    def repeats(self) -> int:
        """How often it reads each element of its base in a row, for (n, 1) broadcast to (n, k): k; else 0."""
        dims = self.dims
        whole = len(dims) == 2 and self.offset == 0 and dims[0] == (self.base.size, 1) and dims[1][1] == 0
        return dims[1][0] if whole else 0

    @property
    def footprint(self) -> int:
        """How many different elements of its base it reads."""
        return prod([size for size, stride in zip(self.shape, self.strides) if stride])

    def broadcast(self, shape: tuple[int, ...]) -> View:
        """The view repeated along new dimensions in front and dimensions of size 1."""
        if shape == self.shape:
            return self
        extra = len(shape) - len(self.shape)
        strides = [0 if old != new else s for old, new, s in zip(self.shape, shape[extra:], self.strides)]
        return View(self.base, self.offset, shape, (0,) * extra + tuple(strides))


@lru_cache(4096)
def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of elements in order.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@lru_cache(16384)
def _coalesced(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    dims: Dims = []
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if dims and dims[-1][1] == stride * size:
            dims[-1] = (dims[-1][0] * size, stride)
        else:
            dims.append((size, stride))
    return tuple(dims)


def coalesced(shape: tuple[int, ...], strides: tuple[int, ...]) -> Dims:
    """The dimensions with neighbours joined where one stride fits both; dimensions of size 1 are dropped.

    >>> coalesced((2, 3, 4), (12, 4, 1)), coalesced((2, 1, 4), (1, 7, 2))
    ([(24, 1)], [(2, 1), (4, 2)])
    """
    return list(_coalesced(shape, strides))


def in_order(size: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether these are all `size` elements in memory, in order."""
    if offset or prod(shape) != size:
        return False
    return strides == row_major(shape) or coalesced(shape, strides) in ([], [(size, 1)])


def is_filled(node: Node) -> bool:
    """Whether a loop can compute the elements of this node where it reads them."""
    return not node.inputs and node.op is not None and node.op.name in FILLED


def whole(node: Node) -> View:
    """A node as a view of itself."""
    if isinstance(node.dtype, tuple):  # several results: the shape is a tuple of shapes
        return View(node, 0, node.shape, ())
    return View(node, 0, node.shape, row_major(node.shape))


def views_of(graph: Graph) -> dict[Node, View]:
    """Each node as a view.  Nodes that are computed or come from outside are views of themselves."""
    views: dict[Node, View] = {node: whole(node) for node in graph.inputs}
    for node in graph.nodes:
        view = None
        if node.op is not None and node.op.kind == "view":
            view = through(node, views[node.inputs[0]])
        views[node] = whole(node) if view is None else view
    return views


def through(node: Node, source: View) -> View | None:
    """The result of the view operation `node` on a view; None where it must copy."""
    name, attrs = node.name, node.attrs
    if not node.size:
        return None
    if name == "reshape":
        return reshaped(source, node.shape)
    if name == "permute_dims":
        axes = attrs["axes"]
        strides = tuple([source.strides[a] for a in axes])
        return View(source.base, source.offset, node.shape, strides)
    if name == "broadcast_to":
        return source.broadcast(node.shape)
    if name == "slice":
        return sliced(source, attrs["index"])
    if name == "windows":
        return windowed(source, node.shape, attrs)
    return None


@dataclass(frozen=True)
class Pick:
    """The part of one dimension in a slice: `count` elements from `start`, `step` apart; `kept` is False for x[2]."""

    start: int
    step: int
    count: int
    kept: bool

    def is_all_of(self, size: int) -> bool:
        """Whether it takes all of a dimension of `size`, in order."""
        return (self.start, self.step, self.count) == (0, 1, size)

    def part(self, size: int) -> Any:
        """The part of an index that picks this from a dimension of `size`."""
        if not self.kept:
            return self.start
        if self.is_all_of(size):
            return slice(None)
        if not self.count:
            return slice(0, 0)
        stop = self.start + self.step * self.count
        return slice(self.start, stop if stop >= 0 else None, self.step)


def picks_of(index: tuple[Any, ...], shape: Sequence[int]) -> list[Pick | None]:
    """The part of each dimension that an index picks, in order; None is a new dimension of size 1.

    >>> picks_of((1, ..., None, slice(None, None, -1)), (2, 3))
    [Pick(start=1, step=1, count=1, kept=False), None, Pick(start=2, step=-1, count=3, kept=True)]
    """
    if not any(part is Ellipsis for part in index):
        index = (*index, ...)
    missing = len(shape) - sum([part is not None and part is not Ellipsis for part in index])
    full: list[Any] = []
    for part in index:
        full += [slice(None)] * missing if part is Ellipsis else [part]
    picks: list[Pick | None] = []
    sizes = iter(shape)
    for part in full:
        if part is None:
            picks.append(None)
            continue
        size = next(sizes)
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            count = len(range(start, stop, step))
            picks.append(Pick(start, step if count > 1 else 1, count, True))
        else:
            picks.append(Pick(part.__index__() % size, 1, 1, False))
    return picks


def sliced(source: View, index: tuple[Any, ...]) -> View:
    """The part that an index of integers, slices, `None` and `...` picks."""
    offset, steps = source.offset, iter(source.strides)
    dims: Dims = []
    for pick in picks_of(index, source.shape):
        if pick is None:
            dims.append((1, 0))
            continue
        stride = next(steps)
        offset += pick.start * stride
        if pick.kept:
            dims.append((pick.count, pick.step * stride))
    return View(source.base, offset, tuple([size for size, _ in dims]), tuple([stride for _, stride in dims]))


def windowed(source: View, shape: tuple[int, ...], attrs: dict[str, tuple[int, ...]]) -> View:
    """All windows along some dimensions: first the steps between windows, then those within a window."""
    strides = list(source.strides)
    for axis, step in zip(attrs["axis"], attrs["stride"]):
        strides[axis] *= step
    within = [source.strides[axis] * gap for axis, gap in zip(attrs["axis"], attrs["dilation"])]
    return View(source.base, source.offset, shape, (*strides, *within))


def reshaped(source: View, shape: tuple[int, ...]) -> View | None:
    """The same elements in the same order, in a different shape; None where no strides describe that.

    The rule is NumPy's: evenly spaced elements are one run, whatever their number of dimensions, and each new dimension
    is cut from one run.
    """
    runs = source.dims
    strides, run, stride = [], 1, 1  # what is left of the current run, and the distance of its next elements
    for size in reversed(shape):
        if size == 1:
            strides.append(stride)
            continue
        if run == 1:
            run, stride = runs.pop()
        if run % size:
            return None
        strides.append(stride)
        run //= size
        stride *= size
    return View(source.base, source.offset, shape, tuple(reversed(strides)))
