"""Sliding windows: a view of all parts of a certain size, and the sum that puts overlapping parts back together.

Convolutions and pooling are windows, followed by an existing operation: a matrix product, a mean, a maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.primitive import P, Primitive
from ..core.tensor import Tensor
from ..support.errors import ConversionError, ShapeError
from ..support.words import shown, whole
from .declare import declare, normal_axis

__all__ = ["windows", "overlap_add"]

Sizes = tuple[int, ...]


def window_count(name: str, extent: int, size: int, stride: int, dilation: int) -> int:
    """The number of windows that fit along a dimension; an error if none fits.

    >>> window_count("windows", extent=7, size=3, stride=2, dilation=1)
    3
    """
    span = (size - 1) * dilation + 1
    if extent < span:
        spread = f", spread over {span}," if dilation != 1 else ""
        raise ShapeError(
            f"{name}: a window of {size}{spread} is longer than the dimension of {extent} that it slides along",
            hint="padding makes the dimension longer",
        )
    return (extent - span) // stride + 1


def _infer_windows(x: Any, axis: Sizes, size: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    shape = list(x.shape)
    for a, extent, step, gap in zip(axis, size, stride, dilation):
        shape[a] = window_count("windows", shape[a], extent, step, gap)
    return (*shape, *size), x.dtype


def _infer_overlap_add(x: Any, axis: Sizes, stride: Sizes, dilation: Sizes, shape: Sizes) -> Any:
    size = x.shape[len(shape) :]
    wanted = list(shape)
    for a, extent, step, gap in zip(axis, size, stride, dilation):
        wanted[a] = window_count("overlap_add", wanted[a], extent, step, gap)
    if (*wanted, *size) != x.shape:
        raise ShapeError(
            f"overlap_add: windows of shape {x.shape} are not those of a tensor of shape {shape}",
            expect=str((*wanted, *size)),
        )
    return shape, x.dtype


def _of_windows(g: Any, node: Any) -> Any:
    attrs = {name: node.attrs[name] for name in ("axis", "stride", "dilation")}
    return P.overlap_add.apply(g, **attrs, shape=node.inputs[0].shape)


def _of_overlap_add(g: Any, node: Any) -> Any:
    attrs = {name: node.attrs[name] for name in ("axis", "stride", "dilation")}
    return raw_windows(g, **attrs, size=node.inputs[0].shape[len(node.shape) :])


raw_windows = declare(
    Primitive(
        "windows", "view", ("x",), _infer_windows, {"x": _of_windows}, promotes=(), linear=("x",),
        formula=r"x_{s\,i + d\,k}",
    )
).apply
declare(
    Primitive(
        "overlap_add", "index", ("x",), _infer_overlap_add, {"x": _of_overlap_add}, promotes=(), linear=("x",),
        formula=r"\sum_{s\,i + d\,k = j} x_{i,k}",
    )
)


def windows(x: Tensor, size: Any, axis: Any = -1, stride: Any = 1, dilation: Any = 1) -> Tensor:
    """All windows of `size` elements along `axis`, as a view: the elements of each window are in a new last dimension.

    With several axes there is a size for each, or one for all, and a new dimension for each.  Windows begin `stride`
    elements apart, and their elements are `dilation` apart.

    >>> mg.windows(mg.arange(5), 3).tolist(), mg.windows(mg.arange(5), 2, stride=2, dilation=2).tolist()
    ([[0, 1, 2], [1, 2, 3], [2, 3, 4]], [[0, 2], [2, 4]])
    """
    axes = tuple([normal_axis("windows", a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    attrs = _attributes("windows", axes, size=size, stride=stride, dilation=dilation)
    for a, *sizes in zip(axes, attrs["size"], attrs["stride"], attrs["dilation"]):
        window_count("windows", x.shape[a], *sizes)
    return raw_windows(x, **{"axis": axes, **attrs})


def overlap_add(x: Tensor, shape: Sequence[int], axis: Any = -1, stride: Any = 1, dilation: Any = 1) -> Tensor:
    """Windows put back where `mg.windows` took them from, a tensor of `shape`; where they overlap, they add up.

    >>> mg.overlap_add(mg.asarray([[1.0, 2.0], [30.0, 40.0]]), (3,)).tolist()
    [1.0, 32.0, 40.0]
    """
    shape = tuple(shape)
    axes = tuple([normal_axis("overlap_add", a, len(shape)) for a in (axis if isinstance(axis, tuple) else (axis,))])
    attrs = _attributes("overlap_add", axes, stride=stride, dilation=dilation)
    _infer_overlap_add(x, axes, attrs["stride"], attrs["dilation"], shape)
    return P.overlap_add.apply(x, axis=axes, **attrs, shape=shape)  # type: ignore[no-any-return]


def _attributes(name: str, axes: Sizes, **given: Any) -> dict[str, Any]:
    if len(set(axes)) != len(axes):
        raise ConversionError(f"{name}: axes {axes} name a dimension twice")
    return {what: for_each(name, what, value, len(axes)) for what, value in given.items()}


def for_each(name: str, what: str, value: Any, count: int, least: int = 1) -> Sizes:
    """One integer for each of `count` dimensions: the given ones, or the same for all.

    >>> for_each("conv2d", "stride", 2, 2), for_each("conv2d", "stride", (1, 3), 2)
    ((2, 2), (1, 3))
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    sizes = tuple([whole(v, least) for v in values])
    if len(values) != count or None in sizes:
        raise ConversionError(
            f"{name}: {what} is {shown(value)}",
            expect=f"an integer, {least} or more, or {count} of them" if count > 1 else f"an integer, {least} or more",
        )
    return sizes  # type: ignore[return-value]
