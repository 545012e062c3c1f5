"""Normalisation: tensors shifted and scaled to mean 0 and variance 1, over some dimensions or over the whole batch."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..core import dtypes
from ..core.mode import no_grad
from ..core.programs import in_programs
from ..core.tensor import FloatTensor, Tensor
from ..support.errors import ConversionError, ShapeError
from ..support.interrupts import all_or_none
from ..support.words import shown
from .composite import composed, program
from .declare import normal_axis
from .elementwise import power
from .functional import _total
from .reduce import in_float32, mean
from .view import reshape

__all__ = ["layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm"]

Axes = tuple[int, ...]


@program()
def layer_norm(x: FloatTensor, weight: Tensor | None = None, bias: Tensor | None = None, axis: int = -1,
               eps: float = 1e-5) -> Tensor:
    """The tensor shifted and scaled to mean 0 and variance 1 along `axis`, then times `weight`, plus `bias`.

    >>> mg.layer_norm(mg.asarray([1.0, 3.0]), eps=0.0).tolist()
    [-1.0, 1.0]
    """
    place = normal_axis("layer_norm", axis, x.ndim)
    return _times_and_plus("layer_norm", standardized(x, (place,), eps), weight, bias, place)


@program()
def rms_norm(x: FloatTensor, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Each row divided by the root of the mean of its squares, then times `weight`; by default `eps` is the dtype's.

    >>> mg.rms_norm(mg.asarray([3.0, 4.0]), eps=0.0).tolist()
    [0.848..., 1.131...]
    """
    if not x.ndim:
        raise ShapeError("rms_norm: a tensor without dimensions has no rows")
    eps = dtypes.finfo(x.dtype).eps if eps is None else eps
    out = in_float32(_scaled, x, eps) if x.dtype is dtypes.float16 else _scaled(x, eps)
    return _times_and_plus("rms_norm", out, weight, None, x.ndim - 1)


def _scaled(x: Tensor, eps: float) -> Tensor:
    return x * power(mean(x * x, -1, keepdims=True) + eps, -0.5)


