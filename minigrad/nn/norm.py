"""Layers that normalise their input to mean 0 and variance 1: per row, per group of channels, per batch."""

from __future__ import annotations

from typing import Any

from ..core.dtypes import int64
from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation import ones, zeros
from ..ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from ..support.errors import ShapeError
from ..support.table import counted
from .layers import check_sizes
from .module import Module


class _OfLast(Module):
    """A norm over the last dimension, of the given size."""

    size: int
    weight: Tensor | None

    def _check(self, x: Tensor) -> None:
        """Raise unless the last dimension of the input has the size."""
        if not x.shape or x.shape[-1] != self.size:
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=f"(..., {self.size})")

    def extra_repr(self) -> str:
        return f"{self.size}" + ("" if self.weight is not None else ", affine=False")


def _last(name: str, size: Any) -> Any:
    """The size of the last dimension; the shape `(size,)` says it too."""
    if isinstance(size, (tuple, list)) and len(size) == 1:
        size = size[0]
    check_sizes(name, size=size)
    return size


class LayerNorm(_OfLast):
    """Each example shifted and scaled to mean 0 and variance 1, then times `weight`, plus `bias`.

    >>> norm = mg.nn.LayerNorm(2, eps=0.0)
    >>> norm, norm(mg.asarray([[1.0, 3.0]])).tolist()
    (LayerNorm(2), [[-1.0, 1.0]])
    """

    def __init__(self, size: Any, eps: float = 1e-5, affine: bool = True, bias: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        size = _last("LayerNorm", size)
        self.size, self.eps = size, eps
        self.weight, self.bias = _affine(size, affine, dtype, device)
        if not bias:
            self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(_OfLast):
    """Each example divided by the root of the mean of its squares, then times `weight`.

    >>> norm = mg.nn.RMSNorm(2, eps=0.0)
    >>> norm, norm(mg.asarray([[1.0, 1.0]])).tolist()
    (RMSNorm(2), [[1.0, 1.0]])
    """

    def __init__(self, size: Any, eps: float | None = None, affine: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        size = _last("RMSNorm", size)
        self.size, self.eps = size, eps
        self.weight = ones(size, dtype, device, requires_grad=True) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return rms_norm(x, self.weight, self.eps)


class GroupNorm(Module):
    """Each group of channels (dimension 1) of each example to mean 0 and variance 1, then a factor for each channel.

    >>> norm = mg.nn.GroupNorm(2, 4)
    >>> norm, norm(mg.ones((5, 4, 3))).shape
    (GroupNorm(2 groups of 4), (5, 4, 3))
    """

    def __init__(self, groups: int, channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        check_sizes("GroupNorm", 1, groups=groups, channels=channels)
        if channels % groups:
            raise ShapeError(f"GroupNorm: {counted(channels, 'channel')} can't be divided into {groups} groups")
        self.groups, self.channels, self.eps = groups, channels, eps
        self.weight, self.bias = _affine(channels, affine, dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}",
                             expect=f"(examples, {self.channels}, ...)")
        return group_norm(x, self.groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = "" if self.weight is not None else ", affine=False"
        return f"{counted(self.groups, 'group')} of {self.channels}{affine}"


class _InstanceNorm(Module):
    dimensions = 4

    def __init__(self, channels: int, eps: float = 1e-5, affine: bool = False, dtype: Any = None,
                 device: Any = None) -> None:
        check_sizes(type(self).__name__, channels=channels)
        self.channels, self.eps = channels, eps
        self.weight, self.bias = _affine(channels, affine, dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != self.dimensions or x.shape[1] != self.channels:
            sides = "length" if self.dimensions == 3 else "height, width"
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}",
                             expect=f"(examples, {self.channels}, {sides})")
        return instance_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.channels}" + ("" if self.weight is None else ", affine=True")


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sequence (examples, channels, length) to mean 0 and variance 1.

    >>> mg.nn.InstanceNorm1d(1, eps=0.0)(mg.asarray([[[1.0, 3.0]]])).tolist()
    [[[-1.0, 1.0]]]
    """

    dimensions = 3


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image (examples, channels, height, width) to mean 0 and variance 1.

    With `affine`, each channel is then multiplied by a weight, and a bias is added.

    >>> norm = mg.nn.InstanceNorm2d(3, affine=True)
    >>> norm, list(norm.state_dict())
    (InstanceNorm2d(3, affine=True), ['weight', 'bias'])
    """


class _BatchNorm(Module):
    """In training, each channel is normalised over the batch; otherwise by the running mean and variance.

    `momentum` is the share of each new step in the running values; with None, they are the mean of all steps.
    """

    dimensions: tuple[int, ...] = ()
    comm: Any = None  # a communicator, over whose ranks the statistics of a batch are taken

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, dtype: Any = None, device: Any = None) -> None:
        check_sizes(type(self).__name__, channels=channels)
        self.channels, self.eps, self.momentum = channels, eps, momentum
        self.weight, self.bias = _affine(channels, affine, dtype, device)
        self.running_mean = zeros(channels, dtype, device) if track_running_stats else None
        self.running_var = ones(channels, dtype, device) if track_running_stats else None
        self.num_batches_tracked = zeros((), int64, device) if track_running_stats else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.dimensions or x.shape[1] != self.channels:
            sides = {2: "", 3: ", length", 4: ", height, width"}
            expect = " or ".join(f"(examples, {self.channels}{sides[d]})" for d in self.dimensions)
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=expect)
        momentum: Any = self.momentum
        if self.training and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked += 1
            if momentum is None:
                momentum = 1.0 / self.num_batches_tracked.astype(x.dtype)  # type: ignore[attr-defined]
        by_batch = self.training or self.running_mean is None
        return batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_batch, momentum, self.eps, self.comm
        )

    def extra_repr(self) -> str:
        return f"{self.channels}" + ("" if self.weight is not None else ", affine=False")


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of rows (examples, channels), or of sequences (examples, channels, length).

    >>> norm = mg.nn.BatchNorm1d(1, eps=0.0)
    >>> norm(mg.asarray([[1.0], [3.0]])).tolist(), norm.running_mean.tolist()
    ([[-1.0], [1.0]], [0.2...])
    >>> list(norm.state_dict())
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    """

    dimensions = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (examples, channels, height, width).

    >>> norm = mg.nn.BatchNorm2d(3).eval()
    >>> norm, norm(mg.ones((1, 3, 2, 2))).shape
    (BatchNorm2d(3), (1, 3, 2, 2))
    """

    dimensions = (4,)


def _affine(size: int, affine: bool, dtype: Any, device: Any) -> tuple[Tensor | None, Tensor | None]:
    """The factors and summands of a norm, which change nothing at first; or None."""
    if not affine:
        return None, None
    return ones(size, dtype, device, requires_grad=True), zeros(size, dtype, device, requires_grad=True)