@program()
def group_norm(x: FloatTensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Each group of channels of each example scaled to mean 0 and variance 1, then times `weight`, plus `bias`.

    >>> mg.group_norm(mg.asarray([[[1.0], [3.0], [5.0], [9.0]]]), groups=2, eps=0.0).tolist()
    [[[-1.0], [1.0], [-1.0], [1.0]]]
    """
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            f"group_norm: an input of shape {x.shape} has no channels that can be divided into {groups} groups",
            expect="(examples, channels, ...)",
        )
    count, channels = x.shape[:2]
    rows = reshape(x, (count, groups, channels // groups * math.prod(x.shape[2:])))
    out = reshape(standardized(rows, (2,), eps), x.shape)
    return _times_and_plus("group_norm", out, weight, bias, 1)


@program()
def instance_norm(x: FloatTensor, weight: Tensor | None = None, bias: Tensor | None = None,
                  eps: float = 1e-5) -> Tensor:
    """Each channel of each example scaled to mean 0 and variance 1, then times `weight`, plus `bias`.

    >>> mg.instance_norm(mg.asarray([[[1.0, 3.0], [5.0, 9.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    if x.ndim < 3:
        raise ShapeError(f"instance_norm: an input of shape {x.shape} has only one value for each channel",
                         expect="(examples, channels, length) or (examples, channels, height, width)")
    return _times_and_plus("instance_norm", standardized(x, tuple(range(2, x.ndim)), eps), weight, bias, 1)


@composed
def batch_norm(x: FloatTensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float | Tensor = 0.1, eps: float = 1e-5, comm: Any = None) -> Tensor:
    """Each channel scaled to mean 0 and variance 1 over the batch, then times `weight`, plus `bias`.

    In training, the mean and variance of the batch are used, and the running ones move towards them in place, by
    `momentum`; otherwise the running ones are used.  Channels are dimension 1, and all others are reduced.  With a
    communicator, the batch is that of all its ranks, each of which has an equal part.

    >>> mean, variance = mg.zeros(1), mg.ones(1)
    >>> mg.batch_norm(mg.asarray([[1.0], [3.0]]), mean, variance, training=True, momentum=0.5, eps=0.0).tolist()
    [[-1.0], [1.0]]
    >>> mean.tolist(), variance.tolist()
    ([1.0], [1.5])
    """
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: an input of shape {x.shape} has no channels", expect="(examples, channels, ...)")
    if not training and (running_mean is None or running_var is None):
        raise ConversionError("batch_norm: outside training it takes a running mean and variance",
                              hint="training=True for those of the batch")
    for statistic in (running_mean, running_var):
        _check_channels("batch_norm", x, statistic, 1)
    if not training:
        return _by_running(x, running_mean, running_var, weight, bias, eps)
    if comm is not None and not hasattr(comm, "allreduce"):
        raise ConversionError(f"batch_norm: comm is a communicator, not {shown(comm)}",
                              hint="mg.distributed.communicator()")
    count = math.prod((x.shape[0], *x.shape[2:])) * (1 if comm is None else comm.size)
    if count < 2:
        raise ShapeError(f"batch_norm: an input of shape {x.shape} has only one value for each channel, and "
                         "no variance", hint="a larger batch, or layer.eval()")
    if x.dtype is dtypes.float16:
        return batch_norm(x.astype(dtypes.float32), running_mean, running_var, weight, bias, True, momentum,
                          eps, comm).astype(dtypes.float16)  # type: ignore[attr-defined, no-any-return]
    given = x, weight, bias, eps
    out, centre, variance = _normalize_batch(*given) if comm is None else normalize_batch(*given, comm)
    with no_grad():
        moved = [
            (running, _moved(running, statistic, momentum, scale))
            for running, statistic, scale in ((running_mean, centre, 1.0), (running_var, variance, count / (count - 1)))
            if running is not None
        ]
        all_or_none(partial(_put, moved))
    return out


def by_running(x: Tensor, centre: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None,
               eps: float) -> Tensor:
    """Batch norm with given means and variances."""
    out = (x - _beside(centre, x, 1)) * _beside(power(variance + eps, -0.5), x, 1)
    return _times_and_plus("batch_norm", out, weight, bias, 1)


def normalize_batch(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float,
                    comm: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm with the means and variances of the batch, which are returned too, without history."""
    axes = (0, *range(2, x.ndim))
    centre = _of_ranks(comm, mean(x, axes, keepdims=True))
    off = x - centre
    variance = _of_ranks(comm, mean(off * off, axes, keepdims=True))
    out = _times_and_plus("batch_norm", off * power(variance + eps, -0.5), weight, bias, 1)
    return out, centre.detach(), variance.detach()  # type: ignore[attr-defined]


_by_running, _normalize_batch = in_programs(by_running), in_programs(normalize_batch)


def _of_ranks(comm: Any, x: Tensor) -> Tensor:
    return x if comm is None else comm.allreduce(x, "mean")  # type: ignore[no-any-return]


def _moved(running: Tensor, statistic: Tensor, momentum: Any, scale: float) -> Tensor:
    seen = reshape(statistic, running.shape).astype(running.dtype)  # type: ignore[attr-defined]
    return running + (seen * scale - running) * momentum


def _put(moved: list[tuple[Tensor, Tensor]]) -> None:
    for running, value in moved:
        running[...] = value  # type: ignore[index]


def standardized(x: Tensor, axes: Axes, eps: float) -> Tensor:
    """The tensor shifted and scaled to mean 0 and variance 1 over `axes`.

    >>> standardized(mg.asarray([1.0, 3.0]), (0,), 0.0).tolist()
    [-1.0, 1.0]
    """
    if x.dtype is dtypes.float16:
        return in_float32(standardized, x, axes, eps)
    per_element = 1.0 / max(math.prod([x.shape[axis] for axis in axes]), 1)
    off = x - _total(x, axes) * per_element
    return off * power(_total(off * off, axes) * per_element + eps, -0.5)


def _times_and_plus(name: str, x: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int) -> Tensor:
    for parameter in (weight, bias):
        _check_channels(name, x, parameter, axis)
    if weight is not None:
        x = x * _beside(weight, x, axis)
    return x if bias is None else x + _beside(bias, x, axis)


def _check_channels(name: str, x: Tensor, parameter: Tensor | None, axis: int) -> None:
    if parameter is not None and parameter.shape != x.shape[axis : axis + 1]:
        raise ShapeError(
            f"{name}: an input of shape {x.shape} has {x.shape[axis]} channels in dimension {axis}, and a parameter "
            f"has shape {parameter.shape}",
            expect=f"({x.shape[axis]},)",
        )


def _beside(parameter: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector with dimensions of size 1 behind it, so that it broadcasts along `axis`."""
    behind = x.ndim - axis - 1
    return reshape(parameter, (*parameter.shape, *[1] * behind)) if behind else parameter
